//! Calls of the file tools, with arguments that a model might get wrong and a few that it might get wickedly right.

mod arguments;
mod schema;

use std::sync::Arc;

use async_trait::async_trait;
use context::{Plugins, Scope};
use fs::FileSystem;
use fs_sandbox::Fence;
use sandbox::{Mode, Workspace};
use sandbox_policy::{ModeSet, SandboxPolicy, SandboxPolicyPlugin};
use serde_json::Value;
use session::{Session, SessionId, Sessions, SessionsPlugin, TurnStart};
use tool_fs::FsTools;
use tools::{Call, OUTPUT_LIMIT, Runner, Then, ToolOutput, code};
use user_approval::{Answer, Answerer, Approval, Policy, Question, UserApprovalPlugin};

use self::schema::Fit;
use crate::oracle::{Did, Places};
use crate::world::{Id, World, run};

/// Calls a file tool. The first line names the tool and the mode, `write workspace-write`; what follows are the arguments
/// as they are, or, where the name begins with `~`, bytes from which arguments are made that nearly fit the tool's schema.
///
/// # Panics
///
/// If a call has no answer or one that is a panic's, if arguments that fit were refused as invalid or others taken, or
/// if anything changed that may not.
pub fn tool_arguments(data: &[u8]) {
    let (first, rest) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    let first = String::from_utf8_lossy(first);
    let (tool, mode) = first.split_once(' ').unwrap_or((&first, ""));
    let mode = if mode == "read-only" { Mode::ReadOnly } else { Mode::WorkspaceWrite };
    let stage = Stage::open(mode);
    match tool.strip_prefix('~') {
        Some(tool) => stage.call(tool, mode, |schema| arguments::nearly_fitting(schema, rest)),
        None => stage.call(tool, mode, |_| String::from_utf8_lossy(rest).into_owned()),
    }
    run(stage.app.close()).expect("nothing that it holds fails to close");
}

struct Stage {
    world: World,
    places: Places,
    app: Scope,
    session: Session,
}

/// Never grants what is asked for.
struct No;

#[async_trait]
impl Answerer for No {
    fn owns(&self, _: SessionId) -> bool {
        true
    }

    async fn answer(&self, _: &Question) -> Option<Answer> {
        Some(Answer::Reject)
    }
}

impl Stage {
    fn open(mode: Mode) -> Self {
        let world = furnished();
        let root = world.at("ws");
        let homes = vec![world.at("home"), world.at("ws/.home")];
        let workspace = homes.iter().fold(Workspace::new(&root), Workspace::home);
        let (app, session) = run(async {
            let app = Scope::root("app");
            let plugins = Plugins::new()
                .with(SessionsPlugin, ())
                .with(SandboxPolicyPlugin, sandbox_policy::Config { default: Mode::ReadOnly })
                .with(UserApprovalPlugin, user_approval::Config { default: Policy::Ask })
                .with(FsTools, tool_fs::Config::default());
            plugins.start(&app).await.expect("the plugins start");
            let approval = app.get::<Approval>().expect("its plugin has started");
            app.own(approval.answer_with(Arc::new(No))).expect("the app is open");
            let sessions = app.get::<Sessions>().expect("its plugin has started");
            let session = sessions.create(root.to_string_lossy());
            session.append(ModeSet::by_user(mode)).expect("a new session is open");
            session.append(TurnStart { turn: 1 }).expect("a new session is open");
            let source = app.get::<SandboxPolicy>().expect("its plugin has started").source_for(&session);
            let fence = Fence::open(workspace, source, app.clone());
            let fence = Arc::new(fence.expect("the root is there"));
            app.provide::<dyn FileSystem>(fence).expect("nobody else provides files");
            (app, session)
        });
        let id = Id::of(&root.metadata().expect("it was just made"));
        let places = Places { root: (root, id), temp: None, homes, protected: Vec::new() };
        Self { world, places, app, session }
    }

    fn call(&self, tool: &str, mode: Mode, arguments: impl FnOnce(&Value) -> String) {
        let mut runner = Runner::new(self.app.realm());
        let schema =
            runner.schemas().iter().find(|schema| *schema.name == *tool).map(|found| found.input_schema.clone());
        let arguments = arguments(schema.as_deref().unwrap_or(&Value::Null));
        if matches!(tool, "glob" | "grep") && self.leads_out(&arguments) {
            return;
        }
        let rules = self.places.rules(self.world.picture());
        let call = Call::new(&self.app, self.session.clone(), tool, arguments.as_str());
        let mut outputs = Vec::new();
        run(runner.run_all(vec![call], |_, output| outputs.push(output)));
        let [output] = &outputs[..] else { panic!("{} answers to one call", outputs.len()) };
        let after = self.world.picture();
        let told = output.to_text();
        check(output, &told);
        match schema {
            None => assert_eq!(output.error.as_deref(), Some(code::UNKNOWN_TOOL), "{told}"),
            Some(schema) => fits(&schema, tool, &arguments, output, &told),
        }
        let writes = matches!(tool, "write" | "edit") && mode == Mode::WorkspaceWrite;
        let did = match (writes, output.is_error()) {
            (false, _) => Did::Nothing,
            (true, true) => Did::Failed,
            (true, false) => Did::Wrote(rules.new_content(&after).expect("what was said to be written is there")),
        };
        assert!(matches!(tool, "read" | "list" | "glob" | "grep") || writes || output.is_error(), "{tool}: {told}");
        rules.judge(&after, &did);
        assert!(!told.contains(self.world.secret()), "{tool} told what is Tether's own: {told}");
    }

    /// Whether a search would look through what the machine has elsewhere: that takes long and says nothing.
    fn leads_out(&self, arguments: &str) -> bool {
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let of_object = arguments.as_object().into_iter().flat_map(|object| object.values());
        let values = of_object.chain(arguments.as_array().into_iter().flatten());
        let mut paths = values.filter_map(Value::as_str).map(|path| self.places.root.0.join(path));
        paths.any(|path| path.exists() && !self.world.holds(&path))
    }
}

/// A world with something of every sort to find.
fn furnished() -> World {
    let world = World::new();
    world.put("ws/.gitignore", "ignored\n*.log\n!kept.log\n");
    world.put("ws/ignored/file.txt", "one\n");
    world.put("ws/kept.log", "kept\r\none\r\n");
    world.put("ws/binary", b"one\0two\n");
    world.put("ws/latin", b"caf\xe9\n");
    world.put("ws/long.txt", format!("{}\none\n", "long ".repeat(1000)));
    world.put("ws/src/main.rs", "fn main() {\n    one();\n    one();\n}\n");
    world.link("../outside", "ws/way-out");
    world.link("../outside/secret.txt", "ws/link-out");
    world.link("sub", "ws/way-in");
    world.link("turning", "ws/turning");
    world.link(".home", "ws/way-home");
    world.link("nothing", "ws/dangling");
    std::fs::hard_link(world.at("outside/secret.txt"), world.at("ws/hard")).expect("the world is writable");
    world
}

/// What an answer has to be, whatever it is to.
fn check(output: &ToolOutput, told: &str) {
    let known = [code::UNKNOWN_TOOL, code::INVALID_ARGUMENTS, code::FAILED, code::SANDBOX_DENIED, code::ESCALATION];
    assert!(output.error.as_deref().is_none_or(|error| known.contains(&error)), "{:?}: {told}", output.error);
    assert!(!told.is_empty() || output.error.is_none(), "a failure that says nothing");
    assert!(!told.contains("panicked"), "{told}");
    assert!(told.len() <= OUTPUT_LIMIT, "{} bytes", told.len());
    assert_eq!(output.then, Then::Continue);
}

/// Whether arguments were taken that do not fit, or refused that do.
fn fits(schema: &Value, tool: &str, arguments: &str, output: &ToolOutput, told: &str) {
    let refused = told.starts_with(&format!("invalid arguments for `{tool}`: "));
    assert!(!refused || output.error.as_deref() == Some(code::INVALID_ARGUMENTS), "{told}");
    match schema::fit(schema, arguments) {
        Fit::Valid => assert!(!refused, "{arguments} fits: {told}"),
        Fit::Invalid => assert!(refused, "{arguments} does not fit: {told}"),
        Fit::Lenient => {}
    }
}
