use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use llm::{Chunk, Content, Finish, LlmAdapter as _, LlmErrorKind, Message, ToolCall, Usage};
use llm_script::{HELP, Script};
use proptest::prelude::*;
use tokio::time::{Instant, timeout};

use crate::talk::{TOOLS, Talk, shown};

fn fine(_: &ToolCall) -> Result<String, String> {
    Ok(String::new())
}

/// A script, the calls of its steps, and its answer where every tool succeeds in silence.
async fn check(script: &str, steps: &[&str], answer: &str) {
    let tools: Vec<&str> = TOOLS.into_iter().chain(["todo", "reviewer"]).collect();
    let (calls, text) = Talk::with(&Script, &tools).turn(script, fine).await;
    assert_eq!(shown(&calls), steps, "{script}");
    assert_eq!(text, answer, "{script}");
}

#[tokio::test(start_paused = true)]
async fn every_statement() {
    check("read a.txt", &[r#"read {"path":"a.txt"}"#], "read a.txt: ok").await;
    check("write a.txt hello", &[r#"write {"path":"a.txt","content":"hello"}"#], "write a.txt: ok").await;
    check(r#"write a "x\n\"\{\}\\""#, &[r#"write {"path":"a","content":"x\n\"{}\\"}"#], "write a: ok").await;
    check(r"write 'a b' '\n'", &[r#"write {"path":"a b","content":"\\n"}"#], "write a b: ok").await;
    check("edit a x y", &[r#"edit {"path":"a","old_text":"x","new_text":"y"}"#], "edit a: ok").await;
    check("edit a x '' all", &[r#"edit {"path":"a","old_text":"x","new_text":"","replace_all":true}"#], "edit a: ok")
        .await;
    check("list", &["list {}"], "list: ok").await;
    check("list src", &[r#"list {"path":"src"}"#], "list src: ok").await;
    check("glob **/*.rs", &[r#"glob {"pattern":"**/*.rs"}"#], "glob **/*.rs: ok").await;
    check("grep 'fn main' src", &[r#"grep {"pattern":"fn main","path":"src"}"#], "grep fn main: ok").await;
    check("grep main", &[r#"grep {"pattern":"main"}"#], "grep main: ok").await;
    check("bash 'a && b; c'", &[r#"bash {"command":"a && b; c"}"#], "bash a && b; c: ok").await;
    check("say hello \"to  all\"", &[], "hello to  all").await;
    check("say a\nsay b", &[], "a\nb").await;
    check("wait 60000", &[], "done, and no tool was called").await;
}

#[tokio::test(start_paused = true)]
async fn steps_and_groups() {
    check(
        "# first\nread a; read b & \n\n read c # third\n;; say done",
        &[r#"read {"path":"a"}"#, r#"read {"path":"b"} & read {"path":"c"}"#],
        "done",
    )
    .await;
    check("read a\r\nread b\r\n", &[r#"read {"path":"a"}"#, r#"read {"path":"b"}"#], "read a: ok\nread b: ok").await;
}

#[tokio::test(start_paused = true)]
async fn blocks_are_passed_on_as_they_are() {
    let script = r#"spawn A { write a.txt "hello from A" } & spawn "B 2" { spawn { write ../x "}" }; say 'it' # }
    }"#;
    let b = r#"spawn { write ../x \"}\" }; say 'it' # }"#;
    let steps = [
        r#"subagent {"description":"A","prompt":"write a.txt \"hello from A\""}"#,
        &format!(r#"subagent {{"description":"B 2","prompt":"{b}"}}"#),
    ];
    check(script, &[&steps.join(" & ")], "spawn A: ok\nspawn B 2: ok").await;
    check(
        "fork { what did I\n  say, in three words, don't you remember? }",
        &[r#"subagent_fork {"description":"what did I say, in","prompt":"what did I\n  say, in three words, don't you remember?"}"#],
        "fork what did I say, in: ok",
    )
    .await;
    check(
        "spawn R via reviewer { read a }; fork via reviewer { list }",
        &[r#"reviewer {"description":"R","prompt":"read a"}"#, r#"reviewer {"description":"list","prompt":"list"}"#],
        "spawn R: ok\nfork list: ok",
    )
    .await;
    check(
        "spawn R in background via reviewer { read a } & fork in background { list } & spawn \"in\" { list }",
        &[concat!(
            r#"reviewer {"description":"R","prompt":"read a","run_in_background":true} & "#,
            r#"subagent_fork {"description":"list","prompt":"list","run_in_background":true} & "#,
            r#"subagent {"description":"in","prompt":"list"}"#,
        )],
        "spawn R: ok\nfork list: ok\nspawn in: ok",
    )
    .await;
    check(
        "spawn { call todo {\"a\": \"}\"}; call todo {\"b\": ; list }",
        &[r#"subagent {"description":"call todo {\"a\": \"}\"}; call","prompt":"call todo {\"a\": \"}\"}; call todo {\"b\": ; list"}"#],
        "spawn call todo {\"a\": \"}\"}; call: ok",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn arguments_of_a_call_are_passed_on_even_if_malformed() {
    for (script, arguments) in [
        (r#"call todo {"a": [1, {"b": "x; y & # }"}]}"#, r#"{"a": [1, {"b": "x; y & # }"}]}"#),
        (r#"call todo {"a": "quote \" and ; more"} ; say x"#, r#"{"a": "quote \" and ; more"}"#),
        (r##"call todo {"a": "# a comment"} # a comment"##, r##"{"a": "# a comment"}"##),
        (r#"call todo {"a": "#, r#"{"a":"#),
        (r#"call todo {"a": "x; & never closed"#, r#"{"a": "x; & never closed"#),
        ("call todo {\"a\\\nsay x", "{\"a\\"),
        ("call todo not json at all", "not json at all"),
        ("call todo '{\n;&}}{\"'", "{\n;&}}{\""),
        ("call todo", ""),
        ("call todo ; say x", ""),
    ] {
        let mut talk = Talk::with(&Script, &["todo"]);
        talk.push(Message::user(script));
        let message = talk.step().await.unwrap().message;
        let calls: Vec<&str> = message.tool_calls().map(|call| &*call.arguments).collect();
        assert_eq!(calls, [arguments], "{script}");
    }
}

#[tokio::test(start_paused = true)]
async fn escalation_names_a_mode_and_a_reason() {
    check(
        r#"write /etc/x y with danger-full-access because "I must""#,
        &[r#"write {"path":"/etc/x","content":"y","sandbox_permissions":"danger-full-access","justification":"I must"}"#],
        "write /etc/x: ok",
    )
    .await;
    check(
        "edit a b c all with workspace-write because so & bash ls with danger-full-access because 'of it'",
        &[concat!(
            r#"edit {"path":"a","old_text":"b","new_text":"c","replace_all":true,"#,
            r#""sandbox_permissions":"workspace-write","justification":"so"} & "#,
            r#"bash {"command":"ls","sandbox_permissions":"danger-full-access","justification":"of it"}"#,
        )],
        "edit a: ok\nbash ls: ok",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_report_shows_what_a_child_was_denied() {
    let denied = "sandbox denied: write /srv/x (mode read-only)";
    let write = |_: &ToolCall| Err(format!("{denied}\nmore that nobody needs"));
    let (_, child) = Talk::with(&Script, &TOOLS).turn("write ../x out; say 'not me' & read a", write).await;
    assert_eq!(child, format!("write ../x: error: {denied}\nread a: error: {denied}"));

    let long = (0..20).map(|n| format!("line {n}\n")).collect::<String>();
    let (_, parent) = Talk::with(&Script, &TOOLS)
        .turn("spawn B { write ../x out }; bash false & bash long; read a; list", |call| match &*call.arguments {
            arguments if arguments.contains("prompt") => Ok(child.clone()),
            arguments if arguments.contains("false") => Err("exit status 1\nboo".into()),
            arguments if arguments.contains("long") => Ok(long.clone()),
            arguments if arguments.contains("path") => Ok("ä".repeat(1_000)),
            _ => Ok(" one line \n".into()),
        })
        .await;
    let cut = "ä".repeat(200);
    insta::assert_snapshot!(parent.replace(&cut, "(200 ä)"), @r#"
    spawn B: ok
      write ../x: error: sandbox denied: write /srv/x (mode read-only)
      read a: error: sandbox denied: write /srv/x (mode read-only)
    bash false: error
      exit status 1
      boo
    bash long: ok
      line 0
      line 1
      line 2
      line 3
      line 4
      line 5
      line 6
      line 7
      line 8
      line 9
      line 10
      line 11
      … 8 more lines
    read a: ok: (200 ä)…
    list: ok: one line
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_report_is_bounded() {
    let script = "bash x\n".repeat(500);
    let (steps, answer) = Talk::with(&Script, &TOOLS).turn(&script, |_| Ok("y".repeat(1_000))).await;
    assert_eq!(steps.len(), 500);
    assert!(answer.len() < 17 * 1024, "{}", answer.len());
    assert!(answer.ends_with(" more"), "{}", &answer[answer.len() - 40..]);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_result_is_reported_as_that() {
    let mut talk = Talk::with(&Script, &TOOLS);
    talk.push(Message::user("read a"));
    talk.step().await.unwrap();
    assert_eq!(talk.step().await.unwrap().message.text(), "read a: no result");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_offered_is_not_called() {
    let (steps, text) = Talk::with(&Script, &["read", "list"]).turn("read a; list & bash ls; say x", fine).await;
    assert_eq!(shown(&steps), [r#"read {"path":"a"}"#]);
    let error = "bash ls: error: no tool named `bash` is offered; there are: read, list";
    assert_eq!(text, format!("read a: ok\n{error}"));
    let (steps, text) = Talk::with(&Script, &[]).turn("call nothing", fine).await;
    assert_eq!((steps.len(), &*text), (0, "call nothing: error: no tool named `nothing` is offered; there are: none"));
}

#[tokio::test(start_paused = true)]
async fn each_prompt_starts_anew() {
    let mut talk = Talk::with(&Script, &TOOLS);
    let (first, _) = talk.turn("read a; read b", fine).await;
    let (second, answer) = talk.turn("read c", fine).await;
    assert_eq!((first.len(), second.len(), &*answer), (2, 1, "read c: ok"));
    let ids: HashSet<_> = first.iter().chain(&second).flatten().map(|call| call.call_id.clone()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");

    // A person who speaks up in the middle of a turn gives a prompt of its own.
    talk.push(Message::user("read d; read e"));
    talk.step().await.unwrap();
    let (steered, _) = talk.turn("read f", fine).await;
    assert_eq!(shown(&steered), [r#"read {"path":"f"}"#]);
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_no_prompt_and_is_noted() {
    let notice = |what: &str| Message::user(format!("<notice>\n{what}\n</notice>"));
    let mut talk = Talk::with(&Script, &TOOLS);
    talk.push(Message::user("read a; read b; say done"));
    talk.step().await.unwrap();
    talk.push(notice("job-1 (x: y) completed:\nso it is"));
    let second = talk.step().await.unwrap().message;
    assert_eq!(&*second.tool_calls().next().unwrap().arguments, r#"{"path":"b"}"#, "it goes on");
    talk.push(notice("job-2 (x: y) failed."));
    talk.push(notice("job-3 (x: y) completed:\n</notice\nread c"));
    let answer = talk.step().await.unwrap().message.text();
    let noted = "noted: job-2 (x: y) failed.\nnoted\n  job-3 (x: y) completed:\n  </notice\n  read c";
    assert_eq!(answer, format!("done\n{noted}"));
    talk.push(notice("a line\n".repeat(20).trim_end()));
    let alone = talk.step().await.unwrap().message.text();
    assert_eq!(alone, format!("noted{}\n  … 8 more lines", "\n  a line".repeat(12)));
    let (steps, answer) = talk.turn("read d", fine).await;
    assert_eq!((shown(&steps), &*answer), (vec![r#"read {"path":"d"}"#.to_owned()], "read d: ok"));
}

#[tokio::test(start_paused = true)]
async fn the_same_request_has_the_same_reply() {
    let mut talk = Talk::with(&Script, &TOOLS);
    talk.push(Message::user("say some text first & read a & read b"));
    let reply = talk.chunks().await;
    assert_eq!(reply, talk.chunks().await);
    let id = |index: usize| match &reply[index] {
        Ok(Chunk::ToolCall(call)) => call.call_id.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!((id(1), id(2)), ("script-1-0".into(), "script-1-1".into()));
    let usage = Usage { input_tokens: 10, output_tokens: 7, cached_input_tokens: 0 };
    assert_eq!(reply[3..], [Ok(Chunk::Usage(usage)), Ok(Chunk::End(Finish::Stop))]);
}

#[tokio::test(start_paused = true)]
async fn help_answers_what_is_no_script() {
    assert!(HELP.len() < 2_500);
    insta::assert_snapshot!(HELP, @r##"
    I am offline/script, a deterministic model that needs no account. I understand no prose; I do what a script says:

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
    "##);
    for prompt in ["help", "", "  \n", "# only a comment"] {
        check(prompt, &[], HELP).await;
    }
    assert_eq!(Talk::with(&Script, &[]).step().await.unwrap().message.text(), HELP, "no prompt at all");
    let (_, text) = Talk::with(&Script, &TOOLS).turn("Please fix the bug.", fine).await;
    let wrong = "I do not understand this prompt: line 1, column 1: `Please` begins no statement.";
    assert_eq!(text, format!("{wrong}\n\n{HELP}"));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_too_long_is_refused_in_words() {
    let mut talk = Talk::with(&Script, &TOOLS);
    let longest = format!("say {}", "x".repeat(256 * 1024 - 4));
    assert_eq!(talk.turn(&longest, fine).await.1.len(), 256 * 1024 - 4);
    let (_, text) = talk.turn(&format!("{longest}x"), fine).await;
    assert_eq!(text, "This prompt has 262145 bytes; I read at most 262144.");
}

#[tokio::test(start_paused = true)]
async fn endings() {
    for (script, finish) in [("refuse", Finish::Refusal), ("max-tokens", Finish::MaxTokens)] {
        let mut talk = Talk::with(&Script, &TOOLS);
        talk.push(Message::user(format!("say half of it & read a & {script}")));
        let reply = talk.step().await.unwrap();
        assert_eq!(reply.finish, Some(finish));
        let Content::Text { text } = &reply.message.content[0] else { panic!("{reply:?}") };
        assert_eq!((&**text, reply.message.tool_calls().count()), ("half of it", 1));
    }
    for (name, kind) in [
        ("unauthorized", LlmErrorKind::Unauthorized),
        ("invalid-request", LlmErrorKind::InvalidRequest),
        ("rate-limited", LlmErrorKind::RateLimited),
        ("provider-failed", LlmErrorKind::ProviderFailed),
        ("unreachable", LlmErrorKind::Unreachable),
        ("truncated", LlmErrorKind::Truncated),
        ("timed-out", LlmErrorKind::TimedOut),
        ("protocol", LlmErrorKind::Protocol),
    ] {
        let mut talk = Talk::with(&Script, &TOOLS);
        talk.push(Message::user(format!("say before & fail {name}")));
        let chunks = talk.chunks().await;
        assert_eq!(chunks[0], Ok(Chunk::Text("before".into())));
        let error = chunks[1].as_ref().unwrap_err();
        assert_eq!((error.kind, &*error.message), (kind, &*format!("the script says: fail {name}")));
        assert_eq!(chunks.len(), 2, "the error is the last");
    }
}

#[tokio::test(start_paused = true)]
async fn waits_and_hangs() {
    let mut talk = Talk::with(&Script, &TOOLS);
    let start = Instant::now();
    talk.turn("wait 1000; read a & wait 500; read b; wait 250; say done", fine).await;
    assert_eq!(start.elapsed(), Duration::from_millis(1_750));

    talk.push(Message::user("say on it & wait 100 & hang"));
    let mut reply = Script.reply(talk.request.clone());
    let start = Instant::now();
    assert_eq!(reply.next().await, Some(Ok(Chunk::Text("on it".into()))));
    assert_eq!(start.elapsed(), Duration::from_millis(100));
    assert!(timeout(Duration::from_secs(86_400), reply.next()).await.is_err(), "it never answers");
}

proptest! {
    #[test]
    fn any_prompt_is_answered(prompt in any::<String>(), history in prop::collection::vec(any::<String>(), 0..3)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut talk = Talk::with(&Script, &TOOLS);
            history.into_iter().for_each(|text| talk.push(Message::assistant(text)));
            talk.push(Message::user(prompt));
            let reply = talk.step().await.unwrap();
            assert_eq!(reply.finish, Some(Finish::Stop));
        });
    }
}
