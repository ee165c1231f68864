//! Frames between two programs, written down as they pass, and checked against the protocol's schema.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::stage::Stage;
use super::{Found, Row, running};

/// The arguments before `LOG -- COMMAND…` that make a recorder of this program.
const RECORD: [&str; 2] = ["real", "--record"];

/// Whether this process is to pass frames on.
pub(crate) fn is_recorder() -> bool {
    std::env::args().skip(1).take(RECORD.len()).eq(RECORD)
}

/// Runs a command on our streams, and writes each line that passes to a new `LOG.N.jsonl`.
pub(crate) fn record() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1 + RECORD.len()).collect();
    match recorded(&args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn recorded(args: &[String]) -> anyhow::Result<u8> {
    let [log, dashes, program, rest @ ..] = args else { bail!("usage: real --record LOG -- COMMAND…") };
    ensure!(dashes == "--", "usage: real --record LOG -- COMMAND…");
    let log = Arc::new(Mutex::new(fresh(log)?));
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("`{program}` could not be started"))?;
    let (input, output) = (child.stdin.take().context("a pipe")?, child.stdout.take().context("a pipe")?);
    let to = log.clone();
    // It may stay in its read: it ends with us.
    thread::spawn(move || pass(BufReader::new(io::stdin()), input, '>', &to));
    pass(BufReader::new(output), io::stdout(), '<', &log)?;
    Ok(child.wait()?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// A log of its own for each process: `LOG.N.jsonl`. Their ids would not do, since two may have the same in two namespaces.
fn fresh(log: &str) -> anyhow::Result<File> {
    for n in 0..10_000 {
        match File::create_new(format!("{log}.{n:04}.jsonl")) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.with_context(|| format!("{log}.{n:04}.jsonl")),
        }
    }
    bail!("there are too many logs beside {log}")
}

/// Passes lines on until either end is closed.
fn pass(mut from: impl BufRead, mut to: impl Write, direction: char, log: &Mutex<File>) -> io::Result<()> {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        let entry = match serde_json::from_slice::<Value>(&line) {
            Ok(frame) => json!({ "dir": direction.to_string(), "m": frame }),
            Err(_) => json!({ "dir": direction.to_string(), "bad": String::from_utf8_lossy(&line) }),
        };
        // The log has it before the other side can answer.
        if let Ok(mut log) = log.lock() {
            writeln!(log, "{entry}")?;
        }
        to.write_all(&line).and_then(|()| to.flush())?;
        line.clear();
    }
    Ok(())
}

/// Whether every frame that we sent is one of the protocol's.
pub(crate) fn valid(stage: &Stage<'_>) -> anyhow::Result<Row> {
    let (program, tried) = (stage.program, "frames we sent, by the schema".to_owned());
    let python = stage.kit.at("venv/bin/python");
    let logs = stage.logs("");
    if logs.is_empty() || !python.is_file() {
        let why = if logs.is_empty() { "none was recorded" } else { "install the SDK clients for it" };
        return Ok(Row { program, tried, found: Found::NotRun(why.into()) });
    }
    let mut complaints = Vec::new();
    let mut ours = Vec::new();
    let mut count = 0;
    for log in &logs {
        let direction = if is_child(log) { ">" } else { "<" };
        let (kept, sent, bad) = of_one_side(&fs::read_to_string(log)?, direction);
        complaints.extend(bad.into_iter().map(|line| format!("no JSON: {line}")));
        count += sent;
        let path = log.with_extension("ours");
        fs::write(&path, kept)?;
        ours.push(path);
    }
    let mut command = stage.kit.beside(&python);
    command.arg(stage.kit.file("validate_frames.py")).args(&ours);
    let ended = running::run(&mut command, Duration::from_secs(120))?;
    complaints.extend(ended.out.lines().filter(|line| !line.ends_with("problems {}")).map(str::to_owned));
    let checked = ended.out.lines().count();
    if ended.code != Some(0) || checked != ours.len() {
        complaints.push(format!("{checked} of {} logs were checked, {}", ours.len(), ended.tail()));
    }
    let found = match complaints.is_empty() {
        true => Found::Right(format!("{count} frames in {} logs", logs.len())),
        false => Found::Wrong(complaints.join("; ")),
    };
    Ok(Row { program, tried, found })
}

/// How many updates an agent sent after it had answered its one prompt.
pub(crate) fn late_updates(log: &str) -> usize {
    let frames = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let sent = frames.filter(|entry| entry["dir"] == "<").map(|entry| entry["m"].clone());
    let after = sent.skip_while(|frame| !frame["result"]["stopReason"].is_string());
    after.filter(|frame| frame["method"] == "session/update").count()
}

/// The name under which a child's frames are recorded.
pub(crate) const CHILD: &str = "child";

fn is_child(log: &Path) -> bool {
    log.file_name().is_some_and(|name| name.to_string_lossy().starts_with(CHILD))
}

/// What one side sent, with the other's requests, since an answer is only known by its question; how many frames those of
/// the one side are; and its lines that are no frames. The other's own mistakes are not ours to count.
fn of_one_side(log: &str, direction: &str) -> (String, usize, Vec<String>) {
    let (mut kept, mut sent, mut bad) = (String::new(), 0, Vec::new());
    let entries: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_ours = |entry: &Value| entry["dir"] == direction;
    let answered: HashSet<String> =
        entries.iter().filter(|entry| is_ours(entry)).map(|entry| entry["m"]["id"].to_string()).collect();
    for entry in &entries {
        let frame = &entry["m"];
        if is_ours(entry) {
            match entry["bad"].as_str() {
                Some(line) => bad.push(line.chars().take(200).collect()),
                None => sent += 1,
            }
        }
        let is_question =
            frame["method"].is_string() && !frame["id"].is_null() && answered.contains(&frame["id"].to_string());
        if frame.is_object() && (is_ours(entry) || is_question) {
            kept.push_str(&format!("{entry}\n"));
        }
    }
    (kept, sent, bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_side_keeps_the_questions_it_answered() {
        let log = concat!(
            "{\"dir\":\">\",\"m\":{\"id\":1,\"method\":\"initialize\"}}\n",
            "{\"dir\":\"<\",\"m\":{\"id\":1,\"result\":{}}}\n",
            "{\"dir\":\">\",\"m\":{\"method\":\"session/cancel\"}}\n",
            "{\"dir\":\"<\",\"bad\":\"hello\"}\n",
        );
        let (kept, sent, bad) = of_one_side(log, "<");
        assert_eq!((kept.lines().count(), sent, bad), (2, 1, vec!["hello".to_owned()]));
        assert!(!kept.contains("cancel"));
        assert_eq!(of_one_side(log, ">").1, 2);
    }

    #[test]
    fn an_update_after_the_answer_is_late() {
        let update = "{\"dir\":\"<\",\"m\":{\"method\":\"session/update\"}}\n";
        let answer = "{\"dir\":\"<\",\"m\":{\"id\":1,\"result\":{\"stopReason\":\"end_turn\"}}}\n";
        assert_eq!(late_updates(&format!("{update}{answer}")), 0);
        assert_eq!(late_updates(&format!("{update}{answer}{update}")), 1);
    }

    #[test]
    fn what_passes_is_passed_whole() {
        let path = std::env::temp_dir().join(format!("xtask-frames-{}", std::process::id()));
        let log = Mutex::new(File::create(&path).unwrap());
        let (sent, mut got) = (b"{\"a\":1}\nnot json\nno end".as_slice(), Vec::new());
        pass(sent, &mut got, '<', &log).unwrap();
        let written = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(got, sent);
        assert!(written.starts_with("{\"dir\":\"<\",\"m\":{\"a\":1}}\n"), "{written}");
        assert_eq!((written.lines().count(), written.matches("\"bad\"").count()), (3, 2));
    }
}
