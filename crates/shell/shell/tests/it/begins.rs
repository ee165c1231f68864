//! Where commands begin, and which never do.

use sandbox::{Mode, Operation};
use shell::{InvalidLine, MAX_COMMAND_BYTES, NoCwd, Shell, ShellError};

use crate::world::*;

#[tokio::test]
async fn each_begins_in_the_root_or_where_it_says() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    let root = world.top.join("ws");
    let path = |path: &str| world.top.join(path).to_str().unwrap().to_owned();
    assert_eq!(said(&shell, line("pwd; cd sub; pwd")).await, format!("{0}\n{0}/sub", root.display()));
    assert_eq!(said(&shell, line("pwd")).await, path("ws"), "it does not carry over");
    std::os::unix::fs::symlink("sub", root.join("link")).unwrap();
    for (cwd, want) in [("sub", "ws/sub"), ("./sub/..", "ws"), ("..", ""), (&path("home"), "home"), ("link", "ws/sub")]
    {
        let line = line_in(cwd, "pwd -P");
        assert_eq!(shell.check(&line).unwrap(), world.top.join(want).components().collect::<std::path::PathBuf>());
        assert_eq!(said(&shell, line).await, path(want).trim_end_matches('/'), "{cwd}");
    }
    world.close().await;
}

#[tokio::test]
async fn nowhere_is_told_from_what_is_no_directory() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    std::fs::write(world.top.join("ws/file"), "").unwrap();
    let table: [(&str, &str); 4] = [
        ("none", "no such directory"),
        ("file", "not a directory"),
        ("file/below", "not a directory"),
        ("a\0b", "cannot be entered"),
    ];
    for (cwd, want) in table {
        let line = line_in(cwd, "touch ran");
        let refused = [shell.check(&line).unwrap_err(), run(&shell, line).await.unwrap_err()];
        for refused in refused {
            let said = refused.to_string();
            assert!(said.starts_with("`cwd`: ") && said.contains(want) && said.contains("/ws/"), "{said}");
            assert!(matches!(refused, ShellError::Invalid(InvalidLine::Cwd { .. })));
        }
    }
    assert!(!world.top.join("ws/ran").exists());
    let missing = shell.check(&line_in("none", "ls")).unwrap_err();
    assert!(matches!(missing, ShellError::Invalid(InvalidLine::Cwd { why: NoCwd::Missing, .. })));
    world.close().await;
}

#[tokio::test]
async fn under_confinement_it_may_be_anywhere_that_may_be_read() {
    let world = World::new(Mode::WorkspaceWrite);
    let fake = Fake::new(Does::Holds);
    let shell = world.shell(Some(fake.clone()));
    let home = world.top.join("home/inner");
    std::fs::create_dir(&home).unwrap();
    assert_eq!(said(&shell, line_in("/", "pwd")).await, "/");
    std::os::unix::fs::symlink(&home, world.top.join("ws/link")).unwrap();
    for cwd in ["link", home.to_str().unwrap()] {
        let refused = run(&shell, line_in(cwd, "pwd")).await.unwrap_err();
        let ShellError::Denied(denial) = &refused else { panic!("{refused}") };
        assert_eq!(
            (denial.operation, &*denial.target, denial.mode),
            (Operation::Execute, home.to_str().unwrap(), Mode::WorkspaceWrite)
        );
        assert!(refused.to_string().starts_with("sandbox denied: execute /"), "{refused}");
    }
    assert_eq!(fake.confined.lock().unwrap().len(), 1, "the others were not even prepared");
    let ran = granted(&shell, line_in("link", "pwd -P"), Some(Mode::DangerFullAccess)).await.unwrap();
    assert_eq!(ran.finished.output.text.trim_end(), home.to_str().unwrap());
    world.close().await;
}

#[tokio::test]
async fn what_cannot_be_run_is_not_run() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    let long = format!("touch ran;{}", " ".repeat(MAX_COMMAND_BYTES));
    let table = [
        ("", "`command` is empty"),
        (" \n\t", "`command` is empty"),
        ("touch ran\0", "`command` holds a NUL"),
        (&long, "`command` has 65546 bytes, at most 65536"),
        ("touch ran; vim ran", "`vim` waits for a person"),
        ("touch ran && git add -p", "`git add -p` waits for a person"),
    ];
    for (command, want) in table {
        for refused in [shell.check(&line(command)).unwrap_err(), run(&shell, line(command)).await.unwrap_err()] {
            assert!(refused.to_string().starts_with(want), "{refused}");
            assert!(matches!(refused, ShellError::Invalid(_)));
        }
    }
    assert!(!world.top.join("ws/ran").exists());
    let most = format!("touch ran;{}", " ".repeat(MAX_COMMAND_BYTES - "touch ran;".len()));
    said(&shell, line(&most)).await;
    assert!(world.top.join("ws/ran").exists());
    world.close().await;
}
