//! The folder of scripts, and what it installs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::running;

/// What a kit has.
const FILES: [&str; 6] = ["install.sh", "netns.sh", "ns.sh", "ts_client.mjs", "py_client.py", "validate_frames.py"];

/// How long one installation may take.
const INSTALLING: Duration = Duration::from_secs(900);

/// A kit, and where its programs are.
pub(crate) struct Kit {
    dir: PathBuf,
    real: PathBuf,
}

/// Copies of our own programs, since a build meanwhile would put others in their place. They go away with this.
pub(crate) struct Ours {
    dir: PathBuf,
}

/// The model server; it ends with this.
pub(crate) struct Mock(Pid);

impl Kit {
    pub(crate) fn open(dir: &Path) -> anyhow::Result<Self> {
        let dir = dir.canonicalize().with_context(|| format!("the kit {}", dir.display()))?;
        for file in FILES {
            ensure!(dir.join(file).is_file(), "{} is no kit: it has no {file}", dir.display());
        }
        let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cache/real-programs"));
        let real = std::env::var_os("REAL_DIR").map(PathBuf::from).or_else(home).context("set REAL_DIR or HOME")?;
        fs::create_dir_all(&real)?;
        let kit = Self { dir, real: real.canonicalize()? };
        fs::create_dir_all(kit.logs())?;
        Ok(kit)
    }

    /// A file of the kit.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Something below `$REAL_DIR`.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.real.join(path)
    }

    /// Where logs are.
    pub(crate) fn logs(&self) -> PathBuf {
        self.at("logs")
    }

    /// The search path with the kit's own Node.js first.
    pub(crate) fn path(&self) -> String {
        format!("{}:/usr/local/bin:/usr/bin:/bin", self.at("node/node_modules/node/bin").display())
    }

    /// Installs one, unless it is there.
    pub(crate) fn install(&self, name: &str) -> anyhow::Result<()> {
        // The clients are copied with every install.
        if name != "sdk" && self.at(&format!("pkgs/{name}/package-lock.json")).is_file() {
            return Ok(());
        }
        let mut command = Command::new("bash");
        command.arg(self.file("install.sh")).arg(name).env("REAL_DIR", &self.real);
        let ended = running::run(&mut command, INSTALLING)?;
        ensure!(ended.code == Some(0), "its installation failed, {}", ended.tail());
        Ok(())
    }

    /// Installs one from cargo's registry, unless it is there.
    pub(crate) fn cargo_install(&self, name: &str) -> anyhow::Result<()> {
        if self.at("bin").join(name).is_file() {
            return Ok(());
        }
        let mut command = Command::new("cargo");
        command.args(["install", "--quiet", "--locked", name, "--root"]).arg(&self.real).current_dir(&self.real);
        let ended = running::run(&mut command, INSTALLING)?;
        ensure!(ended.code == Some(0), "its installation failed, {}", ended.tail());
        Ok(())
    }

    /// Starts the model server.
    pub(crate) fn start_mock(&self) -> anyhow::Result<Mock> {
        for left in ["mock.pid", "mock.out"] {
            let _ = fs::remove_file(self.logs().join(left));
        }
        let mut command = Command::new("bash");
        let ended =
            running::run(command.arg(self.file("netns.sh")).env("REAL_DIR", &self.real), Duration::from_secs(30))?;
        let pid = fs::read_to_string(self.logs().join("mock.pid")).ok().and_then(|text| text.trim().parse().ok());
        let mock = pid.and_then(Pid::from_raw).map(Mock);
        ensure!(ended.code == Some(0), "the model server did not start, {}", ended.tail());
        mock.context("the model server left no logs/mock.pid")
    }

    /// A program beside the model server, with nothing in its environment but what every program needs.
    pub(crate) fn beside(&self, program: &Path) -> Command {
        let mut command = Command::new("bash");
        command.arg(self.file("ns.sh")).arg(program).env_clear();
        command.env("REAL_DIR", &self.real).env("PATH", self.path()).env("TERM", "dumb").env("LANG", "C.UTF-8");
        command
    }
}

impl Ours {
    /// Copies what was built into `target`.
    pub(crate) fn copy(kit: &Kit, target: &Path) -> anyhow::Result<Self> {
        let ours = Self { dir: kit.at(&format!("w/ours-{}", std::process::id())) };
        fs::create_dir_all(&ours.dir)?;
        for (from, to) in [(target.join("tether"), ours.tether()), (std::env::current_exe()?, ours.recorder())] {
            fs::copy(&from, to).with_context(|| format!("{} could not be copied", from.display()))?;
        }
        Ok(ours)
    }

    pub(crate) fn tether(&self) -> PathBuf {
        self.dir.join("tether")
    }

    /// This program, which writes frames down.
    pub(crate) fn recorder(&self) -> PathBuf {
        self.dir.join("xtask")
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_kit() {
        let error = Kit::open(Path::new(env!("CARGO_MANIFEST_DIR"))).err().unwrap().to_string();
        assert!(error.contains("it has no install.sh"), "{error}");
    }
}
