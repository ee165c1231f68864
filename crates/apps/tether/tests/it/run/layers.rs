//! Whose configuration counts.

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::process::Ran;
use super::world::World;

#[test]
fn a_session_goes_on_under_its_own_projects_configuration() {
    let world = World::new();
    let narrow = "[sandbox]\nprotected = ['secrets']\n[budget]\nmax_depth = 0\n";
    world.write("area/root/.tether/config.toml", narrow);
    std::fs::create_dir(world.path("area/root/secrets")).unwrap();
    let id = world.tether(&["run", "--sandbox", "workspace-write", "say hi"]).ended(0).id();
    // Started elsewhere, where a file is even broken.
    world.write("elsewhere/.tether/config.toml", "nonsense = 1");
    let mut command = world.command(&["run", "--resume", &id, "write secrets/a x; spawn A { say hi }"]);
    command.current_dir(world.path("elsewhere"));
    let ran = Ran::of(command).ended(0);
    assert!(ran.stdout.contains("sandbox denied: write") && ran.stdout.contains("limit of 0"), "{}", ran.stdout);
    assert!(!world.path("area/root/secrets/a").exists());
}

#[test]
fn a_file_of_keys_decides_nothing_else() {
    let world = World::new();
    let file = world.write("area/root/.env", "OPENAI_API_KEY=k\nTETHER_SANDBOX_DEFAULT=danger-full-access\n");
    let told = world.tether(&["run", "--env-file", file.to_str().unwrap(), "write ../x y"]).refused(2);
    assert!(told.contains("TETHER_SANDBOX_DEFAULT is not for a file of keys"), "{told}");
    assert!(!world.path("area/x").exists());
}

#[test]
fn a_home_that_is_relative_configures_nothing() {
    let world = World::new();
    world.write("area/root/.config/tether/.env", "OPENAI_API_KEY=stranger\n");
    let mut command = world.command(&["run", "say hi"]);
    command.env("HOME", ".").env_remove("XDG_CONFIG_HOME");
    let ran = Ran::of(command).ended(0);
    assert!(ran.stderr.contains("offline/script"), "{}", ran.stderr);
}

#[test]
fn a_pipe_among_the_logs_holds_up_nobody() {
    let world = World::new();
    let id = world.tether(&["run", "say hi"]).ended(0).id();
    let pipe = world.log_path("01a22d2d-0000-7000-8000-000000000001");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let tree = world.tether(&["sessions", "tree", &id]).ended(0);
    assert!(tree.stdout.contains(&id), "{}", tree.stdout);
}

#[test]
fn other_names_of_tethers_own_files_are_tethers_own() {
    let world = World::new();
    world.write("config/tether/.env", "OPENAI_API_KEY=sk-secret\n");
    world.config("# sk-configured\n");
    for (own, name) in [(".env", "keys"), ("config.toml", "settings")] {
        std::fs::hard_link(world.path("config/tether").join(own), world.root().join(name)).unwrap();
    }
    for mode in ["read-only", "workspace-write"] {
        let args = ["run", "--model", "offline/script", "--sandbox", mode, "read keys; read settings"];
        let ran = world.tether(&args).ended(0);
        assert_eq!(ran.stdout.matches("sandbox denied").count(), 2, "{}", ran.stdout);
        assert!(world.logs().values().all(|log| !log.text().contains("sk-")), "{}", ran.stdout);
    }
}

#[test]
fn what_is_tethers_own_is_nobodys_to_read_or_write() {
    let world = World::new();
    world.write("config/tether/.env", "OPENAI_API_KEY=sk-secret\n");
    let keys = world.write("area/root/keys.env", "OPENAI_API_KEY=sk-other\n");
    let (own, named) = (world.path("config/tether/.env"), keys.to_str().unwrap().to_owned());
    let task = format!("read {}; read {named}; write {} x", own.display(), own.with_file_name("config.toml").display());
    let root = world.base().to_str().unwrap().to_owned();
    let args = ["run", "--cwd", &root, "--sandbox", "workspace-write", "--model", "offline/script"];
    let ran = world.tether(&[&args[..], &["--env-file", &named, &task]].concat()).ended(0);
    assert_eq!(ran.stdout.matches("sandbox denied").count(), 3, "{}", ran.stdout);
    assert!(!ran.stdout.contains("sk-") && !world.path("config/tether/config.toml").exists(), "{}", ran.stdout);
}
