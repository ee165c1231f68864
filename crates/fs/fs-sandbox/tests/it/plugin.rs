//! Each agent of an app gets the fence of its own session.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use agent::{AgentDriver, Agents, AgentsPlugin, CreateError, Driven, Profile, Spec};
use context::{Boxed, Plugins, Scope};
use fs::{FileSystem, Why};
use fs_sandbox::{Config, FsSandboxPlugin, Tmp};
use llm::Route;
use sandbox::{Mode, Workspace};
use sandbox_policy::{ModeSet, SandboxPolicyPlugin};
use session::{Delegation, Seed, Session, Sessions, SessionsPlugin};

use crate::world::{How, World, how};

struct Idle;

impl AgentDriver for Idle {
    fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
        Box::pin(async move { while driven.next_turn().await.is_some() {} })
    }
}

// D-01
#[test]
fn a_child_writes_no_more_than_its_parent_could_at_the_delegation() {
    let world = World::new(Mode::ReadOnly);
    world.run(async {
        let app = Scope::root("app");
        app.provide::<dyn AgentDriver>(Arc::new(Idle)).unwrap();
        let private = vec![world.at("config/.env"), world.at("home")];
        let config = Config { private, protected: vec!["ci".into()], tmp: Tmp::Private };
        Plugins::new()
            .with(SessionsPlugin, ())
            .with(AgentsPlugin, ())
            .with(FsSandboxPlugin, config)
            .with(SandboxPolicyPlugin, sandbox_policy::Config { default: Mode::DangerFullAccess })
            .start(&app)
            .await
            .unwrap();
        let (agents, sessions) = (app.get::<Agents>().unwrap(), app.get::<Sessions>().unwrap());
        let spec = |session| Spec::new(session, Profile::of(Route::new("offline", "none")));
        let parent = sessions.create(world.at("ws").to_str().unwrap());
        parent.append(ModeSet::by_user(Mode::WorkspaceWrite)).unwrap();
        let child = Session::delegated(Delegation::capture(&parent).unwrap(), Seed::Fresh);
        parent.append(ModeSet::by_user(Mode::DangerFullAccess)).unwrap();

        let parent = agents.create(&app, spec(parent)).await.unwrap();
        let child = agents.create(&app, spec(child)).await.unwrap();
        let files = |agent: &agent::Agent| agent.ctx().get::<dyn FileSystem>().unwrap();
        let (mine, theirs) = (files(&parent), files(&child));
        assert_eq!((mine.mode(), theirs.mode()), (Mode::DangerFullAccess, Mode::WorkspaceWrite));
        assert_eq!(how(&mine.write("../up", b"x".to_vec(), None).await), How::Done);
        assert_eq!(how(&theirs.write("../down", b"x".to_vec(), None).await), How::Denied(Why::Outside));
        assert_eq!(how(&theirs.write("ci/x", b"x".to_vec(), None).await), How::Denied(Why::Protected));
        assert_eq!(how(&theirs.read("../home/sessions/other.jsonl", 9).await), How::Denied(Why::Home));
        assert_eq!(how(&theirs.write("in", b"x".to_vec(), None).await), How::Done);
        assert!(world.at("up").exists() && !world.at("down").exists() && world.at("ws/in").exists());
        assert!(app.get::<dyn FileSystem>().is_none(), "an app has no files of its own");

        let temp = |agent: &agent::Agent| {
            let workspace = agent.ctx().get::<Workspace>().expect("it is for other enforcers too");
            workspace.temp_dir().expect("it was asked for").to_owned()
        };
        let (my_temp, their_temp) = (temp(&parent), temp(&child));
        assert_ne!(my_temp, their_temp);
        let above = their_temp.parent().unwrap();
        assert_eq!(std::fs::metadata(above).unwrap().permissions().mode() & 0o777, 0o700);
        let name = |dir: &std::path::Path| dir.join("x").to_str().unwrap().to_owned();
        assert_eq!(how(&theirs.write(&name(&their_temp), b"x".to_vec(), None).await), How::Done);
        assert_eq!(how(&theirs.write(&name(&my_temp), b"x".to_vec(), None).await), How::Denied(Why::Outside));
        child.dispose().await.unwrap();
        assert!(my_temp.exists() && !their_temp.exists(), "it goes with its agent");

        let nowhere = agents.create(&app, spec(sessions.create("/no/such/directory"))).await;
        assert!(matches!(nowhere, Err(CreateError::Setup(_))));
        app.close().await.unwrap();
    });
}

#[test]
fn the_plugin_needs_a_policy_and_says_so() {
    let world = World::new(Mode::ReadOnly);
    world.run(async {
        let app = Scope::root("app");
        let error = Plugins::new().with(FsSandboxPlugin, Config::default()).start(&app).await.unwrap_err();
        assert_eq!(error.to_string(), "the plugin `fs-sandbox` needs sandbox_policy::SandboxPolicy");
        app.close().await.unwrap();
    });
}
