//! `glob` and `grep`, and what a model reads of them.

use sandbox::Mode;
use serde_json::{Value, json};
use tools::code;
use user_approval::Escalation;

use crate::stage::Stage;

const TREE: [(&str, &str); 8] = [
    ("ws/a.rs", "fn main() {}\n// The End\n"),
    ("ws/b.txt", "the end\n"),
    ("ws/src/lib.rs", "mod a;\nmod b;\n\nfn end() {}\n"),
    ("ws/src/deep/x.rs", "end\r\n"),
    ("ws/.github/ci.yml", "end: 1\n"),
    ("ws/.git/HEAD", "ref: end\n"),
    ("ws/target/out.rs", "end\n"),
    ("ws/.gitignore", "target/\n"),
];

pub(crate) fn stage(files: &[(&str, &str)]) -> Stage {
    Stage::new(Mode::ReadOnly, Escalation::Offered).with(files)
}

fn check(stage: &Stage, tool: &str, arguments: Value, want: &str) {
    let output = stage.call(tool, arguments.clone());
    assert_eq!((output.error.as_deref(), &*stage.said(&output)), (None, want), "{tool} {arguments}");
}

fn refused(stage: &Stage, tool: &str, arguments: Value, code: &str, want: &str) {
    let output = stage.call(tool, arguments.clone());
    assert_eq!((output.error.as_deref(), &*stage.said(&output)), (Some(code), want), "{tool} {arguments}");
}

#[test]
fn files_are_found_by_name() {
    let stage = stage(&TREE);
    let glob = |arguments, want| check(&stage, "glob", arguments, want);
    glob(json!({"pattern": "*.rs"}), "a.rs\nsrc/deep/x.rs\nsrc/lib.rs\n");
    glob(json!({"pattern": "src/*.rs"}), "src/lib.rs\n");
    glob(json!({"pattern": "*.rs", "path": "src"}), "src/deep/x.rs\nsrc/lib.rs\n");
    glob(json!({"pattern": "deep/*", "path": "./src/../src/"}), "src/deep/x.rs\n");
    glob(json!({"pattern": "**/*.yml"}), ".github/ci.yml\n");
    glob(json!({"pattern": "HEAD", "include_ignored": true}), ".git/HEAD\n");
    glob(json!({"pattern": "out.rs", "include_ignored": true}), "target/out.rs\n");
    glob(json!({"pattern": "out.rs"}), "[no file fits; ignored ones were left out]\n");
    glob(json!({"pattern": "out.rs", "path": "target"}), "target/out.rs\n");
    glob(json!({"pattern": "none", "path": "src"}), "[no file fits]\n");
}

#[test]
fn text_is_found_in_files() {
    let stage = stage(&TREE);
    let grep = |arguments, want| check(&stage, "grep", arguments, want);
    grep(
        json!({"pattern": "end"}),
        ".github/ci.yml\n1: end: 1\n\nb.txt\n1: the end\n\nsrc/deep/x.rs\n1: end\n\nsrc/lib.rs\n4: fn end() {}\n",
    );
    grep(json!({"pattern": "END", "glob": "*.rs"}), "[no line matches in 3 files; ignored ones were left out]\n");
    grep(json!({"pattern": "the END", "ignore_case": true, "output": "files"}), "a.rs\nb.txt\n");
    grep(json!({"pattern": "^mod", "output": "count", "path": "src"}), "src/lib.rs: 2\n");
    grep(json!({"pattern": "mod b", "context": 1, "path": "src/lib.rs"}), "src/lib.rs\n1- mod a;\n2: mod b;\n3- \n");
    grep(json!({"pattern": "^end$", "glob": "deep/*.rs", "path": "src"}), "src/deep/x.rs\n1: end\n");
    grep(json!({"pattern": "ref", "include_ignored": true}), ".git/HEAD\n1: ref: end\n");
    grep(
        json!({"pattern": "end|mod", "limit": 2, "path": "src"}),
        "src/deep/x.rs\n1: end\n\nsrc/lib.rs\n1: mod a;\n\
         [2 of 4 lines, in 2 files, 2 left out: narrow `pattern`, `path` or `glob`]\n",
    );
    grep(json!({"pattern": "none", "path": "a.rs"}), "[no line matches in 1 files]\n");
}

#[test]
fn outside_of_the_root_paths_are_absolute() {
    let stage = stage(&[("out/x.txt", "end\n")]);
    let out = stage.at("out");
    check(&stage, "glob", json!({"pattern": "*", "path": out}), "/out/x.txt\n");
    check(&stage, "grep", json!({"pattern": "end", "path": "../out"}), "/out/x.txt\n1: end\n");
}

#[test]
fn what_makes_no_sense_is_said() {
    let stage = stage(&TREE);
    let invalid = |tool, arguments, want| refused(&stage, tool, arguments, code::INVALID_ARGUMENTS, want);
    invalid("grep", json!({"pattern": "("}), "`pattern` is no regular expression: unclosed group");
    invalid("grep", json!({"pattern": "a", "limit": 0}), "`limit` is 0, it is between 1 and 1000");
    invalid("grep", json!({"pattern": "a", "limit": 1001}), "`limit` is 1001, it is between 1 and 1000");
    invalid("grep", json!({"pattern": "a", "context": 21}), "`context` is 21, at most 20 lines are shown around each");
    invalid(
        "grep",
        json!({"pattern": "a", "glob": "[a"}),
        "`glob` is no pattern for names: unclosed character class; \
        missing ']'",
    );
    invalid(
        "glob",
        json!({"pattern": "/etc/*"}),
        "`pattern` is relative to `path`: give the directory in `path`, the \
        rest here",
    );
    for (tool, arguments) in [
        ("glob", json!({"pattern": "a", "limit": 1})),
        ("grep", json!({"pattern": "a", "output": "json"})),
        ("grep", json!({"pattern": "a", "limit": -1})),
        ("grep", json!({})),
    ] {
        assert_eq!(stage.call(tool, arguments).error.as_deref(), Some(code::INVALID_ARGUMENTS));
    }
    let failed = |tool, arguments, want| refused(&stage, tool, arguments, code::FAILED, want);
    let not_one = "not a directory, or a path through something that is not one: /ws/a.rs";
    failed("glob", json!({"pattern": "a", "path": "a.rs"}), not_one);
    failed(
        "grep",
        json!({"pattern": "a", "path": "a.rs/b"}),
        "not a directory, or a path through something that is not one: /ws/a.rs/b",
    );
    failed("grep", json!({"pattern": "a", "path": "none"}), "no such file or directory: /ws/none");
    failed("glob", json!({"pattern": "a", "path": "x\0"}), "invalid path `x\\0`: it holds a NUL character");
}

#[test]
fn rules_nest_and_are_taken_back() {
    let stage = stage(&[
        ("ws/.gitignore", "*.log\n/build\nkept/*\n!kept/this.txt\nempty/\n"),
        ("ws/a.log", "x"),
        ("ws/build/a.txt", "x"),
        ("ws/kept/this.txt", "x"),
        ("ws/kept/other.txt", "x"),
        ("ws/empty/.gitignore", "!*"),
        ("ws/empty/a.txt", "x"),
        ("ws/in/.gitignore", "!*.log\nbuild\n"),
        ("ws/in/a.log", "x"),
        ("ws/in/build/a.txt", "x"),
        ("ws/in/deep/.gitignore", "a.log"),
        ("ws/in/deep/a.log", "x"),
        ("ws/in/deep/b.log", "x"),
        ("ws/on/build/a.txt", "x"),
        ("ws/on/a.log", "x"),
    ]);
    let want = "in/a.log\nin/deep/b.log\nkept/this.txt\non/build/a.txt\n";
    check(&stage, "glob", json!({"pattern": "*.{log,txt}"}), &format!("file.txt\n{want}"));
    check(&stage, "grep", json!({"pattern": "x", "output": "files", "glob": "*.{log,txt}"}), want);
    check(&stage, "glob", json!({"pattern": "*.log", "path": "in/deep"}), "in/deep/b.log\n");
    check(&stage, "glob", json!({"pattern": "*.log", "path": "on"}), "[no file fits; ignored ones were left out]\n");
    std::os::unix::fs::symlink("on", stage.at("ws/way")).unwrap();
    check(&stage, "glob", json!({"pattern": "*.log", "path": "way"}), "way/a.log\n");
    check(&stage, "glob", json!({"pattern": "*.log", "path": "way/../on"}), "on/a.log\n");
}

#[test]
fn rules_of_the_repository_that_holds_the_root_count() {
    let files = [("top.log", "x"), (".gitignore", "*.log\n"), ("ws/a.log", "x"), ("ws/sub/b.log", "x")];
    let stage = stage(&files);
    check(&stage, "glob", json!({"pattern": "*.log"}), "a.log\nsub/b.log\n");
    let stage = stage.with(&[(".git/HEAD", "ref")]);
    check(&stage, "glob", json!({"pattern": "*.log"}), "[no file fits; ignored ones were left out]\n");
    let stage = stage.with(&[("ws/.git", "gitdir: elsewhere")]);
    check(&stage, "glob", json!({"pattern": "*.log", "path": "sub"}), "sub/b.log\n");
}
