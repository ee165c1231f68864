//! What a command reads and writes.

use std::fs;

use super::stage::{SECRET, Stage, Tree, sh};
use crate::{Confinement, Mode, Network, Temp, Workspace};

pub(super) fn read_only_writes_nothing(stage: &Stage) {
    let base = stage.root.parent().expect("it is below a place");
    let before = Tree::of([base]);
    let script = r#"
        {
            for dir in "$ROOT" "$ROOT/src" "$OUTSIDE" "$OUTSIDE/dir" "$TEMP" "$TMPDIR" "$OWN"; do
                (echo x > "$dir/new"); mkdir "$dir/made"; ln -s x "$dir/link"
            done
            (echo x > src/a.txt); (echo x >> src/a.txt); rm -f src/a.txt; mv src moved; ln src/a.txt linked
        } 2> /dev/null
        cat src/a.txt "$OUTSIDE/file" && echo x > /dev/null && echo "it read"
    "#;
    let ended = stage.sh(Mode::ReadOnly, script);
    Tree::of([base]).is_as(&before, "under read-only, the disk");
    assert_eq!(ended.exited(0), "a\noutside\nit read\n", "it may read, and write to /dev/null");
}

pub(super) fn workspace_write_writes_below_the_root(stage: &Stage) {
    let script = "
        echo new > new && echo changed > src/a.txt && mkdir -p made/deep && mv new made/deep/ && echo gone > gone && rm gone &&
            ln -s made link && echo through > link/file && cat \"$OUTSIDE/file\" && echo x > .git/index
    ";
    assert_eq!(stage.sh(Mode::WorkspaceWrite, script).exited(0), "outside\n");
    let is = |path: &str, text: &str| {
        let found = fs::read_to_string(stage.root.join(path));
        assert_eq!(found.ok().as_deref(), Some(text), "{path}");
    };
    is("made/deep/new", "new\n");
    is("src/a.txt", "changed\n");
    is("made/file", "through\n");
    is(".git/index", "x\n");
    assert!(!stage.root.join("gone").exists(), "what it removed is gone");
}

pub(super) fn nothing_outside_changes(stage: &Stage) {
    const TRIES: [&str; 12] = [
        "echo x > ../outside/file",
        "echo x > $OUTSIDE/new; echo x >> $OUTSIDE/dir/file",
        "rm -rf $OUTSIDE/dir $OUTSIDE/file",
        "mkdir $OUTSIDE/made; mkfifo $OUTSIDE/pipe; ln -s x $OUTSIDE/link",
        "mv src/a.txt $OUTSIDE/; cp -r src $OUTSIDE/",
        "mv $OUTSIDE/file here; mv $OUTSIDE/dir here",
        "ln -s $OUTSIDE/file to-file; echo x > to-file",
        "ln -s $OUTSIDE/new to-new; echo x > to-new",
        "ln -s $OUTSIDE to-dir; echo x > to-dir/dir/file; mkdir to-dir/made",
        "ln $OUTSIDE/file alias; echo x > alias",
        "ln -s $OUTSIDE/file $TMPDIR/to-file; echo x > $TMPDIR/to-file",
        "echo x > /proc/self/root$OUTSIDE/file; cd src; echo x > /proc/self/cwd/../../outside/file",
    ];
    let before = stage.around();
    let check = |mode, script: &str| {
        let _failed = stage.sh(mode, script);
        stage.around().is_as(&before, &format!("under {mode}, by `{script}`, what is outside"));
    };
    for script in TRIES {
        check(Mode::WorkspaceWrite, script);
    }
    if stage.is_full() {
        for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
            check(mode, "chmod 777 $OUTSIDE/file $OUTSIDE/dir");
        }
    }
}

pub(super) fn protected_paths_stay(stage: &Stage) {
    const TRIES: [&str; 12] = [
        "echo x > .git/hooks/pre-commit; echo x >> .git/hooks/sample",
        "echo x > hook; mv hook .git/hooks/pre-commit",
        "echo x > hook; ln hook .git/hooks/pre-commit; ln -s ../../hook .git/hooks/post-commit",
        "rm -rf .git/hooks; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
        "echo x >> .git/config; echo x > .git/config.lock; mv .git/config.lock .git/config",
        "echo x > .git/config.worktree; echo ../evil > .git/commondir",
        "mkdir -p .git/modules/m/hooks .git/worktrees/w; echo x > .git/worktrees/w/config.worktree",
        "mv .git aside && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        "mkdir -p .tether && echo x > .tether/config.toml",
        "ln -s src .tether; echo x > .tether/config.toml",
        "echo x > kept/file; echo x > kept/new; rm -rf kept",
        "mv kept aside && mkdir kept && echo x > kept/file",
    ];
    let before = stage.protected();
    for script in TRIES {
        let _failed = stage.sh(Mode::WorkspaceWrite, script);
        stage.protected().is_as(&before, &format!("by `{script}`, what is protected"));
        assert!(!stage.is_full() || stage.root.join(".git/HEAD").exists(), "by `{script}`, .git was moved away");
    }
    if stage.is_full() {
        let seen = "echo x > .git/hooks/pre-commit; echo x > kept/file; cat kept/file; ls .git/hooks";
        let said = stage.sh(Mode::WorkspaceWrite, &format!("{{ {seen}; }} 2> /dev/null")).exited(0);
        assert_eq!(said, "kept\nsample\n", "what is protected is not written for a moment either");
    }
}

/// Looks in every way for what it may not see, and changes it.
const PRY: &str = "
    cat $OWN/log; cat $OWN/../*/log; cat /proc/self/root$OWN/log; ln $OWN/log alias && cat alias; ln -s $OWN/log link; cat link
    cp -r $OWN copy; cat copy/log; mv $OWN own-moved; cat own-moved/log
    echo x > $OWN/log; echo x > $OWN/new; rm -rf $OWN; mkdir -p $OWN; echo x > $OWN/log
";

pub(super) fn what_is_tethers_own_is_out_of_reach(stage: &Stage) {
    let before = stage.around();
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let said = stage.sh(mode, PRY).output;
        assert!(!said.contains(SECRET), "under {mode}, it read what is Tether's own: {said}");
        stage.around().is_as(&before, &format!("under {mode}, what is Tether's own"));
    }
}

pub(super) fn what_is_tethers_own_is_out_of_reach_inside_the_root(stage: &Stage) {
    let own = stage.root.join("own/home");
    fs::create_dir_all(&own).expect("the suite may write");
    fs::write(own.join("log"), SECRET).expect("the suite may write");
    let before = Tree::of([own.as_path()]);
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let boundary = Workspace::new(&stage.root).temp(&stage.temp).home(&own).boundary(mode);
        let confinement = Confinement { boundary, ..stage.confinement(mode) };
        let script = format!("OWN=$ROOT/own/home; {PRY}\nmv own moved; cat moved/home/log");
        // What cannot be held may be refused.
        let Ok(running) = stage.start(&confinement, &sh(&script), &stage.root, &[]) else { continue };
        let said = running.end().output;
        assert!(!said.contains(SECRET), "under {mode}, it read what is Tether's own inside the root: {said}");
        Tree::of([own.as_path()]).is_as(&before, &format!("under {mode}, what is Tether's own inside the root"));
    }
}

pub(super) fn a_private_temporary_directory_is_the_sessions(stage: &Stage) {
    fs::write(stage.temp.join("before"), "before\n").expect("the suite may write");
    let script = "cat $TMPDIR/before && echo x > $TMPDIR/after && rm $TMPDIR/before && mkdir $TMPDIR/made";
    assert_eq!(stage.sh(Mode::WorkspaceWrite, script).exited(0), "before\n");
    let (gone, there) = (["before"], ["after", "made"]);
    assert!(gone.iter().all(|name| !stage.temp.join(name).exists()), "what it removed there is gone on the host");
    assert!(there.iter().all(|name| stage.temp.join(name).exists()), "what it wrote there is there on the host");
    stage.sh(Mode::WorkspaceWrite, "cat $TMPDIR/after").exited(0);
}

pub(super) fn a_shared_temporary_directory_is_the_machines(stage: &Stage) {
    let shared = stage.outside.join("dir");
    let confinement = |mode| Confinement {
        boundary: Workspace::new(&stage.root).temp(&shared).home(&stage.home).boundary(mode),
        network: Network::Denied,
        temp: Temp::Shared(shared.clone()),
    };
    let script = sh("cat $OUTSIDE/dir/file; echo x > $OUTSIDE/dir/new && echo x > $TMPDIR/new2; exit 0");
    let said = stage.run(&confinement(Mode::ReadOnly), &script).exited(0);
    assert!(said.starts_with("outside\n"), "what is there is seen: {said}");
    assert!(!shared.join("new").exists(), "it is not written under read-only");
    stage.run(&confinement(Mode::WorkspaceWrite), &script).exited(0);
    assert!(shared.join("new").exists() && shared.join("new2").exists(), "it is written where the workspace is");
}
