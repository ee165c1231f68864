//! The bytes of a log: what a person, another program and the next version read.

use std::sync::Arc;

use llm::{Content, Message, Role, Sampling, ToolCall, ToolSchema, Usage};
use serde_json::value::RawValue;
use session::*;

use crate::support::*;

/// Appends it, pins its line, and reads it back.
fn pinned<E: Payload>(payload: E, line: &str) {
    let session = session();
    session.append(payload).unwrap();
    let written = session.snapshot().event(0).unwrap().to_json();
    assert_eq!(written, line);
    let read = decode(&log(&[line])).log().event(0).unwrap().clone();
    assert_eq!(read.to_json(), line, "byte for byte");
    assert_eq!((read.seq(), read.time(), read.tag(), read.is_known()), (0, NOW, E::TAG, true));
    let again = session.house().create("/abs");
    let data = serde_json::to_string(read.decode::<E>().unwrap().expect("of this type")).unwrap();
    again.append(serde_json::from_str::<E>(&data).unwrap()).unwrap();
    assert_eq!(again.snapshot().event(0).unwrap().to_json(), line, "nothing was lost in reading");
}

#[test]
fn the_example_of_the_format() {
    let session = session();
    for n in 0..43 {
        session.append(Note { n }).unwrap();
    }
    session.append(Mode { mode: "read-only".into(), source: Some("delegation".into()) }).unwrap();
    assert_eq!(
        session.snapshot().event(43).unwrap().to_json(),
        r#"{"seq":43,"time":1790000000123,"type":"sandbox/mode","data":{"mode":"read-only","source":"delegation"}}"#
    );
}

#[test]
fn an_ignorable_event_says_so_before_its_data() {
    pinned(Note { n: 7 }, r#"{"seq":0,"time":1790000000123,"type":"test/note","ignorable":true,"data":{"n":7}}"#);
}

#[test]
fn turns() {
    pinned(TurnStart { turn: 3 }, r#"{"seq":0,"time":1790000000123,"type":"turn/start","data":{"turn":3}}"#);
    let ends = [
        (TurnReason::Completed, r#"{"kind":"completed"}"#),
        (TurnReason::MaxTokens, r#"{"kind":"max-tokens"}"#),
        (TurnReason::Aborted { cause: None }, r#"{"kind":"aborted"}"#),
        (TurnReason::Aborted { cause: Some("user".into()) }, r#"{"kind":"aborted","cause":"user"}"#),
        (TurnReason::Blocked { message: None }, r#"{"kind":"blocked"}"#),
        (TurnReason::Blocked { message: Some("no".into()) }, r#"{"kind":"blocked","message":"no"}"#),
        (TurnReason::Error { message: None }, r#"{"kind":"error"}"#),
        (TurnReason::Error { message: Some("net".into()) }, r#"{"kind":"error","message":"net"}"#),
        (TurnReason::Interrupted, r#"{"kind":"interrupted"}"#),
    ];
    for (reason, json) in ends {
        let line = format!(r#"{{"seq":0,"time":1790000000123,"type":"turn/end","data":{{"turn":3,"reason":{json}}}}}"#);
        pinned(TurnEnd { turn: 3, reason }, &line);
    }
}

#[test]
fn steps() {
    let (turn, step) = (3, 2);
    pinned(
        StepStart { turn, step },
        r#"{"seq":0,"time":1790000000123,"type":"step/start","data":{"turn":3,"step":2}}"#,
    );
    pinned(StepEnd { turn, step }, r#"{"seq":0,"time":1790000000123,"type":"step/end","data":{"turn":3,"step":2}}"#);
}

#[test]
fn messages() {
    let said = |source| UserMessage { id: MessageId(0), message: Arc::new(Message::user("hi")), source };
    let sources = [
        (Source::Prompt, "prompt"),
        (Source::RuntimeContext, "runtime-context"),
        (Source::Report, "report"),
        (Source::Notice, "notice"),
    ];
    for (source, kind) in sources {
        let line = format!(
            r#"{{"seq":0,"time":1790000000123,"type":"user/message","data":{{"id":0,"content":[{{"type":"text","text":"hi"}}],"source":{{"kind":"{kind}"}}}}}}"#
        );
        pinned(said(source), &line);
    }
    let thought = |signature| Content::Thinking { text: "hm".into(), signature };
    let picture = Content::Image { media_type: "image/png".into(), data: "AA==".into() };
    let asked = ToolCall { call_id: "c1".into(), name: "read".into(), arguments: r#"{"a":"é"}"#.into() };
    let content =
        vec![thought(None), thought(Some("s".into())), Content::text("\"\n"), picture, Content::ToolCall(asked)];
    let message = Arc::new(Message { role: Role::Assistant, content });
    pinned(
        AssistantMessage { turn: 1, step: 1, message: message.clone(), usage: None, interrupted: false },
        concat!(
            r#"{"seq":0,"time":1790000000123,"type":"assistant/message","data":{"turn":1,"step":1,"message":{"role":"assistant","content":["#,
            r#"{"type":"thinking","text":"hm"},{"type":"thinking","text":"hm","signature":"s"},{"type":"text","text":"\"\n"},"#,
            r#"{"type":"image","mediaType":"image/png","data":"AA=="},"#,
            r#"{"type":"tool-call","callId":"c1","name":"read","arguments":"{\"a\":\"é\"}"}]}}}"#,
        ),
    );
    let usage = Some(Usage { input_tokens: 5, output_tokens: 6, cached_input_tokens: 4 });
    let message = Arc::new(Message::assistant("cut"));
    pinned(
        AssistantMessage { turn: 1, step: 1, message, usage, interrupted: true },
        concat!(
            r#"{"seq":0,"time":1790000000123,"type":"assistant/message","data":{"turn":1,"step":1,"message":{"role":"assistant","content":["#,
            r#"{"type":"text","text":"cut"}]},"usage":{"inputTokens":5,"outputTokens":6,"cachedInputTokens":4},"interrupted":true}}"#,
        ),
    );
}

#[test]
fn tools() {
    pinned(
        ToolCalled { turn: 1, step: 2, call_id: "c1".into(), name: "read".into(), arguments: "{not json".into() },
        r#"{"seq":0,"time":1790000000123,"type":"tool/call","data":{"turn":1,"step":2,"callId":"c1","name":"read","arguments":"{not json"}}"#,
    );
    pinned(
        answer(1, 2, "c1"),
        r#"{"seq":0,"time":1790000000123,"type":"tool/result","data":{"turn":1,"step":2,"callId":"c1","content":[{"type":"text","text":"done"}],"isError":false}}"#,
    );
    let denied = ToolReturned {
        is_error: true,
        error: Some(ToolErrorCode { code: "sandbox-denied".into() }),
        meta: Some(RawValue::from_string(r#"{"path" : "/x"}"#.into()).unwrap().into()),
        ..answer(1, 2, "c1")
    };
    pinned(
        denied,
        concat!(
            r#"{"seq":0,"time":1790000000123,"type":"tool/result","data":{"turn":1,"step":2,"callId":"c1","content":[{"type":"text","text":"done"}],"#,
            r#""isError":true,"error":{"code":"sandbox-denied"},"meta":{"path" : "/x"}}}"#,
        ),
    );
}

#[test]
fn request_headers() {
    let input_schema = Arc::new(serde_json::json!({ "type": "object" }));
    let tool = ToolSchema { name: "read".into(), description: "reads".into(), input_schema };
    let header = RequestHeader {
        provider: "script".into(),
        model: "none".into(),
        sampling: Sampling { max_tokens: Some(9), temperature: Some(0.5) },
        system: "be".into(),
        tools: [tool].into(),
    };
    pinned(
        RequestHeaderEvent { reason: HeaderReason::Initial, header: header.into() },
        concat!(
            r#"{"seq":0,"time":1790000000123,"type":"request/header","data":{"reason":"initial","header":{"provider":"script","model":"none","#,
            r#""sampling":{"maxTokens":9,"temperature":0.5},"system":"be","#,
            r#""tools":[{"name":"read","description":"reads","inputSchema":{"type":"object"}}]}}}"#,
        ),
    );
    let header = RequestHeader {
        provider: "script".into(),
        model: "none".into(),
        sampling: Sampling::default(),
        system: "".into(),
        tools: Arc::default(),
    };
    pinned(
        RequestHeaderEvent { reason: HeaderReason::Changed, header: header.into() },
        concat!(
            r#"{"seq":0,"time":1790000000123,"type":"request/header","data":{"reason":"changed","header":{"provider":"script","model":"none","#,
            r#""sampling":{},"system":"","tools":[]}}}"#,
        ),
    );
}

#[test]
fn the_inbox() {
    for (delivery, name) in [(Delivery::Followup, "followup"), (Delivery::Steer, "steer"), (Delivery::Inject, "inject")]
    {
        let message = Arc::new(Message::user("hi"));
        let line = format!(
            r#"{{"seq":0,"time":1790000000123,"type":"inbox/accepted","data":{{"id":0,"delivery":"{name}","content":[{{"type":"text","text":"hi"}}],"source":{{"kind":"prompt"}}}}}}"#
        );
        pinned(InboxAccepted { id: MessageId(0), delivery, message, source: Source::Prompt }, &line);
    }
    let ids = vec![MessageId(4), MessageId(5)];
    pinned(
        InboxClaimed { ids: ids.clone() },
        r#"{"seq":0,"time":1790000000123,"type":"inbox/claimed","data":{"ids":[4,5]}}"#,
    );
    pinned(
        InboxDiscarded { ids, cause: "cleared".into() },
        r#"{"seq":0,"time":1790000000123,"type":"inbox/discarded","data":{"ids":[4,5],"cause":"cleared"}}"#,
    );
}

#[test]
fn titles_and_the_end_of_a_seed() {
    pinned(
        SessionTitle { title: "t".into(), source: "user".into() },
        r#"{"seq":0,"time":1790000000123,"type":"session/title","data":{"title":"t","source":"user"}}"#,
    );
    pinned(EndSeed {}, r#"{"seq":0,"time":1790000000123,"type":"session/end-seed","data":{}}"#);
}

/// A later version's source is read as one, and kept as it was written.
#[test]
fn a_source_from_the_future() {
    let line =
        r#"{"seq":0,"time":1,"type":"user/message","data":{"id":0,"content":[],"source":{"kind":"telepathy","x":1}}}"#;
    let decoded = decode(&log(&[line]));
    let event = decoded.log().event(0).unwrap();
    assert_eq!(event.decode::<UserMessage>().unwrap().unwrap().source, Source::Other);
    assert_eq!(event.to_json(), line);
}

const CHILD: &str = r#"{"format":1,"id":"01999999-0000-7000-8000-000000000002","createdAt":1790000000000,"cwd":"/abs","parentSession":"01999999-0000-7000-8000-000000000001","parentSeq":57,"seedLength":42,"origin":"subagent","delegationDepth":1}"#;

#[test]
fn headers() {
    let header = Vocabulary::decode_header(CHILD).unwrap();
    let lineage = header.lineage().unwrap();
    assert_eq!(header.id().to_string(), "01999999-0000-7000-8000-000000000002");
    assert_eq!(lineage.parent().to_string(), "01999999-0000-7000-8000-000000000001");
    assert_eq!((header.created_at(), &**header.cwd(), header.seed_length()), (1_790_000_000_000, "/abs", 42));
    assert_eq!((lineage.parent_seq(), lineage.origin(), lineage.depth(), header.depth()), (57, "subagent", 1, 1));
    assert_eq!(serde_json::to_string(&header).unwrap(), CHILD);
    let top = Vocabulary::decode_header(TOP).unwrap();
    assert_eq!((top.lineage(), top.depth(), top.seed_length()), (None, 0, 0));
    assert_eq!(serde_json::to_string(&top).unwrap(), TOP);
    let unseeded = CHILD.replace(r#""seedLength":42,"#, "");
    let header = Vocabulary::decode_header(&unseeded).unwrap();
    assert_eq!((header.seed_length(), serde_json::to_string(&header).unwrap()), (0, unseeded));
    let newer = TOP.replace('}', r#","later":[1]}"#);
    assert_eq!(Vocabulary::decode_header(&newer).unwrap(), top, "what is not known is skipped");
}

#[test]
fn headers_of_new_sessions() {
    let parent = session();
    let id = parent.id();
    assert_eq!(
        serde_json::to_string(&**parent.header()).unwrap(),
        format!(r#"{{"format":1,"id":"{id}","createdAt":{NOW},"cwd":"/abs"}}"#)
    );
    turn(&parent, 1);
    parent.append(TurnStart { turn: 2 }).unwrap();
    let (spawned, forked) = (spawn(&parent), fork(&parent));
    let child = |child: &Session, seed: &str| {
        let own = child.id();
        format!(
            r#"{{"format":1,"id":"{own}","createdAt":{NOW},"cwd":"/abs","parentSession":"{id}","parentSeq":4,{seed}"origin":"subagent","delegationDepth":1}}"#
        )
    };
    assert_eq!(serde_json::to_string(&**spawned.header()).unwrap(), child(&spawned, ""));
    assert_eq!(serde_json::to_string(&**forked.header()).unwrap(), child(&forked, r#""seedLength":3,"#));
    assert!(parent.id() < spawned.id(), "ids sort by the time of minting");
}

#[test]
fn headers_that_are_none() {
    let without = |field: &str| {
        let mut header: serde_json::Map<_, _> = serde_json::from_str(CHILD).unwrap();
        header.remove(field).expect("there");
        serde_json::Value::Object(header).to_string()
    };
    let with = |field: &str, value: serde_json::Value| {
        let mut header: serde_json::Map<_, _> = serde_json::from_str(CHILD).unwrap();
        header.insert(field.into(), value);
        serde_json::Value::Object(header).to_string()
    };
    let says = |line: &str, error: &dyn ToString| {
        let DecodeError::Header(source) = Vocabulary::decode_header(line).unwrap_err() else {
            panic!("another error for {line}");
        };
        let said = source.to_string();
        assert!(said.contains(&error.to_string()), "{line} gave: {said}");
        assert!(refused(&format!("{line}\n")).to_string().starts_with("line 1 is not a header: "));
    };
    says(&with("format", 2.into()), &HeaderError::Format(2));
    says(&with("format", 0.into()), &HeaderError::Format(0));
    for field in ["parentSession", "parentSeq", "origin", "delegationDepth"] {
        says(&without(field), &HeaderError::Lineage);
    }
    says(&with("delegationDepth", 0.into()), &HeaderError::Depth);
    says(&TOP.replace('}', r#","seedLength":3}"#), &HeaderError::Seed);
    for field in ["format", "id", "createdAt", "cwd"] {
        says(&without(field), &format!("missing field `{field}`"));
    }
    says(&with("id", "../../etc/passwd".into()), &"`../../etc/passwd` is not a session id");
    says(&with("id", "01999999000070008000000000000001".into()), &"is not a session id");
    says(&with("createdAt", (-1).into()), &"invalid value");
    says("{", &"EOF");
    says("[]", &"");
    says("", &"EOF");
}
