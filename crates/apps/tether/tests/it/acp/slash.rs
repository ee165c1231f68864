//! Commands of people, over the wire.

use serde_json::json;

use super::client::Client;
use crate::run::world::World;

#[test]
fn commands_are_advertised_and_the_model_sees_nothing_of_them() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let help = client.prompt(&session, "/help");
    assert_eq!(client.stopped(help), "end_turn");
    let preset = client.prompt(&session, "/preset workspace-write");
    assert_eq!(client.stopped(preset), "end_turn");
    let unknown = client.prompt(&session, "/preset nothing");
    let refused = client.answer(unknown).unwrap_err();
    assert!(refused.1.contains("no permission preset named `nothing`"), "{refused:?}");
    let told = client.prompt(&session, "/no-such-command");
    assert_eq!(client.stopped(told), "end_turn", "that is for the model");
    let updates = client.updates(&session);
    let of_kind = |kind: &str| updates.iter().filter(|update| update["sessionUpdate"] == kind).collect::<Vec<_>>();
    let [advertised] = &of_kind("available_commands_update")[..] else { panic!("{updates:?}") };
    let names = advertised["availableCommands"].as_array().unwrap().iter().map(|command| command["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), [json!("help"), json!("preset")]);
    assert_eq!(of_kind("current_mode_update")[0]["currentModeId"], "workspace-write");
    let said = of_kind("agent_message_chunk");
    assert!(said[0]["content"]["text"].as_str().unwrap().starts_with("/help: "), "{said:?}");
    assert!(said[1]["content"]["text"].as_str().unwrap().starts_with("workspace-write is in force"), "{said:?}");
    client.leave();
    let logs = world.logs();
    let lines: Vec<_> = logs.values().next().unwrap().lines().collect();
    let log = lines.join("\n");
    assert!(!log.contains("/help") && !log.contains("/preset w") && log.contains("/no-such-command"), "{log}");
    assert_eq!(log.matches("\"turn/start\"").count(), 1);
}
