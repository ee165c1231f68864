//! What the sandbox says of itself, and what it refuses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use context::{Plugins, Scope};
use sandbox::{CommandLine, Confinement, Enforcement, Mode, Network, SandboxProvider, Temp, Workspace};
use sandbox_linux::{Config, LinuxSandbox, SandboxLinux};

use crate::attacks::{did_not_run, usable};
use crate::runs::{confined_by, confinement, sh};
use crate::who::{Who, again_as_an_ordinary_user};
use crate::yard::{Home, Yard};

#[test]
fn everything_is_held_or_what_is_open_is_said() {
    match LinuxSandbox::new().enforcement() {
        Enforcement::Full => {}
        less => did_not_run("the whole set-up", &less.to_string()),
    }
    match LinuxSandbox::new().without_namespaces().enforcement() {
        Enforcement::Partial(open) => {
            for what in ["metadata", "protected paths", "processes", "killing a tree", "temporary directory", "machine"]
            {
                assert!(open.iter().any(|line| line.starts_with(what)), "{what}: {open:#?}");
            }
            assert_eq!(
                open.iter().any(|line| line.starts_with("fork bombs")),
                rustix::process::geteuid().is_root(),
                "{open:#?}"
            );
        }
        Enforcement::Full => panic!("without namespaces it is never full"),
        none @ Enforcement::None(_) => did_not_run("the set-up without namespaces", &none.to_string()),
    }
}

#[test]
fn an_ordinary_user_has_the_same() {
    again_as_an_ordinary_user("enforcement::everything_is_held_or_what_is_open_is_said");
}

/// A helper that is none confines nothing, and nothing is run.
#[test]
fn without_a_helper_commands_are_refused() {
    for helper in ["/bin/true", "/bin/cat", "/nowhere/helper", "/"] {
        let sandbox = LinuxSandbox::with_helper(helper);
        assert!(matches!(sandbox.enforcement(), Enforcement::None(_)), "{helper}: {:?}", sandbox.enforcement());
        let yard = Yard::new(Who::Self_, Home::Outside);
        let refused =
            sandbox.confine(&CommandLine { argv: &sh("true"), cwd: &yard.root }, &confinement(&yard, Mode::ReadOnly));
        assert!(refused.unwrap_err().to_string().contains("cannot be confined here"), "{helper}");
    }
}

#[test]
fn what_cannot_be_confined_is_refused() {
    let refuse = |sandbox: &LinuxSandbox, workspace: Workspace, mode, temp, argv: &[_], because: &str| {
        let confinement = Confinement { boundary: workspace.boundary(mode), network: Network::Denied, temp };
        let refused = sandbox.confine(&CommandLine { argv, cwd: Path::new("/") }, &confinement).unwrap_err();
        assert!(refused.why.contains(because), "{refused}");
    };
    let (temp, own) = (|| Temp::Private("/t".into()), Temp::Private("/w/t".into()));
    let argv = sh("true");
    for (tier, sandbox, _) in usable() {
        let write = Mode::WorkspaceWrite;
        refuse(sandbox, Workspace::new("/w"), Mode::DangerFullAccess, temp(), &argv, "danger-full-access");
        for root in ["/", "/proc", "/sys/fs", "/dev", "/dev/shm"] {
            refuse(sandbox, Workspace::new(root), write, temp(), &argv, "cannot be a session's directory");
            refuse(sandbox, Workspace::new(root), Mode::ReadOnly, temp(), &argv, "cannot be a session's directory");
        }
        refuse(sandbox, Workspace::new("w"), write, temp(), &argv, "not absolute");
        refuse(sandbox, Workspace::new("/h/w").home("/h"), write, temp(), &argv, "hidden from commands");
        refuse(sandbox, Workspace::new("/w"), write, temp(), &[], "a program and its arguments");
        refuse(sandbox, Workspace::new("/w"), write, temp(), &["a\0b".into()], "NUL");
        if tier == crate::attacks::Tier::Best {
            refuse(sandbox, Workspace::new("/w").home("/t/h"), write, temp(), &argv, "inside the temporary directory");
            refuse(
                sandbox,
                Workspace::new("/w").protect("t/x"),
                write,
                own.clone(),
                &argv,
                "inside the temporary directory",
            );
        } else {
            refuse(sandbox, Workspace::new("/w").home("/w/h"), write, temp(), &argv, "without namespaces");
        }
    }
}

#[test]
fn a_set_up_that_fails_is_no_failed_command() {
    for (tier, sandbox, _) in usable() {
        let yard = Yard::new(Who::Self_, Home::Outside);
        let workspace = Workspace::new(yard.root.join("gone")).temp(&yard.temp);
        let confinement = Confinement {
            boundary: workspace.boundary(Mode::WorkspaceWrite),
            network: Network::Denied,
            temp: Temp::Private(yard.temp.clone()),
        };
        let ran = confined_by(sandbox, &yard, &confinement, &sh("touch $OUT/ran; touch $TMPDIR/ran"));
        if tier == crate::attacks::Tier::Best {
            assert!(matches!(&ran.how, subprocess::How::SetUpFailed { stage, .. } if stage == "workspace"), "{ran:?}");
            assert!(!yard.temp.join("ran").exists());
        }
        let ran = crate::runs::confined(sandbox, &yard, Mode::WorkspaceWrite, &["no-such-program".into()]);
        assert!(
            matches!(&ran.how, subprocess::How::NotFound { program, .. } if program == "no-such-program"),
            "{ran:?}"
        );
    }
}

#[test]
fn the_plugin_provides_the_sandbox() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for (helper, works) in [(None, true), (Some(PathBuf::from("/bin/true")), false)] {
            let app = Scope::root("app");
            Plugins::new().with(SandboxLinux, Config { helper }).start(&app).await.unwrap();
            let sandbox: Arc<dyn SandboxProvider> = app.get().unwrap();
            assert_eq!(sandbox.name(), "linux");
            if works {
                assert_eq!(sandbox.enforcement(), LinuxSandbox::new().enforcement());
            } else {
                assert!(matches!(sandbox.enforcement(), Enforcement::None(_)));
            }
            app.close().await.unwrap();
        }
    });
}
