//! Planting what git runs on the host later.

use std::fs;

use sandbox::Mode;

use super::{Attack, has, hold, usable};
use crate::runs::{confined, sh, unconfined};
use crate::who::Who;
use crate::yard::{Home, Yard};

const PLANTED: &str = "#!/bin/sh\\ntouch $OUT/pwned";

const PROTECTED: &[Attack] = &[
    Attack::sh("hook", "echo x > .git/hooks/pre-commit").writing(),
    Attack::sh("hook by rename", "echo x > h; mv h .git/hooks/pre-commit").writing(),
    Attack::sh("hook by link", "echo x > h; ln h .git/hooks/pre-commit; ln -s ../../h .git/hooks/post-commit").writing(),
    Attack::sh("hooks replaced", "mkdir h; echo x > h/pre-commit; rm -rf .git/hooks; mv .git/hooks old; mv -T h .git/hooks").writing(),
    Attack::sh("repository replaced", "mv .git old && mkdir -p .git/hooks; cp -r old/* .git/; echo x > .git/hooks/pre-commit").writing(),
    Attack::sh("repository exchanged", "cp -r .git copy; echo x > copy/hooks/pre-commit; mv --exchange copy .git 2>/dev/null || { mv .git old && mv copy .git; }").writing(),
    Attack::sh("repository removed", "rm -rf .git; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit").writing(),
    Attack::sh("configuration", "printf '[core]\\n\\tfsmonitor = touch pwned' >> .git/config").writing(),
    Attack::sh("configuration by rename", "cp .git/config .git/config.lock; echo '[alias]' >> .git/config.lock; mv .git/config.lock .git/config").writing(),
    Attack::sh("configuration of a worktree", "echo x > .git/config.worktree").writing(),
    Attack::sh("common directory", "mkdir -p evil; echo ../evil > .git/commondir").writing(),
    Attack::sh("submodule", "mkdir -p .git/modules/m/hooks; echo x > .git/modules/m/hooks/post-checkout").writing(),
    Attack::sh("worktree", "mkdir -p .git/worktrees/w; echo x > .git/worktrees/w/config.worktree").writing(),
    Attack::sh("Tether's settings", "mkdir -p .tether; echo x > .tether/settings.toml").writing(),
];

/// Without namespaces they are restored afterwards, with other times; that is what [`restored`](self) looks at.
#[test]
fn protected_paths_hold() {
    let held: Vec<_> = PROTECTED.iter().map(|attack| attack.open_without_namespaces("protected paths")).collect();
    hold(&held);
}

#[test]
fn without_namespaces_protected_paths_are_restored() {
    for (_, sandbox, open) in usable().into_iter().filter(|(_, _, open)| !open.is_empty()) {
        assert!(open.iter().any(|line| line.starts_with("protected paths")), "{open:?}");
        for (who, attack) in Who::all().iter().flat_map(|who| PROTECTED.iter().map(move |attack| (*who, attack))) {
            let yard = Yard::new(who, Home::Outside);
            let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &attack.argv());
            assert!(!ran.notes.is_empty(), "{}: nothing is reported: {}", attack.name, ran.output.text);
            if ran.notes.iter().any(|note| note.contains("replaced it") || note.contains("could not be")) {
                continue;
            }
            let git = yard.root.join(".git");
            let names: Vec<_> = fs::read_dir(git.join("hooks")).unwrap().map(|it| it.unwrap().file_name()).collect();
            assert_eq!(names, ["sample"], "{}: {:?}", attack.name, ran.notes);
            let config = fs::read_to_string(git.join("config")).unwrap();
            assert_eq!(config, "[core]\n\trepositoryformatversion = 0\n", "{}", attack.name);
            for missing in ["commondir", "config.worktree", "modules", "worktrees", "../.tether"] {
                assert!(!git.join(missing).exists(), "{}: {missing}: {:?}", attack.name, ran.notes);
            }
        }
    }
}

/// A workspace without a repository gets none that the host's git would look into.
#[test]
fn no_repository_is_planted() {
    for (_, sandbox, _) in usable() {
        for (who, left) in
            Who::all().iter().flat_map(|who| [None, Some("empty"), Some("without HEAD")].map(|left| (*who, left)))
        {
            let yard = Yard::new(who, Home::Outside);
            let git = yard.root.join(".git");
            fs::remove_dir_all(&git).unwrap();
            if let Some(left) = left {
                fs::create_dir(&git).unwrap();
                if left == "without HEAD" {
                    fs::create_dir(git.join("hooks")).unwrap();
                }
                who.own(&git);
            }
            let script = "mkdir -p .git/hooks .git/objects .git/refs; echo 'ref: refs/heads/main' > .git/HEAD
                          echo x > .git/hooks/pre-commit; mv .git old; mkdir .git; echo x > .git/config";
            for _ in 0..2 {
                let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(script));
                assert!(!git.join("HEAD").exists() && !git.join("hooks/pre-commit").exists(), "{left:?} {ran:?}");
                assert_eq!(git.exists(), left.is_some(), "what was put there is taken away, and nothing else: {ran:?}");
            }
        }
    }
}

/// A filter that is planted in the configuration, and a repository's own git, run by nobody in a sandbox.
#[test]
fn a_planted_filter_does_not_run_later() {
    if !has("git") {
        return;
    }
    let script = format!(
        "printf '[filter \"x\"]\\n\\tclean = sh -c \"touch $OUT/pwned; cat\"\\n[core]\\n\\thooksPath = evil\\n' >> .git/config
         git config filter.x.clean \"touch $OUT/pwned; cat\"; echo '* filter=x' > .gitattributes
         mkdir -p evil; printf '{PLANTED}' > evil/pre-commit; chmod +x evil/pre-commit
         cp evil/pre-commit .git/hooks/pre-commit; mv evil/pre-commit .git/hooks/post-commit"
    );
    let later = "git -c safe.directory='*' add -A && git -c safe.directory='*' -c user.name=a -c user.email=a@b commit -qm x; git status";
    let pwned = |run: &dyn Fn(&Yard)| {
        Who::all().iter().any(|who| {
            let yard = Yard::new(*who, Home::Outside);
            unconfined(&yard, &sh("rm -rf .git; git init -q ."));
            run(&yard);
            unconfined(&yard, &sh(later));
            yard.outside.join("pwned").exists()
        })
    };
    assert!(pwned(&|yard| drop(unconfined(yard, &sh(&script)))), "the attack itself does not work");
    for (tier, sandbox, _) in usable() {
        assert!(!pwned(&|yard| drop(confined(sandbox, yard, Mode::WorkspaceWrite, &sh(&script)))), "{tier:?}");
    }
}
