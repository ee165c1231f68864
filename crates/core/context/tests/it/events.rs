use std::sync::{Arc, Mutex};

use context::{Realm, Registration, Scope};

use crate::Trace;

struct Said(&'static str);

fn listen(realm: &Realm, trace: &Trace, name: &'static str) -> Registration {
    let trace = trace.clone();
    realm.on::<Said>(move |said| trace.note(format!("{name}: {}", said.0)))
}

#[tokio::test]
async fn listeners_hear_in_order_innermost_realm_first() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let (outer, inner) = (app.realm().clone(), app.realm().nested());
    let _far = listen(&outer, &trace, "outer");
    let _one = listen(&inner, &trace, "one");
    let _two = listen(&inner, &trace, "two");
    inner.emit(&Said("hi"));
    assert_eq!(trace.take(), ["one: hi", "two: hi", "outer: hi"]);
    outer.emit(&Said("ho"));
    assert_eq!(trace.take(), ["outer: ho"], "nothing goes inwards");
    outer.nested().emit(&Said("he"));
    assert_eq!(trace.take(), ["outer: he"], "or sideways");
    inner.emit(&7_u32);
    assert_eq!(trace.take(), [""; 0], "an event is its type");
}

#[tokio::test]
async fn a_listener_that_panics_starves_nobody() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let _one = listen(app.realm(), &trace, "one");
    let _broken = app.realm().on::<Said>(|_| panic!("a listener's own trouble"));
    let _two = listen(app.realm(), &trace, "two");
    app.realm().emit(&Said("a"));
    let mut emitter = app.realm().emitter::<Said>();
    emitter.emit(&Said("b"));
    emitter.emit(&Said("c"));
    assert_eq!(trace.take(), ["one: a", "two: a", "one: b", "two: b", "one: c", "two: c"]);
}

#[tokio::test]
async fn an_emitter_notices_who_comes_and_goes() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let (outer, inner) = (app.realm().clone(), app.realm().nested());
    let mut emitter = inner.emitter::<Said>();
    assert!(!emitter.is_heard());
    emitter.emit(&Said("nobody"));
    let far = listen(&outer, &trace, "outer");
    assert!(emitter.is_heard());
    emitter.emit(&Said("1"));
    let near = listen(&inner, &trace, "inner");
    emitter.emit(&Said("2"));
    drop(far);
    emitter.emit(&Said("3"));
    drop(near);
    assert!(!emitter.is_heard());
    emitter.emit(&Said("4"));
    assert_eq!(trace.take(), ["outer: 1", "inner: 2", "outer: 2", "inner: 3"]);
}

#[tokio::test]
async fn a_listener_may_change_who_listens() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let held: Arc<Mutex<Vec<Registration>>> = Arc::default();
    let (realm, note, keep) = (app.realm().clone(), trace.clone(), held.clone());
    let _greeter = app.realm().on::<Said>(move |said| {
        note.note(format!("greeter: {}", said.0));
        if said.0 == "come" {
            keep.lock().unwrap().push(listen(&realm, &note, "guest"));
        } else {
            drop(std::mem::take(&mut *keep.lock().unwrap()));
        }
    });
    let mut emitter = app.realm().emitter::<Said>();
    emitter.emit(&Said("come"));
    assert_eq!(trace.take(), ["greeter: come"], "who comes hears the next one");
    emitter.emit(&Said("go"));
    assert_eq!(trace.take(), ["greeter: go", "guest: go"], "who goes still hears this one");
    emitter.emit(&Said("still"));
    assert_eq!(trace.take(), ["greeter: still"]);
}

#[tokio::test]
async fn an_emitter_hears_what_a_scope_withdraws() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let plugin = app.child("plugin").unwrap();
    plugin.own(listen(app.realm(), &trace, "plugin")).unwrap();
    let mut emitter = app.realm().emitter::<Said>();
    emitter.emit(&Said("1"));
    crate::in_time(plugin.close()).await.unwrap();
    emitter.emit(&Said("2"));
    assert_eq!(trace.take(), ["plugin: 1"]);
}
