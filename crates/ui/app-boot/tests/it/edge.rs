//! The environment and the places.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use app_boot::{Boot, ConfigError, Env, Origin, Places, Source, Stop, Stops};

use crate::world::World;

fn places(variables: &[(&str, &str)], home: Option<&str>) -> Result<Places, ConfigError> {
    Places::find(&Env::of(variables), home.map(Into::into))
}

#[track_caller]
fn check(variables: &[(&str, &str)], home: Option<&str>, want: (&str, Origin), config: (&str, Origin)) {
    let found = places(variables, home).unwrap();
    assert_eq!((found.home.as_path(), found.home_from), (Path::new(want.0), want.1), "{variables:?}");
    assert_eq!((found.config.as_path(), found.config_from), (Path::new(config.0), config.1), "{variables:?}");
}

#[test]
fn where_things_are_kept() {
    let user = ("/u/.config/tether", Origin::Default);
    let kept =
        if cfg!(target_os = "macos") { "/u/Library/Application Support/tether" } else { "/u/.local/share/tether" };
    check(&[("HOME", "/u")], None, (kept, Origin::Default), user.clone());
    let data = [("HOME", "/u"), ("XDG_DATA_HOME", "/d")];
    check(&data, None, ("/d/tether", Origin::Variable("XDG_DATA_HOME")), user.clone());
    let home = [("HOME", "/u"), ("XDG_DATA_HOME", "/d"), ("TETHER_HOME", "/t")];
    check(&home, None, ("/t", Origin::Variable("TETHER_HOME")), user.clone());
    check(&home, Some("/f"), ("/f", Origin::Flag("--home")), user);
    let config = [("HOME", "/u"), ("XDG_CONFIG_HOME", "/c")];
    check(&config, None, (kept, Origin::Default), ("/c/tether", Origin::Variable("XDG_CONFIG_HOME")));
    // Without a user's directory, everything is in one place.
    let alone = [("TETHER_HOME", "/t")];
    check(&alone, None, ("/t", alone_from()), ("/t/config", alone_from()));
}

fn alone_from() -> Origin {
    Origin::Variable("TETHER_HOME")
}

#[test]
fn a_repository_is_no_place_for_configuration() {
    // Whoever leaves HOME relative would have it looked for below the working directory.
    assert_eq!(places(&[("HOME", ".")], None).unwrap_err(), ConfigError::NoHome);
    let without = places(&[("TETHER_HOME", "here")], None).unwrap_err();
    assert_eq!(without, ConfigError::NoConfig { home: "here".into() });
    assert!(without.to_string().contains("and here is relative; name an absolute one"), "{without}");
    assert_eq!(places(&[], Some("here")).unwrap_err(), without);
    let found = places(&[("HOME", "/u"), ("XDG_CONFIG_HOME", "relative"), ("TETHER_HOME", "here")], None).unwrap();
    assert_eq!(found.config, Path::new("/u/.config/tether"));
    assert!(found.home.is_absolute() && found.home.ends_with("here"));
    assert!(places(&[("HOME", "")], None).is_err());
}

#[test]
fn the_environment_goes_over_the_file_of_keys() {
    let world = World::new().set("OPENAI_API_KEY", "own").set("GEMINI_API_KEY", "");
    let file =
        world.write("config/tether/.env", "OPENAI_API_KEY=file\nANTHROPIC_API_KEY='a b'\nGEMINI_API_KEY=g\nEMPTY=\n");
    let env = world.boot().env;
    let of_file = Some(Source::File(file.into()));
    assert_eq!(
        (env.get("OPENAI_API_KEY").as_deref(), env.source("OPENAI_API_KEY")),
        (Some("own"), Some(Source::Process))
    );
    assert_eq!((env.get("ANTHROPIC_API_KEY").as_deref(), env.source("ANTHROPIC_API_KEY")), (Some("a b"), of_file));
    assert_eq!(env.get("GEMINI_API_KEY").as_deref(), Some("g"), "an empty variable is none");
    assert_eq!((env.get("EMPTY"), env.source("EMPTY")), (None, None));
}

#[test]
fn a_named_file_of_keys_takes_the_place_of_the_users() {
    let world = World::new();
    world.write("config/tether/.env", "A=users\nB=users");
    let named = world.write("keys", "A=named");
    let env = Env::of(&[("HOME", world.path("user")), ("XDG_CONFIG_HOME", world.path("config"))]);
    let boot = Boot::new(env, None, Some(&named)).unwrap();
    assert_eq!((boot.env.get("A").as_deref(), boot.env.get("B")), (Some("named"), None));
    let config = world.path("config/tether");
    assert_eq!(boot.private(), [named, config.clone(), config.join(".env"), config.join("config.toml")]);
}

#[test]
fn a_file_of_keys_that_is_wrong() {
    let cases: [(&[u8], &str); 5] = [
        (b"OPENAI_API_KEY sk-not-to-be-seen", "not NAME=value"),
        (b"A=1\nOPENAI_API_KEY=\"sk-not-to-be-seen", "not NAME=value"),
        (b"OPENAI_API_KEY=sk-not-to-be-seen\xff", "UTF-8"),
        (&[b'#'; 256 * 1024 + 1], "more than 262144 bytes"),
        (b"TETHER_SANDBOX_DEFAULT=danger-full-access", "TETHER_SANDBOX_DEFAULT is not for a file of keys"),
    ];
    for (text, part) in cases {
        let world = World::new();
        let file = world.write("config/tether/.env", text);
        let env = || Env::of(&[("HOME", world.path("user")), ("XDG_CONFIG_HOME", world.path("config"))]);
        for named in [None, Some(&*file)] {
            let told = Boot::new(env(), None, named).unwrap_err().to_string();
            assert!(told.contains(file.to_str().unwrap()) && told.contains(part), "{told}");
            assert!(!told.contains("sk-"), "{told}");
        }
    }
}

#[test]
fn a_variable_of_our_own_that_is_not_utf_8() {
    let world = World::new();
    let own = |name: &str| {
        let mut variables = vec![("HOME".to_owned(), world.path("user").into_os_string())];
        variables.push((name.to_owned(), OsString::from(OsStr::from_bytes(b"caf\xe9"))));
        Boot::new(Env::of(&variables), None, None).unwrap().configure(&world.path("project"), Default::default())
    };
    assert_eq!(own("TETHER_MODEL").unwrap_err().to_string(), "$TETHER_MODEL: not UTF-8");
    let script = own("TETHER_OFFLINE_SCRIPT").unwrap().script.value.unwrap();
    assert_eq!(script.as_os_str().as_bytes(), b"caf\xe9", "a path may be anything");
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_given_is_over_once_and_stays_so() {
    let stops = Stops::listen(130).unwrap();
    let begun = tokio::time::Instant::now();
    let stops = stops.give(Some(Duration::from_secs(60)));
    assert_eq!(stops.stopped().await, Stop::TimedOut);
    assert_eq!(begun.elapsed().as_secs(), 60);
    assert_eq!(stops.stopped().await, Stop::TimedOut);
    assert_eq!(begun.elapsed().as_secs(), 60, "at once");
    // Longer than any clock counts.
    let endless = stops.give(Some(Duration::MAX));
    tokio::time::timeout(Duration::from_secs(1_000_000), endless.stopped()).await.unwrap_err();
}
