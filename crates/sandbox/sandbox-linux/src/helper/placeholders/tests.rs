//! A helper that is killed at any of its steps.

use std::time::{Duration, SystemTime};

use super::*;

fn all_of(path: &Path) -> [Placeholder; 3] {
    let at = |name: &str, kind| Placeholder { path: path.join(name), kind };
    [at("directory", Kind::Directory), at("file", Kind::File), at("commondir", Kind::CommonDir)]
}

fn names(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Each step, as far as a helper comes that is killed then.
const STEPS: [fn(&Records, &Placeholder) -> io::Result<()>; 5] = [
    |records, it| records.announce(&it.path).map(drop),
    |records, it| {
        let due = records.announce(&it.path)?;
        fs::write(due.unfinished(&it.path), &COMMON_DIR[..1])
    },
    |records, it| {
        let due = records.announce(&it.path)?;
        make(it, &due).map(drop)
    },
    |records, it| {
        let due = records.announce(&it.path)?;
        records.make(it, &due).map(drop)
    },
    |records, it| {
        let due = records.announce(&it.path)?;
        records.make(it, &due)?;
        due.done()
    },
];

#[test]
fn whenever_it_is_killed_the_next_one_finds_what_it_left() {
    for (step, killed) in STEPS.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let records = Records::of_this_user();
        for placeholder in all_of(&root) {
            killed(&records, &placeholder).unwrap();
        }
        assert_eq!(names(&root).is_empty(), step == 0);
        records.sweep(&[&root]).unwrap();
        assert_eq!(names(&root), Vec::<PathBuf>::new(), "step {step}");
        assert_eq!(records.about(&root), 0, "step {step}");
    }
}

#[test]
fn one_that_is_at_it_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let records = Records::of_this_user();
    for placeholder in all_of(&root) {
        let due = records.announce(&placeholder.path).unwrap();
        assert!(make(&placeholder, &due).unwrap());
        records.sweep(&[&root]).unwrap();
        assert!(placeholder.path.exists());
        due.done().unwrap();
    }
}

/// What was announced and never made may be somebody's by now.
#[test]
fn what_a_person_has_made_since_stays() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let records = Records::of_this_user();
    let path = root.join("theirs");
    let due = records.announce(&path).unwrap();
    due.set_modified(SystemTime::now() - Duration::from_secs(3_600));
    drop(due);
    fs::create_dir(&path).unwrap();
    records.sweep(&[&root]).unwrap();
    assert!(path.exists());
    assert_eq!(records.about(&root), 0);
}

/// Whoever else writes where records are could have what is a person's own taken away.
#[test]
fn what_others_write_down_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let [home, linked, theirs] = ["home", "linked", "theirs"].map(|name| root.join(name));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::symlink(&home, &linked).unwrap();
    let locked = || Locked::at(&theirs).unwrap().unwrap();
    let own = Records::in_places(&[&home]);
    own.add(locked().id, &theirs).unwrap();
    assert!(own.has(locked().id));
    let not_believed = |place: &Path| {
        let records = Records::in_places(&[place]);
        assert!(!records.has(locked().id));
        records.sweep(&[&root]).unwrap();
        assert!(records.announce(&theirs).is_err() && theirs.exists() && names(&home).len() == 1);
    };
    not_believed(&linked);
    fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
    not_believed(&home);
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    own.sweep(&[&root]).unwrap();
    assert!(!theirs.exists() && names(&home).is_empty());
}
