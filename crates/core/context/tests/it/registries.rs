use std::sync::Arc;

use context::{Change, Realm, Registration, Scope};

use crate::{Trace, in_time};

fn register(realm: &Realm, name: &str, value: u32) -> Registration {
    realm.register::<u32>(name, Arc::new(value)).unwrap()
}

fn all(realm: &Realm) -> Vec<(String, u32)> {
    realm.all_named::<u32>().into_iter().map(|(name, value)| (name.to_string(), *value)).collect()
}

fn listed(expected: &[(&str, u32)]) -> Vec<(String, u32)> {
    expected.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
}

#[tokio::test]
async fn names_are_unique_in_a_realm_and_kept_in_order() {
    let app = Scope::root("app");
    let realm = app.realm();
    let _z = register(realm, "z", 1);
    let a = register(realm, "a", 2);
    let _m = register(realm, "m", 3);
    assert_eq!(realm.register::<u32>("a", Arc::new(9)).unwrap_err().0.as_ref(), "a");
    assert_eq!(all(realm), listed(&[("z", 1), ("a", 2), ("m", 3)]));
    drop(a);
    assert!(realm.named::<u32>("a").is_none());
    let _a = register(realm, "a", 4);
    assert_eq!(all(realm), listed(&[("z", 1), ("m", 3), ("a", 4)]), "a new one goes behind the others");
}

#[tokio::test]
async fn a_name_is_of_its_type() {
    let app = Scope::root("app");
    let _number = register(app.realm(), "x", 1);
    let _text = app.realm().register::<String>("x", Arc::new("one".to_owned())).unwrap();
    assert_eq!(app.realm().named::<u32>("x").as_deref(), Some(&1));
    assert_eq!(app.realm().named::<String>("x").as_deref().map(String::as_str), Some("one"));
}

#[tokio::test]
async fn a_nested_realm_shadows_a_name_in_its_place() {
    let app = Scope::root("app");
    let outer = app.realm().clone();
    let inner = outer.nested();
    let _own = register(&inner, "own", 10);
    let _a = register(&outer, "a", 1);
    let _b = register(&outer, "b", 2);
    let shadow = register(&inner, "a", 11);
    assert_eq!(all(&inner), listed(&[("a", 11), ("b", 2), ("own", 10)]), "outermost first, whenever registered");
    assert_eq!(all(&outer), listed(&[("a", 1), ("b", 2)]));
    assert_eq!(inner.named::<u32>("a").as_deref(), Some(&11));
    drop(shadow);
    assert_eq!(inner.named::<u32>("a").as_deref(), Some(&1));
    assert_eq!(all(&inner), listed(&[("a", 1), ("b", 2), ("own", 10)]));
}

#[tokio::test]
async fn every_change_is_announced_after_it_happened() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let (note, realm) = (trace.clone(), app.realm().clone());
    let watch = app.realm().registry::<u32>().on_change(move |change| {
        // The registry is free to be used from here, and already shows the change.
        let now = realm.named::<u32>("a").is_some();
        match change {
            Change::Added(name, value) => note.note(format!("+{name}={value} {now}")),
            Change::Removed(name, value) => note.note(format!("-{name}={value} {now}")),
        }
    });
    let a = register(app.realm(), "a", 1);
    assert!(app.realm().register::<u32>("a", Arc::new(2)).is_err());
    drop(a);
    assert_eq!(trace.take(), ["+a=1 true", "-a=1 false"], "a refusal changes nothing");
    drop(watch);
    let _a = register(app.realm(), "a", 3);
    assert_eq!(trace.take(), [""; 0]);
}

#[tokio::test]
async fn a_scope_that_closes_takes_its_names_back_newest_first() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let plugin = app.child("plugin").unwrap();
    let note = trace.clone();
    let registry = app.realm().registry::<u32>();
    let _watch = registry.on_change(move |change| match change {
        Change::Added(name, _) => note.note(format!("+{name}")),
        Change::Removed(name, _) => note.note(format!("-{name}")),
    });
    plugin.register::<u32>("a", Arc::new(1)).unwrap();
    plugin.register::<u32>("b", Arc::new(2)).unwrap();
    in_time(plugin.close()).await.unwrap();
    assert_eq!(trace.take(), ["+a", "+b", "-b", "-a"]);
    assert_eq!(all(app.realm()), listed(&[]));
}

#[tokio::test]
async fn a_version_grows_with_every_change_that_can_be_seen_and_no_other() {
    let app = Scope::root("app");
    let outer = app.realm().clone();
    let (inner, beside) = (outer.nested(), outer.nested());
    let mut last = inner.version();
    let mut check = |what: &str, grows: bool| {
        let now = inner.version();
        assert_eq!(now > last, grows, "{what}: {last} to {now}");
        last = now;
    };
    check("nothing", false);
    let service = outer.provide::<u32>(Arc::new(1)).unwrap();
    check("a service further out", true);
    let name = register(&inner, "a", 1);
    check("a name", true);
    let listener = outer.on::<u32>(|_| ());
    check("a listener", true);
    drop((inner.get::<u32>(), all(&inner), inner.named::<u32>("b"), inner.registry::<String>()));
    check("looking things up", false);
    assert!(inner.register::<u32>("a", Arc::new(2)).is_err());
    check("a refusal", false);
    let _beside = register(&beside, "b", 1);
    check("a realm beside", false);
    drop(service);
    check("a service withdrawn", true);
    drop(name);
    check("a name withdrawn", true);
    drop(listener);
    check("a listener withdrawn", true);
}

#[tokio::test]
async fn what_is_shadowed_is_registered_all_the_same() {
    let app = Scope::root("app");
    let _outer = [register(app.realm(), "x", 1), register(app.realm(), "y", 2)];
    let (inner, other) = (app.realm().nested(), app.realm().nested());
    let _inner = [register(&inner, "z", 3), register(&inner, "x", 4)];
    let _other = register(&other, "x", 5);
    let registered = |realm: &Realm| realm.all_registered::<u32>().iter().map(|value| **value).collect::<Vec<_>>();
    assert_eq!(registered(&inner), [3, 4, 1, 2]);
    assert_eq!(registered(app.realm()), [1, 2]);
    in_time(app.close()).await.unwrap();
}
