//! Programs that others wrote, against ours: clients that drive `tether acp`, and agents that Tether drives as children.
//!
//! A kit is a folder of scripts that installs them and answers as their model: `install.sh NAME`, `netns.sh` (starts the model
//! server in a network namespace that has nothing but loopback), `ns.sh COMMAND` (runs beside it), the clients `ts_client.mjs`
//! and `py_client.py`, and `validate_frames.py LOG…`. All that it installs is in `$REAL_DIR`.

mod children;
mod clients;
mod frames;
mod kit;
mod running;
mod stage;

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use kit::{Kit, Ours};

use crate::process;
use crate::workspace::Workspace;

pub(crate) use frames::{is_recorder, record};

/// The programs, in the order of the table, each with what it is to the kit's `install.sh`.
const PROGRAMS: [(&str, Option<&str>); 7] = [
    ("acpx", Some("acpx")),
    ("ts-sdk", Some("sdk")),
    ("py-sdk", Some("sdk")),
    ("yopo", None),
    ("codex-acp", Some("codex-acp")),
    ("claude-acp", Some("claude-acp")),
    ("opencode", Some("opencode")),
];

/// One line of the table.
pub(crate) struct Row {
    program: &'static str,
    tried: String,
    found: Found,
}

/// What came of it.
pub(crate) enum Found {
    /// It is right; what was seen, if that needs saying.
    Right(String),
    /// It is wrong, and how.
    Wrong(String),
    /// It could not be tried, and why.
    NotRun(String),
}

/// Installs, runs and tells. Fails if anything is wrong.
pub(crate) fn run(workspace: &Workspace, args: &[&str]) -> anyhow::Result<()> {
    let (dir, chosen) = parse(args)?;
    let kit = Kit::open(&dir)?;
    process::run(process::cargo(&workspace.root).args(["build", "-q", "-p", "tether"]))?;
    let target = std::env::current_exe()?.parent().context("we are in no folder")?.to_owned();
    let ours = Ours::copy(&kit, &target)?;
    let mock = kit.start_mock()?;
    let mut rows = Vec::new();
    for (program, installer) in PROGRAMS.into_iter().filter(|(name, _)| chosen.is_empty() || chosen.contains(name)) {
        eprintln!("real: {program}");
        let installed = match installer {
            Some(name) => kit.install(name),
            None => kit.cargo_install(program),
        };
        if let Err(error) = installed {
            rows.push(Row { program, tried: "install".into(), found: Found::NotRun(format!("{error:#}")) });
            continue;
        }
        let stage = stage::Stage::new(&kit, &ours, program)?;
        rows.extend(match program {
            "acpx" => clients::acpx(&stage),
            "ts-sdk" | "py-sdk" | "yopo" => clients::one_shot(&stage),
            _ => children::all_modes(&stage),
        }?);
        rows.push(frames::valid(&stage)?);
    }
    drop(mock);
    print!("{}", table(&rows));
    let wrong = rows.iter().filter(|row| matches!(row.found, Found::Wrong(_))).count();
    ensure!(wrong == 0, "real: {wrong} of {} are wrong; logs are in {}", rows.len(), kit.logs().display());
    Ok(())
}

fn parse<'a>(args: &[&'a str]) -> anyhow::Result<(PathBuf, Vec<&'a str>)> {
    let (["--kit", dir, rest @ ..], usage) = (args, "usage: cargo xtask real --kit DIR [--only NAME…]") else {
        bail!("usage: cargo xtask real --kit DIR [--only NAME…]");
    };
    let chosen = match rest {
        [] => Vec::new(),
        ["--only", names @ ..] if !names.is_empty() => names.to_vec(),
        other => bail!("`{}` is not understood; {usage}", other.join(" ")),
    };
    for name in &chosen {
        let known = PROGRAMS.map(|(name, _)| name);
        ensure!(known.contains(name), "no such program: `{name}`; there are {}", known.join(", "));
    }
    Ok((PathBuf::from(*dir), chosen))
}

fn table(rows: &[Row]) -> String {
    let lines = rows.iter().map(|Row { program, tried, found }| {
        let result = match found {
            Found::Right(seen) if seen.is_empty() => "ok".to_owned(),
            Found::Right(seen) => format!("ok: {seen}"),
            Found::Wrong(why) => format!("**wrong**: {why}"),
            Found::NotRun(why) => format!("not run: {why}"),
        };
        format!("| {program} | {tried} | {} |\n", result.replace('|', "\\|").replace('\n', " "))
    });
    std::iter::once("| program | tried | result |\n|---|---|---|\n".to_owned()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let (dir, chosen) = parse(&["--kit", "k", "--only", "acpx", "opencode"]).unwrap();
        assert_eq!((dir, chosen), (PathBuf::from("k"), vec!["acpx", "opencode"]));
        assert!(parse(&["--kit", "k"]).unwrap().1.is_empty());
        for bad in [&[][..], &["--kit"], &["--kit", "k", "--only"], &["--kit", "k", "acpx"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        let error = parse(&["--kit", "k", "--only", "acp"]).unwrap_err().to_string();
        assert!(error.contains("`acp`") && error.contains("acpx"), "{error}");
    }

    #[test]
    fn a_cell_stays_a_cell() {
        let found = Found::Wrong("a|b\nc".into());
        let table = table(&[Row { program: "p", tried: "t".into(), found }]);
        assert!(table.ends_with("| p | t | **wrong**: a\\|b c |\n"), "{table}");
    }
}
