use proptest::prelude::*;

use super::*;
use crate::lex::MAX_DEPTH;
use crate::program::quote;

/// A script that reads as this program.
fn print(program: &Program) -> String {
    let group = |group: &Vec<Statement>| group.iter().map(statement).collect::<Vec<_>>().join(" & ");
    program.groups.iter().map(group).collect::<Vec<_>>().join("\n")
}

fn statement(statement: &Statement) -> String {
    match statement {
        Statement::Say(text) => format!("say {}", quote(text)),
        Statement::Wait(time) => format!("wait {}", time.as_millis()),
        Statement::End(Ending::Hang) => "hang".into(),
        Statement::End(Ending::Refuse) => "refuse".into(),
        Statement::End(Ending::MaxTokens) => "max-tokens".into(),
        Statement::End(Ending::Fail(kind)) => {
            format!("fail {}", KINDS.iter().find(|(_, known)| known == kind).unwrap().0)
        }
        Statement::Call(asked) => call(asked),
    }
}

fn call(call: &Call) -> String {
    let maybe = |word: &Option<String>| word.as_ref().map_or_else(String::new, |word| format!(" {}", quote(word)));
    let asking = |wider: &Option<Wider>| match wider {
        Some(Wider { mode, reason }) => format!(" with {mode} because {}", quote(reason)),
        None => String::new(),
    };
    match call {
        Call::Read { path } => format!("read {}", quote(path)),
        Call::Write { path, content, wider } => format!("write {} {}{}", quote(path), quote(content), asking(wider)),
        Call::Edit { path, old, new, all, wider } => {
            let all = if *all { " all" } else { "" };
            format!("edit {} {} {}{all}{}", quote(path), quote(old), quote(new), asking(wider))
        }
        Call::List { path } => format!("list{}", maybe(path)),
        Call::Glob { pattern } => format!("glob {}", quote(pattern)),
        Call::Grep { pattern, path } => format!("grep {}{}", quote(pattern), maybe(path)),
        Call::Bash { command, wider } => format!("bash {}{}", quote(command), asking(wider)),
        Call::Delegate { kind, label, when, via, prompt } => {
            let when = if *when == When::InBackground { " in background" } else { "" };
            let via = via.as_ref().map_or_else(String::new, |tool| format!(" via {}", quote(tool)));
            format!("{}{}{when}{via} {{\n{prompt}\n}}", kind.verb(), maybe(label))
        }
        Call::Raw { tool, arguments } if arguments.contains('\'') => format!("call {} {arguments}", quote(tool)),
        Call::Raw { tool, arguments } => format!("call {} '{arguments}'", quote(tool)),
    }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z./]{1,6}",
        "[ -~\n\té…]{0,12}",
        Just("with".to_owned()),
        Just("via".to_owned()),
        Just("in".to_owned())
    ]
}

fn wider() -> impl Strategy<Value = Option<Wider>> {
    let wider = (prop::sample::select(&MODES[..]), word()).prop_map(|(mode, reason)| Wider { mode, reason });
    prop::option::of(wider)
}

/// Anything that fits into single quotes, and JSON that does not.
fn arguments() -> impl Strategy<Value = String> {
    let json = "[ -~\n]{0,12}".prop_map(|text| serde_json::json!({"it's": [text, {}]}).to_string());
    prop_oneof!["[^']{0,12}", json]
}

/// Calls whose children are still to be given a prompt.
fn tool_call() -> impl Strategy<Value = Call> {
    let kind = prop_oneof![Just(Delegate::Spawn), Just(Delegate::Fork)];
    let when = prop_oneof![Just(When::Now), Just(When::InBackground)];
    let maybe = || prop::option::of(word());
    prop_oneof![
        word().prop_map(|path| Call::Read { path }),
        (word(), word(), wider()).prop_map(|(path, content, wider)| Call::Write { path, content, wider }),
        (word(), word(), word(), any::<bool>(), wider()).prop_map(|(path, old, new, all, wider)| Call::Edit {
            path,
            old,
            new,
            all,
            wider
        }),
        maybe().prop_map(|path| Call::List { path }),
        word().prop_map(|pattern| Call::Glob { pattern }),
        (word(), maybe()).prop_map(|(pattern, path)| Call::Grep { pattern, path }),
        (word(), wider()).prop_map(|(command, wider)| Call::Bash { command, wider }),
        (kind, maybe(), when, maybe()).prop_map(|(kind, label, when, via)| Call::Delegate {
            kind,
            label,
            when,
            via,
            prompt: String::new()
        }),
        (word(), arguments()).prop_map(|(tool, arguments)| Call::Raw { tool, arguments }),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let kinds: Vec<_> = KINDS.iter().map(|(_, kind)| Ending::Fail(*kind)).collect();
    let ends = kinds.into_iter().chain([Ending::Hang, Ending::Refuse, Ending::MaxTokens]).collect::<Vec<_>>();
    let quiet = prop_oneof![
        word().prop_map(Statement::Say),
        (0u64..1_000).prop_map(|ms| Statement::Wait(Duration::from_millis(ms))),
        tool_call().prop_map(Statement::Call),
    ];
    let group = (prop::collection::vec(quiet, 1..4), prop::option::weighted(0.1, prop::sample::select(ends)));
    let group = group.prop_map(|(mut group, end)| {
        group.extend(end.map(Statement::End));
        group
    });
    prop::collection::vec(group, 1..4).prop_map(|groups| Program { groups })
}

/// A program whose children have programs, whose children have programs, whose children have prose.
fn nested() -> impl Strategy<Value = Program> {
    let prose = "[a-z][a-z.,' ]{0,20}[a-z]"
        .prop_filter("quoted or raw", |text| !text.contains(" '") && !text.starts_with("call"));
    (prose, prop::collection::vec(program(), 1..4)).prop_map(|(mut given, mut programs)| {
        for program in &mut programs {
            for statement in program.groups.iter_mut().flatten() {
                if let Statement::Call(Call::Delegate { prompt, .. }) = statement {
                    *prompt = given.clone();
                }
            }
            given = print(program);
        }
        programs.pop().expect("there is one at least")
    })
}

proptest! {
    #[test]
    fn what_is_printed_reads_the_same(program in nested()) {
        let text = print(&program);
        let read = parse(&text).map_err(|wrong| TestCaseError::fail(format!("{wrong} in\n{text}")))?;
        prop_assert_eq!(&read, &program, "{}", text);
        prop_assert_eq!(print(&read), text);
    }

    #[test]
    fn a_script_goes_into_a_block_as_it_is(program in nested()) {
        let text = print(&program);
        let read = parse(&format!("spawn {{ {text}\n}}")).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        let call = Call::Delegate { kind: Delegate::Spawn, label: None, when: When::Now, via: None, prompt: text };
        prop_assert_eq!(read.groups, vec![vec![Statement::Call(call)]]);
    }

    #[test]
    fn no_text_is_too_much(text in any::<String>()) {
        drop(parse(&text));
    }

    #[test]
    fn what_can_be_read_can_be_printed(
        words in prop::collection::vec(
            prop_oneof![
                prop::sample::select(&[
                    "read", "write", "say", "spawn", "fork", "call", "bash", "with", "because", "via", "all", "fail",
                    "workspace-write", "{", "}", "\"", "'", "\\", "#", ";", "&", "\n", " ", "{\"a\":", "ünï", "wait 1",
                ][..]).prop_map(str::to_owned),
                "[a-z]{1,3}",
            ],
            0..24,
        ),
        glue in prop::sample::select(&["", " "][..]),
    ) {
        let text = words.join(glue);
        if let Ok(read) = parse(&text) {
            let printed = print(&read);
            prop_assert_eq!(parse(&printed), Ok(read), "{:?} printed as {:?}", text, printed);
        }
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let check = |text: &str, said: &str| assert_eq!(parse(text).unwrap_err().to_string(), said, "{text}");
    check("Fix the bug", "line 1, column 1: `Fix` begins no statement");
    check("read a\n  lisst", "line 2, column 3: `lisst` begins no statement");
    check("\"read\" a", "line 1, column 1: `read` begins no statement");
    check("write a", "line 1, column 1: a word is missing: `write PATH TEXT`");
    check(
        "say ü; write a b c",
        "line 1, column 18: `c` is a word too many for `write PATH TEXT`: quote what has spaces",
    );
    check("say don't", "line 1, column 8: a quote inside a bare word: quote the whole word");
    check("say \"a", "line 1, column 5: this quote is never closed");
    check("say \"a\"b", "line 1, column 8: a space is missing after this closing quote");
    check(
        r#"say "ab\x""#,
        r#"line 1, column 8: no such escape; there are \n \t \" \\ \{ \}, and 'raw' words have none"#,
    );
    check("say a &", "line 1, column 8: a statement is missing here");
    check("say a && say b", "line 1, column 8: a statement is missing here");
    check("say a }", "line 1, column 7: this `}` closes nothing");
    check("say {", "line 1, column 1: a word is missing: `say TEXT`");
    check("say a {", "line 1, column 7: only `spawn` and `fork` take a block: quote a word with `{` in it");
    check("spawn A", "line 1, column 1: `spawn [LABEL] { SCRIPT }` has no block");
    check(
        "spawn A B { say x }",
        "line 1, column 9: `B` is a word too many for `spawn [LABEL] { SCRIPT }`: quote what has spaces",
    );
    check("spawn A in { say x }", "line 1, column 9: `background` is missing: `in background`");
    check("fork { \n }", "line 1, column 6: this block is empty: a child needs a prompt");
    check(
        "spawn { say \"}\"",
        "line 1, column 7: this `{` is never closed (what is quoted or behind a `#` does not count)",
    );
    check("spawn { say a } say b", "line 1, column 17: expected the statement's end, a `;` or a `&`");
    check("call", "line 1, column 1: `call TOOL JSON` names no tool");
    check("call t 'a' b", "line 1, column 12: expected the statement's end, a `;` or a `&`");
    check("wait soon", "line 1, column 6: `wait` takes milliseconds, 0 to 60000, not `soon`");
    check("wait 60001", "line 1, column 6: `wait` takes milliseconds, 0 to 60000, not `60001`");
    check("wait 60000; say a & wait 1", "line 1, column 21: the waits of one step are longer than 60000 ms");
    check("hang & refuse", "line 1, column 8: a step ends only once");
    check(
        "fail badly",
        "line 1, column 6: `badly` is none of: unauthorized, invalid-request, rate-limited, provider-failed, unreachable, \
         truncated, timed-out, protocol",
    );
    check("bash a with root because b", "line 1, column 13: `root` is none of: workspace-write, danger-full-access");
    check("bash a with workspace-write", "line 1, column 8: a reason is missing: `with MODE because REASON`");
}

#[test]
fn an_endless_word_is_told_in_short() {
    let said = parse(&"x".repeat(100_000)).unwrap_err().to_string();
    assert!(said.len() < 100, "{said}");
}

#[test]
fn statements_and_depth_are_bounded() {
    let many = |count: usize| parse(&"hang\n".repeat(count)).map(|program| program.groups.len());
    assert_eq!(many(MAX_STATEMENTS), Ok(MAX_STATEMENTS));
    assert_eq!(many(MAX_STATEMENTS + 1).unwrap_err().to_string(), "line 1001, column 1: more than 1000 statements");

    let deep = |depth: usize| parse(&format!("{}say x{}", "spawn { ".repeat(depth), " }".repeat(depth)));
    assert!(deep(MAX_DEPTH).is_ok());
    let said = deep(MAX_DEPTH + 1).unwrap_err().to_string();
    assert_eq!(said, "line 1, column 263: blocks are nested deeper than 32");
    assert!(parse(&"spawn { ".repeat(30_000)).is_err());
}

#[test]
fn waits_of_different_steps_do_not_add_up() {
    assert!(parse("wait 60000; list; wait 60000; list & wait 0").is_ok());
}

#[test]
fn the_examples_of_the_readme_are_scripts() {
    let readme = include_str!("../../README.md");
    let examples: Vec<&str> = readme.split("```script\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 6);
    for example in examples {
        parse(example).unwrap_or_else(|wrong| panic!("{wrong} in\n{example}"));
    }
    for form in FORMS {
        let verb = form.split(' ').next().unwrap();
        assert!(readme.contains(&format!("`{verb}")), "{verb}");
    }
}
