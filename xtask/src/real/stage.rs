//! Where one program is tried: folders of its own, and an agent whose frames are written down.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::kit::{Kit, Ours};
use super::running::{self, MARK};
use super::{Found, Row};

/// Folders for one program.
pub(crate) struct Stage<'a> {
    pub(crate) kit: &'a Kit,
    pub(crate) program: &'static str,
    pub(crate) ours: &'a Ours,
    /// What the processes of this stage carry.
    pub(crate) mark: String,
    root: PathBuf,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(kit: &'a Kit, ours: &'a Ours, program: &'static str) -> anyhow::Result<Self> {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        let root = kit.at(&format!("w/{program}-{time}"));
        for dir in ["workspace", "outside", "home", "tether", "frames", "config/tether"] {
            fs::create_dir_all(root.join(dir))?;
        }
        Ok(Self { kit, ours, program, mark: format!("{program}-{time}"), root })
    }

    /// One of its folders, or a file in one.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// What a file of the workspace holds.
    pub(crate) fn holds(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at("workspace").join(name)).ok()
    }

    /// A program beside the model server, in the workspace.
    pub(crate) fn beside(&self, program: &Path) -> Command {
        let mut command = self.kit.beside(program);
        command.current_dir(self.at("workspace")).env("HOME", self.at("home")).env(MARK, &self.mark);
        command.env("XDG_CONFIG_HOME", self.at("config")).env("TETHER_HOME", self.at("tether"));
        command
    }

    /// A script that runs `tether acp` with these options, and writes its frames down.
    pub(crate) fn agent(&self, name: &str, options: &[&str]) -> anyhow::Result<PathBuf> {
        let mut words = self.recorder(name);
        words.push(self.ours.tether().display().to_string());
        words.extend(["acp", "--model", "offline/script"].map(str::to_owned));
        words.extend(options.iter().map(|&option| option.to_owned()));
        let script = self.at(&format!("{name}.sh"));
        let quoted: Vec<_> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        fs::write(&script, format!("#!/bin/sh\nexec {}\n", quoted.join(" ")))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(script)
    }

    /// The words before a command whose frames are written down.
    pub(crate) fn recorder(&self, name: &str) -> Vec<String> {
        let ours = self.ours.recorder().display().to_string();
        let log = self.at("frames").join(name).display().to_string();
        vec![ours, "real".into(), "--record".into(), log, "--".into()]
    }

    /// The logs of frames, of all or of those that were recorded under one name.
    pub(crate) fn logs(&self, name: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.at("frames")).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_of = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            file.ends_with(".jsonl") && (name.is_empty() || file.starts_with(&format!("{name}.")))
        };
        let mut logs: Vec<_> = entries.filter(is_of).collect();
        logs.sort();
        logs
    }

    /// All frames that were recorded under a name.
    pub(crate) fn frames(&self, name: &str) -> String {
        self.logs(name).iter().filter_map(|log| fs::read_to_string(log).ok()).collect()
    }

    /// A line of the table: right if nothing speaks against it, and nothing stays running.
    pub(crate) fn row(&self, tried: &str, seen: String, against: &[(bool, String)], grace: Duration) -> Row {
        let mut wrong: Vec<String> = against.iter().filter(|(is, _)| *is).map(|(_, why)| why.clone()).collect();
        let left = running::survivors(&self.mark, grace);
        if !left.is_empty() {
            wrong.push(format!("still running: {}", left.join(", ")));
        }
        let found = if wrong.is_empty() { Found::Right(seen) } else { Found::Wrong(wrong.join("; ")) };
        Row { program: self.program, tried: tried.into(), found }
    }
}
