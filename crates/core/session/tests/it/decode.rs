//! Reading: what is kept, what is refused, and where it is said to be wrong.

use session::*;

use crate::support::*;

const START: &str = r#"{"seq":0,"time":1,"type":"turn/start","data":{"turn":1}}"#;

#[test]
fn whatever_was_written_is_written_again_byte_for_byte() {
    let session = session();
    turn(&session, 1);
    session.append(TurnStart { turn: 2 }).unwrap();
    session.append(asks(2, 1, &["a", "b"])).unwrap();
    session.append(answer(2, 1, "a")).unwrap();
    accepted(&session, "later");
    let written = text(&session.snapshot());
    assert_eq!(text(decode(&written).log()), written);
    assert_eq!(lines(&fork(&reopened(&session)).snapshot())[..3], lines(&session.snapshot())[..3]);
}

/// Forms of JSON that we do not write, and read all the same.
#[test]
fn other_forms_mean_the_same() {
    let forms = [
        r#"{"seq":0,"time":1,"type":"turn/start","data":{"turn":1}}"#,
        r#"{ "seq" : 0 , "time" : 1 , "type" : "turn/start" , "data" : { "turn" : 1 } }"#,
        r#"{"seq":0,"time":1,"type":"turn/start","data": {"turn":1} }"#,
        r#"{"data":{"turn":1},"type":"turn/start","time":1,"seq":0}"#,
        r#"{"seq":0,"time":1,"type":"turn\/start","data":{"turn":1}}"#,
        r#"{"seq":0,"time":1,"type":"turn/start","ignorable":false,"data":{"turn":1}}"#,
        r#"{"seq":0,"time":1,"type":"turn/start","data":{"turn":1},"later":{"x":"}"}}"#,
        r#"{"seq":0,"time":1,"type":"turn/start","data":{"turn":1,"later":[]}}"#,
        "{\"seq\":0,\"time\":1,\"type\":\"turn/start\",\"data\":{\"turn\":1}}\r",
    ];
    for line in forms {
        let decoded = decode(&log(&[line]));
        let event = decoded.log().event(0).unwrap();
        assert_eq!((event.get::<TurnStart>(), event.time()), (Some(&TurnStart { turn: 1 }), 1), "{line}");
        assert_eq!((event.tag(), event.is_ignorable()), ("turn/start", false), "{line}");
        assert_eq!(event.to_json(), line);
    }
}

#[test]
fn damage_is_refused_with_its_line() {
    let damaged = [
        "",
        "{",
        "null",
        "nonsense",
        r#"{"seq":1,"time":1,"type":"turn/start"}"#,
        r#"{"seq":1,"time":1,"data":{"turn":1}}"#,
        r#"{"seq":1,"type":"turn/start","data":{"turn":1}}"#,
        r#"{"time":1,"type":"turn/start","data":{"turn":1}}"#,
        r#"{"seq":1,"seq":1,"time":1,"type":"turn/start","data":{"turn":1}}"#,
        r#"{"seq":1,"time":1,"type":"turn/start","data":{"turn":1}"#,
        r#"{"seq":1,"time":1,"type":"turn/start","data":{"turn":1}}}"#,
        r#"{"seq":1,"time":1,"type":"turn/start","data":}"#,
        r#"{"seq":01,"time":1,"type":"turn/start","data":{"turn":1}}"#,
        r#"{"seq":1,"time":00,"type":"turn/start","data":{"turn":1}}"#,
        r#"{"seq":1,"time":,"type":"turn/start","data":{"turn":1}}"#,
        r#"{"seq":-1,"time":1,"type":"turn/start","data":{"turn":1}}"#,
        r#"{"seq":1.0,"time":1,"type":"turn/start","data":{"turn":1}}"#,
        r#"{"seq":99999999999999999999,"time":1,"type":"turn/start","data":{"turn":1}}"#,
        "{\"seq\":1,\"time\":1,\"type\":\"a\tb\",\"data\":{}}",
        r#"{"seq":1,"time":1,"type":"nobody/knows","ignorable":true,"data":{"turn":1}"#,
        r#"{"seq":1,"time":1,"type":"nobody/knows","ignorable":true,"data":{]}}"#,
        r#"{"seq":1,"time":1,"type":"nobody/knows","ignorable":1,"data":{}}"#,
        r#"{"seq":1,"time":1,"type":"user/message","data":{"content":[}}"#,
        r#"{"seq":1,"time":1,"type":"user/message","data":{}{}}"#,
    ];
    for line in damaged {
        match refused(&log(&[START, line, START])) {
            DecodeError::Damaged { line: 3, .. } => {}
            other => panic!("`{line}`: {other}"),
        }
    }
    let error = refused(&log(&[START, "{"])).to_string();
    assert!(error.starts_with("line 3 is damaged: EOF"), "{error}");
}

/// A payload that decides something is read when the log is, so that no policy is met damaged later.
#[test]
fn damage_to_what_decides_is_refused() {
    let decisive = [
        ("turn/start", r#"{"turn":"one"}"#),
        ("turn/end", r#"{"turn":1,"reason":{"kind":"bored"}}"#),
        ("turn/end", r#"{"turn":1}"#),
        ("inbox/accepted", r#"{"id":1}"#),
        ("inbox/claimed", r#"{"ids":[-1]}"#),
        ("inbox/discarded", r#"{"ids":[1]}"#),
        ("session/end-seed", "null"),
        ("sandbox/mode", r#"{"mode":null}"#),
        ("approval/policy", "{}"),
    ];
    for (tag, data) in decisive {
        for ignorable in ["", r#""ignorable":true,"#] {
            let line = format!(r#"{{"seq":1,"time":1,"type":"{tag}",{ignorable}"data":{data}}}"#);
            assert!(matches!(refused(&log(&[START, &line])), DecodeError::Damaged { line: 3, .. }), "{line}");
        }
    }
}

#[test]
fn other_damage_is_an_error_where_somebody_asks() {
    let bad = r#"{"seq":1,"time":1,"type":"user/message","data":{"id":"one"}}"#;
    let end = r#"{"seq":2,"time":1,"type":"turn/end","data":{"turn":1,"reason":{"kind":"completed"}}}"#;
    let decoded = decode(&log(&[START, bad, end]));
    let event = decoded.log().event(1).unwrap().clone();
    let damaged = event.decode::<UserMessage>().unwrap_err();
    assert_eq!((damaged.seq, &*damaged.tag), (1, "user/message"));
    assert!(damaged.to_string().starts_with("event 1 (user/message) is damaged: invalid type"), "{damaged}");
    assert!(event.get::<UserMessage>().is_none() && event.typed::<UserMessage>().is_none());
    assert!(event.decode::<TurnStart>().unwrap().is_none(), "of another type, damaged or not");
    assert_eq!(event.message().unwrap_err(), damaged);
    assert_eq!(decoded.log().messages().unwrap_err(), damaged);
    assert_eq!((event.to_json(), event.is_known()), (bad.to_owned(), true));
    assert!(decoded.log().latest::<UserMessage>().is_none());
    let session = house().resume(decoded).unwrap();
    assert_eq!(session.messages().unwrap_err(), damaged);
    assert!(session.latest::<UserMessage>().is_none());
    user(&session, "more");
    assert_eq!(session.messages().unwrap_err(), damaged, "and again");
    assert_eq!(session.latest::<UserMessage>().unwrap().message.text(), "more");
    assert_eq!(fork(&session).messages().unwrap_err(), damaged, "its copy is no better");
}

#[test]
fn gaps_and_repetitions() {
    let at = |seq: u64| format!(r#"{{"seq":{seq},"time":1,"type":"test/note","data":{{"n":1}}}}"#);
    for (seqs, line, found, expected) in [
        (&[1][..], 2, 1, 0),
        (&[0, 2], 3, 2, 1),
        (&[0, 0], 3, 0, 1),
        (&[0, 1, 2, 1], 5, 1, 3),
        (&[0, u64::MAX], 3, u64::MAX, 1),
    ] {
        let lines: Vec<String> = seqs.iter().map(|seq| at(*seq)).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let error = refused(&log(&lines));
        assert!(
            matches!(error, DecodeError::Gap { line: l, found: f, expected: e } if (l, f, e) == (line, found, expected)),
            "{seqs:?}: {error}"
        );
        assert_eq!(error.to_string(), format!("line {line} has seq {found} where {expected} belongs"));
    }
}

#[test]
fn hardly_any_text() {
    assert!(matches!(refused(""), DecodeError::NoHeader));
    assert!(matches!(refused("\n"), DecodeError::Header(_)));
    assert!(matches!(refused(&format!("\n{TOP}\n")), DecodeError::Header(_)));
    for text in [TOP.to_owned(), format!("{TOP}\n")] {
        let decoded = decode(&text);
        assert!(decoded.log().is_empty() && decoded.foreign().is_empty());
        assert_eq!(decoded.log().messages().unwrap().len(), 0);
        let session = house().resume(decoded).unwrap();
        assert_eq!((session.len(), session.first_live_seq()), (0, 0));
        session.append(TurnStart { turn: 1 }).unwrap();
    }
    let unfinished = log(&[START]);
    assert_eq!(decode(unfinished.trim_end()).log().len(), 1, "what is torn is the store's to say");
}

/// Nesting that no stack could follow is either kept unread or an error, never a crash.
#[test]
fn nesting_without_end() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let unknown = format!(r#"{{"seq":0,"time":1,"type":"deep/unknown","ignorable":true,"data":{deep}}}"#);
    let extra = format!(r#"{{"seq":1,"time":1,"type":"turn/start","data":{{"turn":1,"later":{deep}}}}}"#);
    let meta = format!(
        r#"{{"seq":2,"time":1,"type":"tool/result","data":{{"turn":1,"step":1,"callId":"a","content":[],"isError":false,"meta":{deep}}}}}"#
    );
    let lines = [&*unknown, &extra, &meta];
    let decoded = decode(&log(&lines));
    assert!(decoded.log().events().iter().map(Event::to_json).eq(lines));
    assert_eq!(decoded.log().messages().unwrap().len(), 1);
    let meta = decoded.log().latest::<ToolReturned>().unwrap().meta.clone().unwrap();
    assert_eq!(meta.get(), deep);
    for data in [
        format!(r#"{{"id":0,"content":{deep},"source":{{"kind":"prompt"}}}}"#),
        format!(r#"{{"id":0,"content":[],"source":{{"kind":"prompt","later":{deep}}}}}"#),
        format!(
            r#"{{"id":0,"content":[{}"#,
            r#"{"type":"tool-result","callId":"a","isError":false,"content":["#.repeat(50_000)
        ) + &"]}".repeat(50_000)
            + r#"],"source":{"kind":"prompt"}}"#,
    ] {
        let line = format!(r#"{{"seq":0,"time":1,"type":"user/message","data":{data}}}"#);
        assert!(decode(&log(&[&line])).log().messages().is_err());
    }
    let reason =
        format!(r#"{{"seq":0,"time":1,"type":"turn/end","data":{{"turn":1,"reason":{{"kind":"error","x":{deep}}}}}}}"#);
    assert!(refused(&log(&[&reason])).to_string().contains("recursion limit"));
}

#[test]
fn unknown_events_are_kept_and_read_as_unknown() {
    let may = r#"{"seq":1, "time":9,"type":"new/hint","ignorable":true,"data":{"a" : [1, 2]},"later":1}"#;
    let must = r#"{"seq":2,"time":9,"type":"new/rule","data":null}"#;
    let twice = r#"{"seq":3,"time":9,"type":"new/rule","data":"é\u0000"}"#;
    let other = r#"{"seq":4,"time":9,"type":"new/\"law\"","data":{}}"#;
    let decoded = decode(&log(&[START, may]));
    assert!(decoded.foreign().is_empty());
    let event = decoded.log().event(1).unwrap();
    assert_eq!((event.tag(), event.is_known(), event.is_ignorable()), ("new/hint", false, true));
    assert_eq!((event.seq(), event.time(), event.to_json().as_str()), (1, 9, may));
    assert!(event.get::<TurnStart>().is_none() && event.message().unwrap().is_none());
    let session = house().resume(decoded).unwrap();
    assert_eq!(lines(&session.snapshot())[1], may, "and kept in the log that goes on");
    let decoded = decode(&log(&[START, may, must, twice, other]));
    assert_eq!(decoded.foreign(), ["new/rule".into(), "new/\"law\"".into()], "each once, in order");
    assert_eq!(lines(decoded.log())[1..], [may, must, twice, other]);
    assert_eq!(decoded.log().messages().unwrap().len(), 0);
    let error = house().resume(decoded).unwrap_err();
    assert_eq!(error, ResumeError::Foreign(vec!["new/rule".into(), "new/\"law\"".into()]));
    let said =
        "the log holds events that this program does not know (new/rule, new/\"law\"): it can be read, not continued";
    assert_eq!(error.to_string(), said);
}

#[test]
fn so_many_unknown_types_are_named_and_no_more() {
    let line = |n| format!(r#"{{"seq":{n},"time":9,"type":"new/{n}","data":0}}"#);
    let lines: Vec<String> = (0..200).map(line).collect();
    let decoded = decode(&log(&lines.iter().map(String::as_str).collect::<Vec<_>>()));
    assert_eq!((decoded.foreign().len(), &*decoded.foreign()[31]), (32, "new/31"));
    assert_eq!(decoded.log().len(), 200);
}

/// One line by itself, wherever in its log it stands.
#[test]
fn single_lines() {
    let vocabulary = house().vocabulary();
    let line = r#"{"seq":7,"time":1,"type":"user/message","data":{"id":7,"content":[],"source":{"kind":"report"}}}"#;
    let event = vocabulary.decode_event(line).unwrap();
    assert_eq!((event.seq(), event.to_json().as_str()), (7, line));
    assert_eq!(event.get::<UserMessage>().unwrap().source, Source::Report);
    let spaced = line.replace(":7,", ": 7,");
    assert_eq!(vocabulary.decode_event(&spaced).unwrap().to_json(), spaced);
    assert!(!vocabulary.decode_event(&line.replace("user/", "abuser/")).unwrap().is_known());
    for wrong in ["", "{}", &line[1..], r#"{"seq":0,"time":1,"type":"turn/start","data":{}}"#] {
        assert!(vocabulary.decode_event(wrong).is_err(), "{wrong}");
    }
}

/// In our own form of a line as in any other.
#[test]
fn what_may_be_skipped_does_not_refuse_writing() {
    for form in [
        r#"{"seq":0,"time":9,"type":"new/hint","ignorable":true,"data":{}}"#,
        r#"{"seq":0,"time":9,"type":"new/hint","data":{},"ignorable":true}"#,
    ] {
        let decoded = decode(&log(&[form]));
        assert!(decoded.foreign().is_empty() && decoded.log().event(0).unwrap().is_ignorable(), "{form}");
        assert_eq!(house().resume(decoded).unwrap().len(), 1);
        let known = decode(&log(&[&form.replace("new/hint", "test/note").replace("{}", r#"{"n":1}"#)]));
        assert!(known.log().event(0).unwrap().is_ignorable() && known.log().event(0).unwrap().is_known());
    }
}

/// The line says whether it may be skipped, not the version that reads it.
#[test]
fn the_writer_decides_what_is_ignorable() {
    let ours = r#"{"seq":0,"time":1,"type":"test/note","data":{"n":1}}"#;
    let house = Sessions::new();
    assert_eq!(house.vocabulary().decode(log(&[ours])).unwrap().foreign(), ["test/note".into()]);
    house.learn::<Note>().unwrap();
    let decoded = house.vocabulary().decode(log(&[ours])).unwrap();
    assert!(decoded.foreign().is_empty() && !decoded.log().event(0).unwrap().is_ignorable());
    assert_eq!(house.resume(decoded).unwrap().latest::<Note>().unwrap().n, 1);
}

#[test]
fn a_vocabulary_only_grows_and_a_tag_has_one_type() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Impostor;
    impl Payload for Impostor {
        const TAG: &'static str = "turn/end";
    }
    let house = Sessions::new();
    assert_eq!(house.learn::<Impostor>(), Err(TagTaken("turn/end")));
    assert_eq!(house.learn::<TurnEnd>(), Ok(()), "learnt already");
    let before = house.vocabulary();
    house.learn::<Note>().unwrap();
    let note = log(&[r#"{"seq":0,"time":1,"type":"test/note","data":{"n":1}}"#]);
    assert!(!before.decode(note.clone()).unwrap().log().event(0).unwrap().is_known());
    assert!(house.vocabulary().decode(note).unwrap().log().event(0).unwrap().is_known());
}

#[test]
fn ids_are_taken_in_one_form_only() {
    let id = "01999999-0000-7000-8000-00000000000a";
    assert_eq!(id.parse::<SessionId>().unwrap().to_string(), id);
    for wrong in [
        "",
        "01999999-0000-7000-8000-00000000000A",
        "01999999000070008000-00000000000a",
        "0199999900007000800000000000000a",
        "{01999999-0000-7000-8000-00000000000a}",
        "urn:uuid:01999999-0000-7000-8000-00000000000a",
        "01999999-0000-7000-8000-00000000000a\n",
        "../../../../../../../../../../etc/passwd",
    ] {
        let said = wrong.parse::<SessionId>().unwrap_err().to_string();
        assert!(said.contains("is not a session id"), "{said}");
    }
    let long = "x".repeat(100_000).parse::<SessionId>().unwrap_err().to_string();
    assert!(long.len() < 200, "what was wrong is quoted in part");
}

/// Long enough to be read by several threads: whoever reads what, the first thing that is wrong is named.
#[test]
fn a_long_log_is_read_like_a_short_one() {
    let line = |seq: usize| format!(r#"{{"seq":{seq},"time":1,"type":"turn/start","data":{{"turn":{seq}}}}}"#);
    let lines: Vec<String> = (0..80_000).map(line).collect();
    let with = |changes: &[(usize, &str)]| {
        let mut lines = lines.clone();
        changes.iter().for_each(|(at, line)| lines[*at] = (*line).to_owned());
        log(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let sound = with(&[]);
    assert!(sound.len() > 4 << 20);
    assert_eq!(text(decode(&sound).log()), sound);
    assert_eq!(decode(&sound).log().latest::<TurnStart>(), Some(&TurnStart { turn: 79_999 }));

    let foreign = with(&[
        (7, r#"{"seq":7,"time":1,"type":"a/first","data":{}}"#),
        (70_000, r#"{"seq":70000,"time":1,"type":"a/last","data":{}}"#),
    ]);
    assert_eq!(decode(&foreign).foreign(), ["a/first".into(), "a/last".into()]);
    let twice = line(9);
    for at in [3, 39_998, 79_999] {
        match refused(&with(&[(at, "{"), (79_999, "{")])) {
            DecodeError::Damaged { line, .. } => assert_eq!(line, at + 2),
            other => panic!("{other}"),
        }
        match refused(&with(&[(at, &twice), (79_999, if at == 79_999 { &twice } else { "{" })])) {
            DecodeError::Gap { line, found: 9, expected } => assert_eq!((line, expected), (at + 2, at as u64)),
            other => panic!("{other}"),
        }
    }
}
