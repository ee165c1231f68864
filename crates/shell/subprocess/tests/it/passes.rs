//! What reaches a command of the harness, and what does not.

use std::path::Path;

use subprocess::{Environment, Spawn, guard};

use crate::harness;
use crate::support::{finish, helper, sh};

// D-65
#[test]
fn no_credential_of_the_harness_reaches_a_command() {
    let kinds = ["API_KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS", "AUTH_SOCK", "PRIVATE_KEY", "ACCESS_KEY_ID"];
    let whose = ["OPENAI_", "AWS_", "XDG_", "LC_", "GITHUB_"];
    let names: Vec<String> =
        whose.iter().flat_map(|who| kinds.iter().map(move |kind| format!("{who}{kind}"))).collect();
    assert_eq!(names.len(), 40);
    let mut command = harness::start("script", &["env; cat /proc/$PPID/environ | tr '\\0' '\\n'"]);
    command.env_clear().envs(names.iter().map(|name| (name, "s3cr3t"))).env("LANG", "C.UTF-8");
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("XDG_DATA_HOME", "/data");
    command.env("https_proxy", "http://me:s3cr3t@proxy:1");
    let seen = harness::says(command);
    assert!(!seen.contains("s3cr3t"), "{seen}");
    for passed in ["LANG=C.UTF-8", "PATH=", "XDG_DATA_HOME=/data", "https_proxy=http://proxy:1"] {
        assert!(seen.contains(passed), "{passed}: {seen}");
    }
}

// D-65
#[tokio::test]
async fn what_the_operator_names_reaches_a_command() {
    let env = Environment::inherited().with("MY_TOKEN", "named");
    assert_eq!(finish(Spawn { env, ..sh("echo $MY_TOKEN") }).await.output.text, "named\n");
}

#[test]
fn no_descriptor_of_the_harness_reaches_a_command() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let seen = harness::says(harness::start("descriptors", &[path]));
    assert!(seen.contains("ready"), "{seen}");
    assert!(!seen.contains(path), "{seen}");
    let (command, _) = seen.split_once("ready").unwrap();
    let numbers: Vec<_> =
        command.lines().filter_map(|line| line.split(" -> ").next()?.split(' ').next_back()).collect();
    // The last one is the directory that is read.
    assert_eq!(numbers[1..], ["0", "1", "2", "3"], "{seen}");
}

#[test]
fn nothing_keeps_a_descriptor() {
    harness::says(harness::start("leaks", &[]));
    harness::says(harness::start("scarce", &[]));
}

#[tokio::test]
async fn a_command_reads_nothing() {
    assert_eq!(finish(sh("cat; readlink /proc/self/fd/0")).await.output.text, "/dev/null\n");
}

#[test]
fn a_command_may_have_the_streams_of_the_harness() {
    assert_eq!(harness::says(harness::start("inherited", &[])), "hello\n");
}

#[tokio::test]
async fn a_command_has_a_session_of_its_own_and_every_signal() {
    let script = "read -r pid name state parent group session rest < /proc/$$/stat; echo $((session - pid)); \
                  grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f 2";
    let said = finish(sh(script)).await.output.text;
    let masks: Vec<u64> = said.lines().map(|line| u64::from_str_radix(line, 16).unwrap()).collect();
    let [offset, blocked, ignored] = masks[..] else { panic!("{said}") };
    // Two are the C library's own, and nobody may set them.
    assert_eq!((offset, blocked, ignored & !(0b11 << 31)), (0, 0, 0), "{said}");
}

#[test]
fn what_the_harness_ignores_a_command_does_not() {
    let masks = "grep SigIgn /proc/self/status | cut -f 2";
    let harness = harness::start("script", &[masks]);
    let said = harness::says(harness::deaf(&harness));
    let ignored = u64::from_str_radix(said.trim(), 16).unwrap();
    // Two are the C library's own, and nobody may set them.
    assert_eq!(ignored & !(0b11 << 31), 0, "{said}");
}

#[tokio::test]
async fn a_command_runs_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    assert_eq!(finish(Spawn { cwd: dir, ..sh("pwd") }).await.output.text, "/\n", "the plan decides");
    let (program, args, plan) = guard(&helper(), &["pwd".into()], Path::new("/usr"));
    assert_eq!(finish(Spawn { program, args, plan, ..sh("") }).await.output.text, "/usr\n");
}
