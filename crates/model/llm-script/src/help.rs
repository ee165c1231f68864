/// The language of [`Script`](crate::Script) in one page: its answer to `help`, to an empty prompt, and, after what was
/// wrong, to everything that is not a script.
pub const HELP: &str = r##"I am offline/script, a deterministic model that needs no account. I understand no prose; I do what a script says:

  read PATH                   write PATH TEXT
  list [PATH]                 edit PATH OLD NEW [all]
  glob PATTERN                grep PATTERN [PATH]
  bash COMMAND                call TOOL JSON
  spawn [LABEL] { SCRIPT }    give a fresh child this prompt
  fork [LABEL] { SCRIPT }     the same, and the child sees this conversation
  say TEXT                    text beside the calls of its step, or the answer

  wait MS                     answer later, by at most 60000 ms
  hang                        never answer
  fail KIND                   unauthorized, invalid-request, rate-limited, provider-failed,
                              unreachable, truncated, timed-out or protocol
  refuse                      end as a refusal
  max-tokens                  end at the token limit

Each line, or part between `;`, is one step; `&` puts statements into the same step, so that their tools run side by side. `say` and `wait` on their own join the next step. `#` begins a comment.
A word is bare, "quoted" (\n \t \" \\ \{ \}) or 'raw'; quote what has spaces or ; & { } in it. What stands between { and } is passed on unread, so blocks nest, and need not be scripts.
write, edit and bash ask for a wider sandbox with: with MODE because REASON (workspace-write or danger-full-access). Before their block, spawn and fork take: in background, to go on meanwhile; via TOOL, to use another delegation tool. JSON goes to the end of the statement as it is, even if malformed; '...' where that is not clear.
Without a last `say`, the answer is a report of what every call did.

  write notes.txt "hello"; read notes.txt
  spawn A { write a.txt "hello from A" } & spawn B { write ../x "out" }
  bash 'cargo test' with danger-full-access because "needs the network"; say done
"##;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{FORMS, parse};
    use crate::program::{KINDS, MODES};

    #[test]
    fn help_is_short_and_names_everything() {
        assert!(HELP.len() < 2_500, "{}", HELP.len());
        let kinds = KINDS.map(|(name, _)| name);
        for word in FORMS.iter().chain(&MODES).chain(&kinds) {
            assert!(HELP.contains(word), "{word}");
        }
    }

    #[test]
    fn the_examples_of_the_help_are_scripts() {
        let (_, examples) = HELP.split_once("what every call did.").unwrap();
        let steps = parse(examples).unwrap().groups.len();
        assert_eq!(steps, 5);
    }
}
