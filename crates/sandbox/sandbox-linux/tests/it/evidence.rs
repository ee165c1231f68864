//! A denial is told from a command that failed by itself.

use sandbox::{CommandLine, Denial, Mode, Operation, SandboxProvider};

use crate::attacks::{Tier, has, usable};
use crate::runs::{confined, confinement, sh};
use crate::who::{Who, again_as_an_ordinary_user};
use crate::yard::{Home, Yard};

/// What is to be found, as a path below the yard.
enum Want {
    Denied(&'static str),
    /// The same; without namespaces nothing prevents it.
    DeniedByMounts(&'static str),
    Nothing,
}

use Want::*;

const WRITES: &[(&str, Want)] = &[
    ("echo x > $OUT/file", Denied("outside/file")),
    ("echo x > ../outside/new", Denied("outside/new")),
    ("cd src; echo x > ../../outside/new", Nothing),
    ("touch $OUT/new", Denied("outside/new")),
    ("mkdir -p $OUT/new/dir", Denied("outside/new")),
    ("rm $OUT/file", Denied("outside/file")),
    ("rm -rf $OUT/dir", Denied("outside/dir/file")),
    ("mv src/a.txt $OUT/new", Denied("outside/new")),
    ("ln -s x $OUT/new", Denied("outside/new")),
    ("cp src/a.txt $OUT/new", Denied("outside/new")),
    ("tee $OUT/new < src/a.txt", Denied("outside/new")),
    ("dd if=src/a.txt of=$OUT/new", Denied("outside/new")),
    ("ln -s $OUT/new link; echo x > link", Denied("outside/new")),
    ("chmod 777 $OUT/file", DeniedByMounts("outside/file")),
    ("echo x > .git/hooks/pre-commit", DeniedByMounts("workspace/.git/hooks/pre-commit")),
    ("mkdir .tether/new", DeniedByMounts("workspace/.tether/new")),
    ("mv .git x", DeniedByMounts("workspace/.git")),
    ("rm -f .git/config", DeniedByMounts("workspace/.git/config")),
    ("echo x > .git/index", Nothing),
    ("echo started; touch $OUT/new; echo 'make: *** [all] Error 1'; exit 2", Denied("outside/new")),
];

const FAILURES: &[(&str, Want)] = &[
    ("false", Nothing),
    ("cat nowhere; exit 1", Nothing),
    ("no-such-program", Nothing),
    ("touch s; chmod 644 s; ./s", Nothing),
    ("/etc/passwd", Nothing),
    ("mkdir d; chmod 0 d; touch d/x", Nothing),
    ("echo x > src/nowhere/x", Nothing),
    ("echo 'sh: 1: cannot create src/x: Read-only file system'; exit 1", Nothing),
    ("echo \"touch: cannot touch '$OUT/nowhere/deeper/x': No such file or directory\"; exit 1", Nothing),
    ("echo 'error: permission denied'; exit 1", Nothing),
    ("echo \"publickey: Permission denied (publickey).\"; exit 255", Nothing),
    ("echo x > /dev/null; exit 3", Nothing),
];

#[track_caller]
fn check(mode: Mode, rows: &[(&str, Want)]) {
    for (tier, sandbox, _) in usable() {
        for (script, want) in rows {
            let yard = Yard::new(Who::Self_, Home::Outside);
            let argv = sh(script);
            let ran = confined(sandbox, &yard, mode, &argv);
            let command = CommandLine { argv: &argv, cwd: &yard.root };
            let found = sandbox.evidence(&command, &confinement(&yard, mode), &ran.output.text);
            let base = yard.root.parent().unwrap();
            let target = match want {
                Denied(path) => Some(path),
                DeniedByMounts(path) if tier == Tier::Best => Some(path),
                DeniedByMounts(_) | Nothing => None,
            };
            let want = target.map(|path| Denial::new(Operation::Write, base.join(path).to_str().unwrap(), mode));
            assert_eq!(found, want, "{tier:?} {mode} {script}: {}", ran.output.text);
        }
    }
}

#[test]
fn denials_are_told() {
    check(Mode::WorkspaceWrite, WRITES);
}

#[test]
fn failures_are_none() {
    check(Mode::WorkspaceWrite, FAILURES);
}

#[test]
fn read_only_denies_the_workspace_too() {
    check(
        Mode::ReadOnly,
        &[
            ("echo x > src/a.txt", Denied("workspace/src/a.txt")),
            ("touch new", Denied("workspace/new")),
            ("rm -r src", Denied("workspace/src/a.txt")),
            ("./src/a.txt", Nothing),
            ("cat nowhere", Nothing),
            ("exit 1", Nothing),
        ],
    );
}

#[test]
fn the_same_as_an_ordinary_user() {
    for test in ["denials_are_told", "failures_are_none", "read_only_denies_the_workspace_too"] {
        again_as_an_ordinary_user(&format!("evidence::{test}"));
    }
}

/// The command's `/tmp` is not the host's.
#[test]
fn a_temporary_file_is_looked_for_where_it_is() {
    for (tier, sandbox, _) in usable() {
        let yard = Yard::new(Who::Self_, Home::Outside);
        let argv = sh("false");
        let command = CommandLine { argv: &argv, cwd: &yard.root };
        let confinement = confinement(&yard, Mode::WorkspaceWrite);
        let said = "touch: cannot touch '/tmp/x': Read-only file system";
        let found = sandbox.evidence(&command, &confinement, said);
        assert_eq!(found.is_none(), tier == Tier::Best, "{tier:?} {found:?}");
    }
}

/// Other tools say it in other words.
#[test]
fn tools_are_understood() {
    let rows: &[(&str, &str, Want)] = &[
        ("bash", "bash -c 'echo x > $OUT/new'", Denied("outside/new")),
        ("python3", "python3 -c 'import os; open(os.environ[\"OUT\"] + \"/new\", \"w\")'", Denied("outside/new")),
        ("python3", "python3 -c 'import os; os.mkdir(os.environ[\"OUT\"] + \"/new\")'", Denied("outside/new")),
        ("node", "node -e 'require(\"fs\").writeFileSync(process.env.OUT + \"/new\", \"x\")'", Denied("outside/new")),
        ("git", "git init -q $OUT/new", Denied("outside/new")),
        ("git", "git config user.name x", DeniedByMounts("workspace/.git/config")),
        ("tar", "tar -C $OUT -cf $OUT/new.tar .", Denied("outside/new.tar")),
        (
            "perl",
            "perl -e 'open(F, \">\", \"$ENV{OUT}/new\") or die \"cannot open $ENV{OUT}/new: $!\"'",
            Denied("outside/new"),
        ),
        ("cargo", "cargo init -q --vcs none $OUT/new", Denied("outside/new")),
    ];
    for (tool, script, want) in rows {
        if !has(tool) {
            continue;
        }
        let want = match want {
            Denied(path) => Denied(path),
            DeniedByMounts(path) => DeniedByMounts(path),
            Nothing => Nothing,
        };
        check(Mode::WorkspaceWrite, &[(script, want)]);
    }
}

/// A refused system call names no path. Where a program can only mean that, it is what was denied.
#[test]
fn a_refused_call_denies_the_program() {
    for (tool, script, only_best) in [("strace", "strace true", false), ("unshare", "unshare -Ur true", true)] {
        if !has(tool) {
            continue;
        }
        for (tier, sandbox, _) in usable() {
            let yard = Yard::new(Who::Self_, Home::Outside);
            let argv = sh(script);
            let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &argv);
            let command = CommandLine { argv: &argv, cwd: &yard.root };
            let confinement = confinement(&yard, Mode::WorkspaceWrite);
            let found = sandbox.evidence(&command, &confinement, &ran.output.text);
            let want = Denial::new(Operation::Execute, tool, Mode::WorkspaceWrite);
            let want = (!only_best || tier == Tier::Best).then_some(want);
            assert_eq!(found, want, "{tier:?}: {}", ran.output.text);
        }
    }
}
