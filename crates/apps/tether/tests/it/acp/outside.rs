//! A child that is another Tether, over the wire.

use crate::commands::confines;
use crate::run::world::World;

// D-32, D-62
#[test]
fn the_kernel_holds_a_child_whose_own_settings_hold_it_to_nothing() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    let state = world.path("state");
    std::fs::create_dir(&state).unwrap();
    let own = state.display();
    // By no name: a confined process may not see where the program is.
    world.config(&format!(
        "[[provider.acp]]\nname = 'inner'\nwritable = ['{own}']\nenv = {{ TMPDIR = '{own}' }}\n\
         command = ['/proc/self/exe', 'acp', '--home', '{own}/home', '--sandbox', 'danger-full-access']"
    ));
    let task = r#"call subagent_inner {"description": "x", "prompt": "write in.txt x; write ../out.txt x; say tried"}"#;
    for (mode, lands, denials) in [
        ("read-only", [false, false], 2),
        ("workspace-write", [true, false], 1),
        ("danger-full-access", [true, true], 0),
    ] {
        let lines = world.tether(&["run", "--json", "--sandbox", mode, task]).ended(0).json();
        let result = lines.last().unwrap();
        assert_eq!(result["denials"].as_array().unwrap().len(), denials, "{mode}: {result}");
        assert!(result["output"].as_str().unwrap().contains("tried"), "{mode}: {result}");
        let there = ["area/root/in.txt", "area/out.txt"].map(|path| std::fs::remove_file(world.path(path)).is_ok());
        assert_eq!(there, lands, "{mode}");
    }
}
