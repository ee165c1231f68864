use std::sync::{Arc, mpsc};
use std::time::Duration;

use context::{Realm, Registration, Scope};

use crate::in_time;

trait Voice: Send + Sync {
    fn says(&self) -> &'static str;
}

struct Says(&'static str);

impl Voice for Says {
    fn says(&self) -> &'static str {
        self.0
    }
}

fn heard(realm: &Realm) -> Option<&'static str> {
    realm.get::<dyn Voice>().map(|voice| voice.says())
}

fn provide(realm: &Realm, what: &'static str) -> Registration {
    realm.provide::<dyn Voice>(Arc::new(Says(what))).unwrap()
}

#[tokio::test]
async fn plugins_of_one_app_serve_each_other() {
    let app = Scope::root("app");
    let (one, two) = (app.child("one").unwrap(), app.child("two").unwrap());
    one.provide::<dyn Voice>(Arc::new(Says("one"))).unwrap();
    assert_eq!((heard(two.realm()), heard(app.realm())), (Some("one"), Some("one")));
    in_time(one.close()).await.unwrap();
    assert_eq!((heard(two.realm()), heard(app.realm())), (None, None), "it owned what it provided");
    in_time(app.close()).await.unwrap();
}

#[tokio::test]
async fn a_child_agent_is_owned_by_its_parent_and_looks_up_the_app() {
    let app = Scope::root("app");
    app.provide::<u32>(Arc::new(1)).unwrap();
    let parent = app.child_in("parent", app.realm().nested()).unwrap();
    parent.provide::<dyn Voice>(Arc::new(Says("parent"))).unwrap();
    parent.register::<u32>("tool", Arc::new(2)).unwrap();
    let child = parent.child_in("child", app.realm().nested()).unwrap();
    let sibling = parent.child_in("sibling", app.realm().nested()).unwrap();
    assert_eq!(child.get::<u32>().as_deref(), Some(&1), "what the app provides");
    assert!(heard(child.realm()).is_none(), "not what the parent has for itself");
    assert!(child.realm().named::<u32>("tool").is_none());
    child.provide::<dyn Voice>(Arc::new(Says("child"))).unwrap();
    assert_eq!(heard(parent.realm()), Some("parent"));
    assert!(heard(sibling.realm()).is_none());
    in_time(parent.close()).await.unwrap();
    assert!(child.is_closing() && sibling.is_closing(), "yet the parent owns them");
    assert!(heard(child.realm()).is_none());
    in_time(app.close()).await.unwrap();
}

#[tokio::test]
async fn a_nested_realm_shadows_until_it_withdraws() {
    let app = Scope::root("app");
    let outer = app.realm().clone();
    let inner = outer.nested();
    let far = inner.nested();
    let _outer = provide(&outer, "outer");
    assert_eq!(heard(&far), Some("outer"));
    let shadow = provide(&inner, "inner");
    assert_eq!((heard(&far), heard(&inner), heard(&outer)), (Some("inner"), Some("inner"), Some("outer")));
    assert!(inner.provide::<dyn Voice>(Arc::new(Says("again"))).is_err());
    drop(shadow);
    assert_eq!(heard(&far), Some("outer"));
    let _again = provide(&inner, "later");
    assert_eq!(heard(&far), Some("later"), "the place is free again");
}

#[tokio::test]
async fn services_of_different_types_do_not_meet() {
    let app = Scope::root("app");
    app.provide::<Says>(Arc::new(Says("sized"))).unwrap();
    assert!(app.get::<dyn Voice>().is_none());
    app.provide::<dyn Voice>(Arc::new(Says("unsized"))).unwrap();
    assert_eq!(app.get::<Says>().unwrap().says(), "sized");
    in_time(app.close()).await.unwrap();
}

#[tokio::test]
async fn what_was_looked_up_outlives_its_withdrawal() {
    let app = Scope::root("app");
    let registration = provide(app.realm(), "kept");
    let voice = app.get::<dyn Voice>().unwrap();
    drop(registration);
    assert!(heard(app.realm()).is_none());
    assert_eq!(voice.says(), "kept");
}

/// A service that, when it goes, withdraws another and looks around.
struct Busy(Option<Registration>, Realm);

impl Drop for Busy {
    fn drop(&mut self) {
        drop(self.0.take());
        assert!(heard(&self.1).is_none());
        drop(provide(&self.1, "last words"));
    }
}

#[tokio::test]
async fn a_withdrawn_service_may_use_its_realm_as_it_goes() {
    let app = Scope::root("app");
    let realm = app.realm().nested();
    let (tell, told) = mpsc::channel();
    // On a thread of its own, since what this guards against is a thread that never comes back.
    std::thread::spawn(move || {
        let busy = Busy(Some(provide(&realm, "another")), realm.clone());
        drop(realm.provide::<Busy>(Arc::new(busy)).unwrap());
        tell.send(heard(&realm)).unwrap();
    });
    assert_eq!(told.recv_timeout(Duration::from_secs(30)), Ok(None));
}
