use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use context::{Ctx, ProvideError, RegisterError, Scope};
use shuttle::future::spawn;

use crate::{Trace, check, pause};

struct Service;

/// The scope may begin to close between any two steps of it.
#[test]
fn a_service_or_name_given_to_a_closing_scope_is_not_found_afterwards() {
    check(|| async {
        let app = Scope::root("app");
        let closing = app.child("closing").unwrap();
        let providing = spawn({
            let (ctx, realm) = (Ctx::clone(&closing), app.realm().clone());
            async move {
                match ctx.provide(Arc::new(Service)) {
                    Ok(()) | Err(ProvideError::Closing(_)) => {}
                    Err(ProvideError::AlreadyProvided(other)) => panic!("{other}"),
                }
                match ctx.register("name", Arc::new(Service)) {
                    Ok(()) => {}
                    Err(RegisterError::Closing(_)) => assert!(realm.named::<Service>("name").is_none()),
                    Err(RegisterError::NameTaken(other)) => panic!("{other}"),
                }
            }
        });
        closing.close().await.unwrap();
        providing.await.unwrap();
        assert!(app.get::<Service>().is_none() && app.realm().named::<Service>("name").is_none());
        app.provide(Arc::new(Service)).expect("the place is free again");
        app.close().await.unwrap();
    });
}

/// A standing emitter compares a counter instead of looking up. However that meets a change: what was registered before
/// an event hears it, what was withdrawn before it does not.
#[test]
fn a_standing_emitter_misses_no_change() {
    check(|| async {
        let (app, heard) = (Scope::root("app"), Trace::default());
        let (there, leaving, gone) = <(Flag, Flag, Flag)>::default();
        let listening = spawn({
            let (realm, heard) = (app.realm().clone(), heard.clone());
            let (there, leaving, gone) = (there.clone(), leaving.clone(), gone.clone());
            async move {
                let listener = realm.on(move |event: &usize| heard.note(*event));
                there.set();
                pause().await;
                leaving.set();
                drop(listener);
                gone.set();
            }
        });
        let mut emitter = app.realm().nested().emitter::<usize>();
        for event in 0..6 {
            let (was_there, was_gone) = (there.is_set(), gone.is_set());
            emitter.emit(&event);
            let was_heard = heard.list().contains(&event);
            assert!(was_heard || !was_there || leaving.is_set(), "{event} was missed");
            assert!(!was_heard || !was_gone, "{event} was heard by one who had left");
            pause().await;
        }
        listening.await.unwrap();
        app.close().await.unwrap();
    });
}

#[derive(Clone, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
