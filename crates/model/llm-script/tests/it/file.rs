use std::time::Duration;

use futures_util::StreamExt as _;
use llm::{Chunk, Content, Finish, LlmAdapter as _, LlmErrorKind, Message, Usage};
use llm_script::{FileScript, FileScriptError};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::time::{Instant, timeout};

use crate::talk::{Talk, shown};

fn model(lines: &str) -> FileScript {
    FileScript::parse("replies.jsonl", lines).unwrap()
}

#[tokio::test(start_paused = true)]
async fn lines_answer_by_prompt_and_step() {
    let model = model(
        r#"{"prompt": "child A", "calls": [{"name": "write", "arguments": {"path": "a", "n": 1.50}}]}

{"prompt": "child A", "text": "A is done"}
{"prompt": "child B", "step": 1, "text": "B is done"}
{"prompt": "child B", "step": 0, "calls": [{"name": "bash", "arguments": "{not json"}, {"name": "list", "arguments": {}}]}
{"text": "anyone, first"}
{"calls": [{"name": "late", "arguments": ""}]}
{"prompt": "child A", "text": "A again"}"#,
    );
    let fine = |_: &llm::ToolCall| Ok(String::new());
    let (mut a, mut b, mut other) = (Talk::with(&model, &[]), Talk::with(&model, &[]), Talk::with(&model, &[]));
    let (steps, text) = a.turn("you are child A", fine).await;
    assert_eq!((shown(&steps), &*text), (vec![r#"write {"path": "a", "n": 1.50}"#.to_owned()], "A is done"));
    let (steps, text) = b.turn("you are child B", fine).await;
    assert_eq!((shown(&steps), &*text), (vec!["bash {not json & list {}".to_owned()], "B is done"));
    assert_eq!(steps[0].iter().map(|call| &*call.call_id).collect::<Vec<_>>(), ["script-1-0", "script-1-1"]);
    assert_eq!(other.turn("someone else", fine).await.1, "anyone, first");
    assert_eq!(a.step().await.unwrap().message.text(), "A again");
    let none = a.step().await.unwrap_err();
    assert_eq!(none.kind, LlmErrorKind::InvalidRequest);
    assert_eq!(none.message, "no line of replies.jsonl answers step 3 of the prompt `you are child A`");
}

#[tokio::test(start_paused = true)]
async fn a_reply_in_full() {
    let model = model(
        r#"{"thoughts": "hm", "chunks": ["a", "b"], "calls": [{"name": "t", "arguments": "x"}], "finish": "max-tokens", "usage": {"input_tokens": 1, "output_tokens": 2, "cached_input_tokens": 1}}"#,
    );
    let mut talk = Talk::with(&model, &[]);
    talk.push(Message::user("go"));
    let chunks: Vec<Chunk> = talk.chunks().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(chunks[..3], [Chunk::Thought("hm".into()), Chunk::Text("a".into()), Chunk::Text("b".into())]);
    assert!(matches!(&chunks[3], Chunk::ToolCall(call) if &*call.arguments == "x"));
    let usage = Usage { input_tokens: 1, output_tokens: 2, cached_input_tokens: 1 };
    assert_eq!(chunks[4..], [Chunk::Usage(usage), Chunk::End(Finish::MaxTokens)]);
    let reply = talk.step().await.unwrap();
    assert!(matches!(&reply.message.content[0], Content::Thinking { text, .. } if &**text == "hm"));
}

#[tokio::test(start_paused = true)]
async fn replies_that_do_not_end_well() {
    let model = model(
        r#"{"prompt": "error", "text": "half", "error": {"kind": "rate-limited", "message": "slow down"}}
{"prompt": "cut", "text": "half", "cut": true}
{"prompt": "late", "text": "finally", "delay_ms": 60000, "finish": "stop"}
{"prompt": "refuse", "finish": "refusal", "hang": false}
{"prompt": "hang", "text": "half", "hang": true}"#,
    );
    let talk = |prompt: &str| {
        let mut talk = Talk::with(&model, &[]);
        talk.push(Message::user(prompt));
        talk
    };
    let half = Ok(Chunk::Text("half".into()));
    let error = talk("error").chunks().await;
    assert_eq!((&error[0], error.len()), (&half, 2));
    assert_eq!(error[1].as_ref().unwrap_err().kind, LlmErrorKind::RateLimited);
    assert_eq!(error[1].as_ref().unwrap_err().message, "slow down");
    assert_eq!(talk("cut").chunks().await, std::slice::from_ref(&half));
    assert_eq!(talk("cut").step().await.unwrap_err().kind, LlmErrorKind::Truncated);
    let start = Instant::now();
    assert_eq!(talk("late").step().await.unwrap().message.text(), "finally");
    assert_eq!(start.elapsed(), Duration::from_secs(60));
    assert_eq!(talk("refuse").step().await.unwrap().finish, Some(Finish::Refusal));
    let mut reply = model.reply(talk("hang").request);
    assert_eq!(reply.next().await, Some(half));
    assert!(timeout(Duration::from_secs(86_400), reply.next()).await.is_err());
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_field() {
    let check = |line: &str, said: &str| {
        let error = FileScript::parse("r.jsonl", &format!("{{}}\n{line}")).unwrap_err();
        assert_eq!(error.to_string(), format!("r.jsonl:2: {said}"), "{line}");
    };
    check("nonsense", "column 2: expected ident");
    check(
        r#"{"txt": "x"}"#,
        "column 6: unknown field `txt`, expected one of `prompt`, `step`, `text`, `chunks`, `thoughts`, `calls`, \
         `usage`, `finish`, `error`, `delay_ms`, `hang`, `cut`",
    );
    check(r#"{"text": "a", "text": "b"}"#, "column 20: duplicate field `text`");
    check(r#"{"step": "one"}"#, "`step`: invalid type: string \"one\", expected usize");
    check(r#"{"text": "a", "chunks": ["b"]}"#, "`chunks`: a reply has `text` or `chunks`, not both");
    check(r#"{"calls": [{"name": "t"}]}"#, "`calls`: missing field `arguments`");
    check(
        r#"{"calls": [{"name": "t", "arguments": [1]}]}"#,
        "`calls`: the arguments of `t` are neither an object nor a string",
    );
    check(
        r#"{"usage": {"tokens": 1}}"#,
        "`usage`: unknown field `tokens`, expected one of `input_tokens`, `output_tokens`, `cached_input_tokens`",
    );
    check(
        r#"{"finish": "maybe"}"#,
        "`finish`: unknown variant `maybe`, expected one of `stop`, `max-tokens`, `refusal`",
    );
    check(
        r#"{"error": {"kind": "bad", "message": ""}}"#,
        "`error`: no kind `bad`; there are: unauthorized, invalid-request, rate-limited, provider-failed, unreachable, \
         truncated, timed-out, protocol",
    );
    check(r#"{"hang": true, "cut": true}"#, "`cut`: the reply has an end already: `hang`");
    check(r#"{"delay_ms": 60001}"#, "`delay_ms`: more than 60000");
}

#[test]
fn files_are_bounded_and_must_be_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("replies.jsonl");
    assert!(matches!(FileScript::open(&path), Err(FileScriptError::Read { .. })));
    std::fs::write(&path, b"\xff\n").unwrap();
    assert!(matches!(FileScript::open(&path), Err(FileScriptError::Read { .. })));
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(16 * 1024 * 1024 + 1).unwrap();
    assert!(matches!(FileScript::open(&path), Err(FileScriptError::TooLarge { .. })));
    std::fs::write(&path, " \n".repeat(8 * 1024 * 1024)).unwrap();
    assert!(FileScript::open(&path).is_ok());
}

#[test]
fn a_pipe_that_nobody_writes_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for path in [path, folder.path().to_owned(), "/dev/null".into()] {
        let error = FileScript::open(&path).unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("not a regular file"), "{error}");
    }
}
