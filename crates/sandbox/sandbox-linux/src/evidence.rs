//! Telling a denial from a command that failed by itself.
//!
//! A program says what it could not do, in its own words and at its end. That is a hint, not evidence: the same words come
//! from a file that is nobody's to write. Evidence is all of this together: the end of the output names an error that
//! the sandbox gives, and a path beside it; the confinement forbids writing at that path; and without the
//! confinement the host would have let this very user write there. Where the error has another explanation (a file that is not
//! executable, or not readable by its mode), there is no evidence. So a denial may be missed, and one that is told is one.
//!
//! For system calls there is no path. Of a few programs it is known what they say when a refused call is all that they
//! need, and then the program is what was denied.

mod host;
mod said;

use std::path::{Component, Path, PathBuf};

use sandbox::{Boundary, CommandLine, Confinement, Denial, Extent, Mode, Operation, Protected};

use crate::helper;
use crate::plan::{Plan, Tier, Tmp};
use said::{Said, Trouble};

/// What the host's kernel lets everybody do, and a filter does not: a program, and how it says so.
const REFUSED: [(&str, &str); 3] = [("strace", "ptrace("), ("ltrace", "ptrace("), ("gdb", "ptrace: ")];
/// The same where the host lets this user make namespaces, which it does if the sandbox has some.
const REFUSED_NAMESPACES: [(&str, &str); 2] = [("unshare", "unshare failed"), ("nsenter", "reassociate to namespace")];

/// Devices that anybody may write to, always.
const WRITTEN: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// What the sandbox of this tier denied, if that can be shown.
pub(crate) fn find(tier: Tier, command: &CommandLine<'_>, confinement: &Confinement, said: &str) -> Option<Denial> {
    let mode = confinement.boundary.mode();
    let (plan, _) = Plan::new(tier, command, confinement).ok()?;
    said::ends(said).find_map(|said| {
        let target = said.paths.iter().find_map(|path| denied(&plan, command.cwd, confinement, &said, path));
        let write = target.map(|target| Denial::new(Operation::Write, target.to_string_lossy(), mode));
        write.or_else(|| Some(Denial::new(Operation::Execute, program(tier, &said)?, mode)))
    })
}

/// The path that was denied, in full.
fn denied(plan: &Plan, cwd: &Path, confinement: &Confinement, said: &Said<'_>, path: &str) -> Option<PathBuf> {
    let named = host::resolve(&cwd.join(path))?;
    let meant = behind(plan, &named);
    if !forbids(&confinement.boundary, confinement.temp.path(), plan, &meant) {
        return None;
    }
    let explained = match said.trouble {
        Trouble::ReadOnly => false,
        Trouble::Busy => !is_held(&confinement.boundary, plan.tier, &meant),
        Trouble::Denied | Trouble::NotPermitted => host::explains(&meant, said, path),
    };
    // What is missing and protected is there for the command, and its to make for the host.
    let made = whole(&confinement.boundary, plan.tier, &meant).filter(|path| !path.exists()).unwrap_or(&meant);
    (!explained && host::lets_write(made)).then_some(named)
}

/// What is behind a path that the command sees.
fn behind(plan: &Plan, path: &Path) -> PathBuf {
    let Tmp::Session(temp) = &plan.tmp else { return path.to_owned() };
    let below_roots = plan.writable().chain(plan.exceptions()).any(|root| path.starts_with(root));
    match path.strip_prefix("/tmp") {
        Ok(below) if !below_roots => temp.path().join(below),
        _ => path.to_owned(),
    }
}

fn forbids(boundary: &Boundary, temp: &Path, plan: &Plan, path: &Path) -> bool {
    if WRITTEN.iter().any(|device| path == Path::new(device)) {
        return false;
    }
    if boundary.exceptions().iter().any(|root| path.starts_with(root)) {
        return false;
    }
    match boundary.mode() {
        Mode::ReadOnly => true,
        Mode::DangerFullAccess => false,
        Mode::WorkspaceWrite => {
            let own_memory = plan.tier != Tier::WithoutNamespaces && path.starts_with("/dev/shm");
            let roots = boundary.writable_roots().iter().map(PathBuf::as_path).chain([temp]);
            let inside = roots.into_iter().any(|root| path.starts_with(root));
            !(own_memory || inside) || is_held(boundary, plan.tier, path)
        }
    }
}

/// Whether it is protected, or is above what is.
fn is_held(boundary: &Boundary, tier: Tier, path: &Path) -> bool {
    boundary.protected().iter().any(|protected| protected.path.starts_with(path))
        || whole(boundary, tier, path).is_some()
}

/// The protected path of which nothing may change, that this is or is below. A `.git` that is no repository is one.
fn whole<'a>(boundary: &'a Boundary, tier: Tier, path: &Path) -> Option<&'a Path> {
    let is_whole = |protected: &&Protected| match protected.extent {
        Extent::Tree | Extent::File => true,
        Extent::Entry => helper::is_whole(tier, &protected.path),
    };
    let above = boundary.protected().iter().filter(|protected| path.starts_with(&protected.path));
    above.filter(is_whole).map(|protected| protected.path.as_path()).min_by_key(|path| path.as_os_str().len())
}

/// The program of a line that begins with its name and says what only a filter makes it say.
fn program<'a>(tier: Tier, said: &Said<'a>) -> Option<&'a str> {
    if said.trouble != Trouble::NotPermitted {
        return None;
    }
    let namespaces = REFUSED_NAMESPACES.iter().filter(|_| tier != Tier::WithoutNamespaces);
    let known = |(program, words): &&(&str, &str)| {
        said.line.strip_prefix(program).is_some_and(|rest| rest.starts_with(':')) && said.line.contains(words)
    };
    let (program, _) = REFUSED.iter().chain(namespaces).find(known)?;
    said.line.get(..program.len())
}

/// `path` without `.` and `..`, by its text alone.
fn lexical(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut out, part| {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
        out
    })
}
