//! Every input of the committed corpora holds what its target promises.

use std::fs;
use std::panic::catch_unwind;

/// The least that a corpus has, so that a lost one is noticed.
const LEAST: usize = 8;

/// The most that all of them have together, in bytes.
const MOST_BYTES: usize = 300 * 1024;

fn check(name: &str) {
    let (_, target) = fuzz::TARGETS.into_iter().find(|(found, _)| *found == name).expect("a target of that name");
    let mut inputs: Vec<_> =
        fs::read_dir(fuzz::corpora().join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(inputs.len() >= LEAST, "{} inputs for {name}", inputs.len());
    let broken = inputs.iter().filter(|input| {
        let data = fs::read(input).unwrap();
        catch_unwind(|| target(&data)).is_err()
    });
    let broken: Vec<_> = broken.map(|input| input.display().to_string()).collect();
    assert!(broken.is_empty(), "broken by {broken:#?}");
}

#[test]
fn config() {
    check("config");
}

#[test]
fn fence() {
    check("fence");
}

#[test]
fn frames() {
    check("frames");
}

#[test]
fn log_decode() {
    check("log_decode");
}

#[test]
fn tool_arguments() {
    check("tool_arguments");
}

#[test]
fn every_corpus_belongs_to_a_target_and_all_are_small() {
    let corpora = fs::read_dir(fuzz::corpora()).unwrap().map(|entry| entry.unwrap().path());
    let mut bytes = 0;
    for corpus in corpora {
        let name = corpus.file_name().unwrap().to_str().unwrap();
        assert!(fuzz::TARGETS.iter().any(|(target, _)| *target == name), "{name} is the corpus of nothing");
        bytes += fs::read_dir(&corpus)
            .unwrap()
            .map(|input| input.unwrap().metadata().unwrap().len() as usize)
            .sum::<usize>();
    }
    assert!(bytes <= MOST_BYTES, "{bytes} bytes");
}
