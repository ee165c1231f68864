//! What is kept of an output.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use context::Scope;
use subprocess::{Finished, How, Limits, Process, SpillTo, run};
use tokio_util::sync::CancellationToken;

use crate::harness;
use crate::support::{finish, limits, run_in, sh, within};

async fn spilling(script: &str, dir: &Path, most: u64) -> Finished {
    let scope = Scope::root("test");
    let spill = Some(SpillTo { dir: dir.to_owned(), most });
    let finished = run_in(&scope, sh(script), &Limits { head: 10, tail: 20, spill, ..limits() }).await;
    within(scope.close()).await.unwrap();
    finished
}

#[test]
fn a_hundred_megabytes_cost_little_memory_and_are_on_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let spills = dir.path().join("of/commands");
    let said = harness::says(harness::start("flood", &[spills.to_str().unwrap()]));
    let (grown, text) = said.split_once('\n').unwrap();
    assert!(grown.parse::<u64>().unwrap() < 8 * 1024, "{grown} KiB more");
    assert!(text.starts_with("first\n0123456789abcde\n") && text.ends_with("0123456789abcde\nlast\n"));
    assert!(text.len() < 17 * 1024);
    let files: Vec<_> = fs::read_dir(&spills).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(text.contains(&format!("; all of it is in {} …]\n", file.display())));
    let whole = fs::read(file).unwrap();
    assert_eq!(whole.len(), 100_000_011);
    assert!(whole.starts_with(b"first\n0123") && whole.ends_with(b"\nlast\n"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file), mode(&spills)), (0o600, 0o700));
}

#[tokio::test]
async fn what_fits_is_kept_whole_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let finished = spilling("printf 123456789012345678901234567890", dir.path(), 1_000).await;
    assert_eq!((&*finished.output.text, finished.output.bytes), ("123456789012345678901234567890", 30));
    assert_eq!((finished.output.spilled, fs::read_dir(dir.path()).unwrap().count()), (None, 0));
}

#[tokio::test]
async fn what_does_not_fit_is_left_out_of_the_middle() {
    let dir = tempfile::tempdir().unwrap();
    let finished = spilling("printf 1234567890; printf abcd; printf 12345678901234567890", dir.path(), 1_000).await;
    let file = finished.output.spilled.unwrap();
    let (head, tail) = ("1234567890", "12345678901234567890");
    let expected = format!("{head}\n[… 4 bytes left out; all of it is in {} …]\n{tail}", file.display());
    assert_eq!((finished.output.text, finished.output.bytes), (expected, 34));
    assert_eq!(fs::read_to_string(file).unwrap(), format!("{head}abcd{tail}"));
}

#[tokio::test]
async fn a_character_is_not_cut() {
    let dir = tempfile::tempdir().unwrap();
    let text = "€".repeat(20);
    let finished = spilling(&format!("printf {text}"), dir.path(), 1_000).await;
    let text = finished.output.text;
    assert!(text.starts_with("€€€\n[… 33 bytes left out; "), "{text}");
    assert!(text.ends_with(" …]\n€€€€€€"), "{text}");
}

#[tokio::test]
async fn a_file_is_bounded_too_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    for (script, bytes) in [("yes | head -c 300000", 300_000), ("yes | head -c 101", 101)] {
        let finished = spilling(script, dir.path(), 100).await;
        let file = finished.output.spilled.unwrap();
        assert!(finished.output.text.contains(&format!("; the first 100 bytes are in {} …]", file.display())));
        assert_eq!((fs::metadata(file).unwrap().len(), finished.output.bytes), (100, bytes));
    }
    let finished = spilling("yes | head -c 100", dir.path(), 100).await;
    assert!(finished.output.text.contains("; all of it is in "), "{}", finished.output.text);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_no_failure_of_the_command() {
    let dir = tempfile::NamedTempFile::new().unwrap();
    let finished = spilling("yes | head -c 300000", dir.path(), 1_000).await;
    assert_eq!((finished.how, finished.output.spilled, finished.output.bytes), (How::Exited(0), None, 300_000));
    let text = finished.output.text;
    assert!(text.contains(&format!("; they could not be written to a file: {}", dir.path().display())), "{text}");
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_leaves_no_file() {
    let (scope, dir) = (Scope::root("test"), tempfile::tempdir().unwrap());
    let spill = Some(SpillTo { dir: dir.path().to_owned(), most: u64::MAX });
    let (limits, never) = (Limits { head: 10, tail: 10, spill, ..limits() }, CancellationToken::new());
    let process = Process::spawn(&scope, sh("yes")).unwrap();
    let (mut bytes, far) = (0, CancellationToken::new());
    let run = run(process, &limits, &never, |text| {
        bytes += text.len();
        if bytes > 1_000_000 {
            far.cancel();
        }
    });
    tokio::select! {
        finished = within(run) => panic!("{:?}", finished.how),
        () = far.cancelled() => {}
    }
    within(scope.close()).await.unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn output_and_errors_come_in_the_order_in_which_they_were_written() {
    let finished = finish(sh("i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i + 1)); done")).await;
    let expected: String = (0..500).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(finished.output.text, expected);
}

#[tokio::test]
async fn output_comes_as_it_is_written_and_in_whole_characters() {
    let scope = Scope::root("test");
    let script = r"printf 'a\342'; sleep 0.05; printf '\202'; sleep 0.05; printf '\254b\377\342\202'";
    let process = Process::spawn(&scope, sh(script)).unwrap();
    let mut pieces = Vec::new();
    let each = |piece: &str| pieces.push(piece.to_owned());
    let finished = within(run(process, &limits(), &CancellationToken::new(), each)).await;
    assert_eq!(pieces.concat(), "a€b\u{fffd}\u{fffd}");
    assert_eq!(pieces[0], "a", "it came at once");
    assert_eq!((finished.output.text, finished.output.bytes), (pieces.concat(), 8));
    within(scope.close()).await.unwrap();
}

#[tokio::test]
async fn output_that_nobody_reads_holds_up_no_wait() {
    let scope = Scope::root("test");
    let mut process = Process::spawn(&scope, sh("yes | head -c 1000000; exit 5")).unwrap();
    assert_eq!(within(process.wait()).await.how, How::Exited(5));
    assert_eq!(within(process.output()).await, None);
    assert_eq!(within(process.wait()).await.how, How::Exited(5), "asked again");
    within(scope.close()).await.unwrap();
}
