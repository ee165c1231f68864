use std::path::{Path, PathBuf};

use sandbox::Extent;

use crate::asked::lexical;

use super::{Look, Unread, is_denied, leads_nowhere};

/// How deep submodules are looked for; a name may have parts, and one may have its own.
pub(super) const MAX_DEPTH: usize = 12;

/// What is read of a repository.
pub(super) struct Repository {
    /// What hooks are relative to: where its worktrees are.
    pub(super) tops: Vec<PathBuf>,
    pub(super) configs: Vec<PathBuf>,
}

/// The root's repository, those of the directories above it, and their worktrees and submodules. There is always one: what
/// the person's own configuration names is relative to the root.
pub(super) fn repositories(look: &mut Look<'_>, root: &Path) -> Result<Vec<Repository>, Unread> {
    let mut all = vec![Repository { tops: vec![root.to_owned()], configs: Vec::new() }];
    for top in root.ancestors() {
        let git = top.join(".git");
        look.places.led(&git, Extent::File)?;
        match git.metadata() {
            // Without a `HEAD` it is none to git, which goes on above.
            Ok(found) if found.is_dir() && (top == root || git.join("HEAD").symlink_metadata().is_ok()) => {
                repository(look, top, &git, &mut all)?;
            }
            Ok(found) if found.is_file() => {
                if let Some(elsewhere) = look.configs.room.git_file(&git)? {
                    repository(look, top, &top.join(elsewhere), &mut all)?;
                }
            }
            _ => {}
        }
    }
    Ok(all)
}

fn repository(look: &mut Look<'_>, top: &Path, git: &Path, all: &mut Vec<Repository>) -> Result<(), Unread> {
    // Git also works from within the directory itself, as for a push from elsewhere.
    let mut repository = Repository { tops: vec![top.to_owned(), git.to_owned()], configs: Vec::new() };
    directory(look, git, &mut repository)?;
    let common = match look.configs.room.named(&git.join("commondir"))? {
        Some(common) => {
            let common = git.join(common);
            directory(look, &common, &mut repository)?;
            // The worktree that is not a linked one.
            repository.tops.push(common.clone());
            let by_text = lexical(&common);
            if by_text.file_name().is_some_and(|name| name == ".git") {
                repository.tops.extend(by_text.parent().map(Path::to_owned));
            }
            common
        }
        None => git.to_owned(),
    };
    worktrees(look, &common, &mut repository, all)?;
    modules(look, &common.join("modules"), 0, all)?;
    all.push(repository);
    Ok(())
}

/// A directory that git keeps a repository in, or what worktrees of it have of their own.
fn directory(look: &mut Look<'_>, git: &Path, repository: &mut Repository) -> Result<(), Unread> {
    look.places.directory(git)?;
    look.hooks(git, Path::new("hooks"))?;
    repository.configs.extend(["config", "config.worktree"].map(|name| git.join(name)));
    Ok(())
}

/// The linked worktrees: what leads git from each to the repository, and what each has of its own.
fn worktrees(
    look: &mut Look<'_>,
    common: &Path,
    repository: &mut Repository,
    all: &mut Vec<Repository>,
) -> Result<(), Unread> {
    for own in below(look, &common.join("worktrees"))? {
        if own.is_symlink() {
            look.places.directory(&own)?;
        }
        repository.configs.push(own.join("config.worktree"));
        if let Some(link) = look.configs.room.named(&own.join("gitdir"))? {
            let link = own.join(link);
            look.places.led(&link, Extent::File)?;
            repository.tops.extend(link.parent().map(Path::to_owned));
        }
        modules(look, &own.join("modules"), 0, all)?;
    }
    Ok(())
}

/// The repositories of submodules, each of which says where it is.
fn modules(look: &mut Look<'_>, directory: &Path, depth: usize, all: &mut Vec<Repository>) -> Result<(), Unread> {
    if depth > MAX_DEPTH {
        return Err(Unread::TooDeep);
    }
    for git in below(look, directory)? {
        if git.is_symlink() {
            look.places.directory(&git)?;
        }
        if git.join("HEAD").symlink_metadata().is_err() {
            modules(look, &git, depth + 1, all)?;
            continue;
        }
        let mut repository =
            Repository { tops: Vec::new(), configs: vec![git.join("config"), git.join("config.worktree")] };
        look.hooks(&git, Path::new("hooks"))?;
        worktrees(look, &git, &mut repository, all)?;
        all.push(repository);
        modules(look, &git.join("modules"), depth + 1, all)?;
    }
    Ok(())
}

/// The directories in a directory that git keeps things of this kind in, in no order.
fn below(look: &mut Look<'_>, directory: &Path) -> Result<Vec<PathBuf>, Unread> {
    let failed = |source| Unread::Io { path: directory.to_owned(), source };
    let entries = match directory.read_dir() {
        Ok(entries) => entries,
        Err(error) if leads_nowhere(&error) => return Ok(Vec::new()),
        Err(error) if is_denied(&error) && !look.places.leads_inside(directory)? => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut all = Vec::new();
    for entry in entries {
        look.places.step()?;
        let path = entry.map_err(failed)?.path();
        match path.metadata() {
            Ok(found) if found.is_dir() => all.push(path),
            Err(error) if is_denied(&error) => drop(look.places.led(&path, Extent::Tree)?),
            _ => {}
        }
    }
    Ok(all)
}
