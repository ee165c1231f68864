//! What a model sees of the tools, byte for byte.

use sandbox::Mode;
use tools::Tool;
use user_approval::Escalation;

use crate::stage::Stage;

fn seen(escalation: Escalation) -> String {
    let stage = Stage::new(Mode::ReadOnly, escalation);
    let one = |(_, tool): (_, std::sync::Arc<dyn Tool>)| {
        let schema = tool.schema();
        format!("{}: {}\n{}\n", schema.name, schema.description, schema.input_schema)
    };
    stage.app.realm().all_named::<dyn Tool>().into_iter().map(one).collect()
}

#[test]
fn the_tools_are_seen_like_this() {
    insta::assert_snapshot!(seen(Escalation::Offered));
}

#[test]
fn without_asking_only_its_two_arguments_are_missing() {
    insta::assert_snapshot!(seen(Escalation::NotOffered));
}

#[test]
fn the_schemas_do_not_depend_on_the_mode() {
    let names = |mode| {
        let stage = Stage::new(mode, Escalation::Offered);
        let tools = stage.app.realm().all_named::<dyn Tool>();
        tools.iter().map(|(_, tool)| tool.schema().clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(Mode::ReadOnly), names(Mode::DangerFullAccess));
}
