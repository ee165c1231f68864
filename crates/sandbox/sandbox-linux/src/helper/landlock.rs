//! Which files may be opened, made and removed, and whom signals reach: held by Landlock.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};

use super::stage::{SetUp, Stage};
use crate::plan::{Files, Net, Plan, Tier, Tmp};

const STAGE: &str = "landlock";

/// What this knows of. A kernel that has less is told by what [`apply`] returns.
const KNOWN: ABI = ABI::V6;

/// The first that holds back `truncate`.
const LEAST: ABI = ABI::V3;

/// More entries beside a hidden place are not let through one by one.
const MOST_BESIDE: usize = 16_384;

const WRITTEN_DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];
const READ_DEVICES: [&str; 2] = ["/dev/random", "/dev/urandom"];
const TERMINALS: [&str; 2] = ["/dev/tty", "/dev/pts"];

/// Applies it to this thread and all that it starts, and says how much of it the kernel knows. Afterwards no file opens but
/// what the plan lets.
pub(crate) fn apply(plan: &Plan) -> Result<ABI, SetUp> {
    let alone = plan.tier == Tier::WithoutNamespaces;
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(KNOWN)).stage(STAGE)?;
    rules = rules.scope(Scope::from_all(KNOWN)).stage(STAGE)?;
    if alone && plan.network == Net::Denied {
        rules = rules.handle_access(AccessNet::from_all(KNOWN)).stage(STAGE)?;
    }
    let mut rules = rules.create().stage(STAGE)?;
    let read = AccessFs::from_read(KNOWN);
    if alone {
        for path in beside(plan)? {
            rules = allow(rules, &path, read)?;
        }
    } else {
        rules = allow(rules, Path::new("/"), read)?;
    }
    let device = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});
    for path in WRITTEN_DEVICES {
        rules = allow(rules, Path::new(path), device)?;
    }
    for path in READ_DEVICES {
        rules = allow(rules, Path::new(path), make_bitflags!(AccessFs::{ReadFile | IoctlDev}))?;
    }
    for path in writable(plan) {
        rules = allow(rules, &path, AccessFs::from_all(KNOWN))?;
    }
    // Without namespaces they would be other people's.
    if !alone && plan.files == Files::Writable {
        for path in TERMINALS {
            rules = allow(rules, Path::new(path), device | AccessFs::ReadDir)?;
        }
    }
    let status = rules.restrict_self().stage(STAGE)?;
    let known = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            effective_abi
        }
        LandlockStatus::NotEnabled => return Err(SetUp::new(STAGE, "the kernel has it, but it is not enabled")),
        _ => return Err(SetUp::new(STAGE, "the kernel does not have it")),
    };
    if known < LEAST {
        return Err(SetUp::new(
            STAGE,
            format_args!("the kernel has version {known}, and less than {LEAST} is not enough"),
        ));
    }
    Ok(known)
}

fn writable(plan: &Plan) -> Vec<PathBuf> {
    let mut all: Vec<_> = plan.exceptions().map(Path::to_owned).collect();
    if plan.files == Files::ReadOnly {
        return all;
    }
    all.extend(plan.writable().map(Path::to_owned));
    if plan.tier != Tier::WithoutNamespaces {
        all.push("/dev/shm".into());
    }
    match plan.tmp {
        Tmp::Session(_) => all.push("/tmp".into()),
        Tmp::Empty | Tmp::Machine => {}
    }
    all
}

/// Lets `access` through at a path and below it. What is not there needs no rule.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, SetUp> {
    let Some((opened, is_dir)) = open(path) else { return Ok(rules) };
    let access = if is_dir { access } else { access & AccessFs::from_file(KNOWN) };
    rules.add_rule(PathBeneath::new(opened, access)).stage_at(STAGE, path.display())
}

/// A directory or a file, but no link: where that leads has a rule of its own or none.
fn open(path: &Path) -> Option<(OwnedFd, bool)> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let kind = file.metadata().ok()?.file_type();
    (!kind.is_symlink()).then(|| (file.into(), kind.is_dir()))
}

/// What may be read where nothing can be mounted: everything beside the hidden places and the devices, because a rule cannot
/// take back what another one lets through. Directories above them can be passed but not listed.
fn beside(plan: &Plan) -> Result<Vec<PathBuf>, SetUp> {
    let hidden: Vec<_> = plan.hidden().collect();
    let (mut let_through, mut above) = (Vec::new(), vec![PathBuf::from("/")]);
    while let Some(dir) = above.pop() {
        for entry in std::fs::read_dir(&dir).stage_at(STAGE, dir.display())? {
            let mut path = entry.stage_at(STAGE, dir.display())?.path();
            // Devices have rules of their own.
            if path == Path::new("/dev") {
                path.push("shm");
            }
            if hidden.contains(&path.as_path()) {
                continue;
            }
            if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
                above.push(path);
            } else {
                let_through.push(path);
            }
            if let_through.len() > MOST_BESIDE {
                let why = "more entries beside what is to be hidden than can be let through one by one";
                return Err(SetUp::new(STAGE, format_args!("{}: {why}", dir.display())));
            }
        }
    }
    Ok(let_through)
}
