use std::process::Stdio;

use permission::PresetChosen;
use sandbox::Mode;
use sandbox_policy::ModeSet;
use session::{Seed, SessionId, Source, TurnEnd, TurnReason, TurnStart};
use user_approval::{ApprovalAsked, ApprovalDecided, Outcome, Policy, PolicySet, RequestId};

use super::world::{World, answer, call, denied, in_world, named, prompt, result, said, turn};

/// A turn with one of everything.
fn work(session: &session::Session) {
    session.append(TurnStart { turn: 1 }).unwrap();
    prompt(session, "look\n\tcloser\x1b[2J");
    said(session, "mode: read-only\nscope: fixed\ndate: today\n\na\nb\nc\nd", Source::RuntimeContext);
    answer(session, "I will.\r\n\u{202e}backwards", 1_234);
    call(session, "c1", "read\x07", "{\"path\":\n \"a.txt\"}");
    call(session, "c2", "write", &"x".repeat(500));
    result(session, "c1", &"a line\n".repeat(20));
    denied(session, "c2", "/etc/passwd");
    let reason = Some("write /etc/hosts".into());
    let asked = session.append_with(|seq| ApprovalAsked {
        request_id: RequestId(seq),
        tool: "write".into(),
        call_id: None,
        reason,
        justification: None,
    });
    let request_id = RequestId(asked.unwrap());
    session.append(ApprovalDecided { request_id, outcome: Outcome::Rejected }).unwrap();
    session.append(PresetChosen { name: "careful\x1b".into() }).unwrap();
    session.append(PolicySet::by_user(Policy::Never)).unwrap();
    session.append(TurnEnd { turn: 1, reason: TurnReason::Error { message: Some("no\nluck".into()) } }).unwrap();
}

/// Adds a line as a plugin that nobody here knows would have.
fn foreign(world: &World, id: SessionId, tag: &str) {
    let log = world.log(id);
    let seq = log.lines().count() - 1;
    world.write(id, format!("{log}{{\"seq\":{seq}, \"time\":1, \"type\":\"{tag}\",\"data\":[1,  2]}}\n"));
}

#[tokio::test]
async fn a_transcript_is_for_people() {
    in_world(async |world| {
        let top = world.top().await;
        top.append(ModeSet::by_user(Mode::WorkspaceWrite)).unwrap();
        work(&top);
        let child = world.child(&top, "help\x1b", Seed::ClosedTurns).await;
        child.append(TurnStart { turn: 2 }).unwrap();
        top.release().await.unwrap();
        child.flush().await.unwrap();
        foreign(world, top.id(), "stranger/\\u001b[2Jfact");

        let shown = world.tether(&["sessions", "show", &top.id().to_string()]).printed();
        assert!(!shown.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{shown:?}");
        insta::assert_snapshot!(named(&shown, &[(&top, "TOP")]), @r#"
        session TOP · 2026-09-21 14:13:20 · /home/me/project
        · sandbox mode: workspace-write (user)

        ── turn 1 ──
        prompt
          look
              closer\u{1b}[2J
        context
          mode: read-only
          scope: fixed
          date: today

          a
          b
          … 2 more lines
        I will.
        \u{202e}backwards
        ▸ read\u{7} {"path":\n "a.txt"}
        ▸ write xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
          ✓ read\u{7}
            a line
            a line
            a line
            a line
            a line
            a line
            a line
            a line
            … 12 more lines
          ✗ write failed (sandbox-denied)
            sandbox denied: write /etc/passwd (mode read-only)
        · write asks: write /etc/hosts
        · answer: rejected
        · preset: careful\u{1b}
        · approval policy: never (user)
        ── turn 1: error: no\nluck · 1,235 tokens ──
        · stranger/\u{1b}[2Jfact: unknown event (seq 14)
        "#);

        let shown = world.tether(&["sessions", "show", &child.id().to_string()]).printed();
        let shown = named(&shown, &[(&top, "TOP"), (&child, "CHILD")]);
        let (header, rest) = shown.split_once('\n').unwrap();
        let (_, own) = rest.split_once("── the history").unwrap();
        insta::assert_snapshot!(format!("{header}\n── the history{own}"), @r"
        session CHILD · 2026-09-21 14:13:20 · /home/me/project · child of TOP (at seq 14), depth 1 · open in process PID
        ── the history copied from the parent ends here ──
        · sandbox mode: workspace-write (delegation)
        · approval policy: never (delegation)
        · child: help\u{1b}, spawn, one-shot

        ── turn 2 ──
        ");
    })
    .await;
}

#[tokio::test]
async fn json_is_the_log_byte_for_byte() {
    in_world(async |world| {
        let top = world.top().await;
        work(&top);
        top.release().await.unwrap();
        // Another program's form of the header.
        let log = world.log(top.id()).replacen("{\"format\":1,", "{ \"more\":[],  \"format\": 1 ,", 1);
        world.write(top.id(), log);
        foreign(world, top.id(), "stranger/fact");
        let shown = world.tether(&["sessions", "show", &top.id().to_string(), "--json"]).printed();
        assert_eq!(shown, world.log(top.id()));
    })
    .await;
}

#[tokio::test]
async fn a_torn_tail_is_told_and_left_alone() {
    in_world(async |world| {
        let top = world.top().await;
        turn(&top, 1, TurnReason::Completed);
        top.release().await.unwrap();
        let whole = world.log(top.id());
        world.write(top.id(), whole.clone() + "{\"seq\":4,\"ti");
        let id = top.id().to_string();
        let shown = world.tether(&["sessions", "show", &id, "--json"]);
        assert_eq!((shown.status, &*shown.stdout), (0, &*whole));
        let told = "tether: the last 12 bytes are not a whole line, torn by a crash: they are left out\n";
        assert_eq!(shown.stderr, told);
        let shown = world.tether(&["sessions", "show", &id]);
        assert_eq!((shown.status, &*shown.stderr), (0, told));
        assert!(shown.stdout.contains("turn 1: completed"), "{}", shown.stdout);
    })
    .await;
}

#[tokio::test]
async fn damage_names_file_and_line() {
    in_world(async |world| {
        let top = world.top().await;
        turn(&top, 1, TurnReason::Completed);
        top.release().await.unwrap();
        let id = top.id().to_string();
        let place = format!("tether: /home/sessions/{id}.jsonl:3 is damaged: ");
        let log = world.log(top.id());
        for damage in ["{\"seq\":7,", "{\"\x1b[2J\":7,", "\u{9b}2J{\"seq\":1,"] {
            world.write(top.id(), log.replacen("{\"seq\":1,", damage, 1));
            for command in [["sessions", "show"], ["sessions", "tree"], ["policy", "explain"]] {
                for json in [&[][..], &["--json"]] {
                    let args: Vec<&str> = command.iter().chain([&&*id]).chain(json).copied().collect();
                    let told = world.tether(&args).refused(1);
                    assert!(told.starts_with(&place), "{told:?}");
                    assert!(!told.trim_end().contains(char::is_control), "{told:?}");
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_not_there_is_a_usage_error() {
    in_world(async |world| {
        let id = SessionId::mint().to_string();
        for command in [["sessions", "show"], ["sessions", "tree"], ["policy", "explain"]] {
            let told = world.tether(&[command[0], command[1], &id]).refused(2);
            assert_eq!(told, format!("tether: no session {id}: there is no /home/sessions/{id}.jsonl\n"));
            for bad in ["latest", "../../etc/passwd", &id.to_uppercase()] {
                let refused = world.tether(&[command[0], command[1], bad]);
                assert_eq!((refused.status, &*refused.stdout), (2, ""));
                assert!(refused.stderr.contains("is not a session id"), "{}", refused.stderr);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_error() {
    in_world(async |world| {
        let top = world.top().await;
        prompt(&top, &"more than a pipe holds\n".repeat(20_000));
        top.release().await.unwrap();
        let id = top.id().to_string();
        for args in [&["sessions", "show", &id][..], &["sessions", "show", &id, "--json"]] {
            let mut command = world.command(args);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            drop(child.stdout.take());
            let left = child.wait_with_output().unwrap();
            assert_eq!((left.status.code(), &*left.stderr), (Some(0), &b""[..]));
        }
    })
    .await;
}
