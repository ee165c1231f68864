use super::world::World;

#[test]
fn a_configured_tool_delegates_as_its_row_says() {
    let world = World::new();
    world.config(
        "[[subagent]]\ntool = 'reviewer'\nprovider = 'spawn'\npersona = 'You review {{label}}.'\n\
         tools = { deny = ['write'] }\nmax_depth = 1",
    );
    let task = "spawn A via reviewer { write a.txt x; spawn B via reviewer { say deep } }";
    let ran = world.tether(&["run", "--sandbox", "workspace-write", task]).ended(0);
    assert!(ran.stdout.contains("`write` is not offered") || ran.stdout.contains("write"), "{}", ran.stdout);
    assert!(!world.path("area/root/a.txt").exists());
    let logs = world.logs();
    let child = logs.values().find(|log| !log.header()["parentSession"].is_null()).unwrap();
    let header = child.all("request/header")[0]["header"].clone();
    assert!(header["system"].as_str().unwrap().contains("You review A."), "{header}");
    let tools: Vec<_> = header["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert!(tools.contains(&"reviewer".into()) && tools.contains(&"read".into()), "{tools:?}");
    assert!(!tools.contains(&"write".into()) && !tools.contains(&"subagent".into()), "{tools:?}");
}

#[test]
fn a_deployments_tools_are_all_there_are() {
    let world = World::new();
    world.config("[tools]\ndeny = ['edit']");
    world.write("area/root/.tether/config.toml", "[tools]\nallow = ['read', 'edit', 'subagent']");
    let ran = world.tether(&["run", "spawn A { say hi }"]).ended(0);
    for log in world.logs().values() {
        let tools = log.all("request/header")[0]["header"]["tools"].clone();
        let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["read", "subagent"], "of the parent and of its child");
    }
    assert_eq!(world.logs().len(), 2, "{}", ran.stderr);
}

#[test]
fn a_row_that_names_what_is_not_there_starts_nothing() {
    for (row, part) in [
        ("provider = 'codex'", "config.toml:1: no subagent provider named `codex`; there are: spawn, fork"),
        ("provider = 'spawn'\ntools = { allow = ['raed'] }", "config.toml:4: no tool named `raed`"),
    ] {
        let world = World::new();
        world.config(&format!("[[subagent]]\ntool = 'helper'\n{row}"));
        let told = world.tether(&["run", "say hi"]).refused(2);
        assert!(told.contains(part), "{told}");
        assert!(world.kept().is_empty());
    }
}
