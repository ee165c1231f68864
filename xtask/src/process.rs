//! Running other programs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// The cargo that runs us, in the root of the workspace.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Runs a program on our streams.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("`{}` could not be started", shown(command)))?;
    ensure!(status.success(), "`{}` failed ({status})", shown(command));
    Ok(())
}

/// Runs a program on our streams, and shows `see` each line of its output as it passes.
pub(crate) fn run_seen(command: &mut Command, mut see: impl FnMut(&str)) -> anyhow::Result<()> {
    let started = command.stdout(Stdio::piped()).spawn();
    let mut child = started.with_context(|| format!("`{}` could not be started", shown(command)))?;
    let mut output = BufReader::new(child.stdout.take().expect("it was piped just now"));
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        see(text.trim_end());
        line.clear();
    }
    let status = child.wait()?;
    ensure!(status.success(), "`{}` failed ({status})", shown(command));
    Ok(())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
