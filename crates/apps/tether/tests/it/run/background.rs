use rustix::process::Signal;

use super::process::Ran;
use super::world::World;
use crate::commands::confines;
use crate::json::check_whole;

fn in_background(prompt: &str) -> String {
    format!(r#"call subagent {{"description":"bg","prompt":"{prompt}","run_in_background":true}}; say started"#)
}

#[test]
fn a_task_goes_on_until_its_jobs_are_done_and_told() {
    let world = World::new();
    let task = in_background("wait 500 & write a.txt hello");
    let ran = world.tether(&["run", "--json", "--sandbox", "workspace-write", &task]).ended(0);
    check_whole(&world, &ran);
    assert!(world.path("area/root/a.txt").exists(), "the child was not cut off");
    let last = ran.json().pop().unwrap();
    assert_eq!(last["stopReason"], "completed");
    let output = last["output"].as_str().unwrap();
    assert!(output.contains("write a.txt: ok") && !output.contains("started"), "the answer of the last turn: {output}");
    let log = &world.logs()[&ran.id()];
    assert_eq!(log.all("turn/end").len(), 2, "{}", log.text());
}

#[test]
fn a_job_is_stopped_with_its_task() {
    for (signal, timeout, status) in [(Some(Signal::INT), "600", 130), (Some(Signal::TERM), "600", 130), (None, "1", 3)]
    {
        let world = World::new();
        let mut running = world.start(&["run", "--json", "--timeout", timeout, &in_background("hang")]);
        running.line_with("\"turn/end\"");
        if let Some(signal) = signal {
            running.signal(signal);
        }
        let ran = running.finish().ended(status);
        let last = ran.json().pop().unwrap();
        assert_eq!((&last["type"], &last["stopReason"]), (&"result".into(), &"aborted".into()));
        let logs = world.logs();
        let child = logs.values().find(|log| !log.header()["parentSession"].is_null()).unwrap();
        assert_eq!(child.last_end(), "aborted");
        assert!(world.kept().iter().all(|name| name.ends_with(".jsonl")), "{:?}", world.kept());
    }
}

#[test]
fn a_task_that_failed_waits_for_nothing() {
    let world = World::new();
    let task = in_background("hang").replace("say started", "fail unauthorized");
    let ran = world.tether(&["run", "--timeout", "600", &task]).ended(1);
    ran.complaint("the task failed");
}

#[test]
fn a_notice_may_cause_more_work_in_the_background() {
    let world = World::new();
    world.config("[[subagent]]\ntool = 'subagent'\nprovider = 'spawn'\nmodel = 'offline/script'");
    let job = |step: u32, file: &str| {
        let arguments =
            format!(r#"{{"description":"bg","prompt":"wait 500 & write {file} x","run_in_background":true}}"#);
        format!(r#"{{"prompt":"go","step":{step},"calls":[{{"name":"subagent","arguments":{arguments}}}]}}"#)
    };
    let said = |step: u32, text: &str| format!(r#"{{"prompt":"go","step":{step},"text":"{text}"}}"#);
    let lines = [job(0, "a.txt"), said(1, "started"), job(2, "b.txt"), said(3, "again"), said(4, "both are done")];
    let script = world.write("script.jsonl", lines.join("\n"));
    let mut command = world.command(&["run", "--model", "offline/file", "--sandbox", "workspace-write", "go"]);
    command.env("TETHER_OFFLINE_SCRIPT", script);
    let ran = Ran::of(command).ended(0);
    assert_eq!(ran.stdout, "both are done\n", "{}", ran.stderr);
    assert!(world.path("area/root/a.txt").exists() && world.path("area/root/b.txt").exists());
    assert_eq!(world.logs()[&ran.id()].all("turn/end").len(), 3);
}

// D-32: nobody asks for what came of it.
#[test]
fn what_is_denied_to_a_command_behind_its_call_is_in_the_result() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    let behind = |out: &str| format!(r#"call bash {{"command":"echo x > {out}","run_in_background":true}}"#);
    let task = format!("{}; spawn A {{ {} }}; say done", behind("../mine"), behind("../theirs"));
    let ran = world.tether(&["run", "--json", "--sandbox", "workspace-write", &task]).ended(0);
    check_whole(&world, &ran);
    let result = ran.json().pop().unwrap();
    let mut targets: Vec<_> = result["denials"].as_array().unwrap().iter().map(|denial| &denial["target"]).collect();
    targets.sort_by_key(|target| target.to_string());
    let target = |name: &str| world.path("area").canonicalize().unwrap().join(name).display().to_string();
    assert_eq!(targets, [&*target("mine"), &*target("theirs")]);
    let logs = world.logs();
    assert!(logs.values().all(|log| log.all("sandbox/denied").len() == 1));
    // The parent's result of the child lists what the child's log tells of.
    assert!(logs[&ran.id()].text().contains(&format!("write {}", target("theirs"))));
    assert!(!world.path("area/mine").exists() && !world.path("area/theirs").exists());
}
