use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use context::{Around, Boxed, Chain, Next, Realm, Scope};

use crate::{Trace, in_time};

/// Halving, which fails on odd numbers.
enum Halve {}

impl Chain for Halve {
    type Input = u32;
    type Output = Result<u32, String>;
}

async fn halve(n: u32) -> Result<u32, String> {
    if n.is_multiple_of(2) { Ok(n / 2) } else { Err(format!("{n} is odd")) }
}

/// Notes what passes, in and out.
struct Noted(Trace, &'static str);

#[async_trait]
impl Around<Halve> for Noted {
    async fn around(&self, n: u32, next: Next<'_, Halve>) -> Result<u32, String> {
        self.0.note(format!("{} in {n}", self.1));
        let half = next.run(n).await;
        self.0.note(format!("{} out {half:?}", self.1));
        half
    }
}

/// Answers for one number, and lets the others pass.
struct Knows(u32, u32);

#[async_trait]
impl Around<Halve> for Knows {
    async fn around(&self, n: u32, next: Next<'_, Halve>) -> Result<u32, String> {
        if n == self.0 { Ok(self.1) } else { next.run(n).await }
    }
}

/// Tries again with the next number, as often as it takes.
struct Retries;

#[async_trait]
impl Around<Halve> for Retries {
    async fn around(&self, n: u32, next: Next<'_, Halve>) -> Result<u32, String> {
        let mut answer = next.run(n).await;
        for more in 1..=3 {
            if answer.is_ok() {
                break;
            }
            answer = next.run(n + more).await;
        }
        answer
    }
}

async fn run(realm: &Realm, n: u32) -> Result<u32, String> {
    in_time(realm.through::<Halve, _, _>(n, halve)).await
}

#[tokio::test]
async fn without_a_layer_the_work_is_done() {
    let app = Scope::root("app");
    assert_eq!(run(app.realm(), 8).await, Ok(4));
    assert_eq!(run(app.realm(), 7).await, Err("7 is odd".to_owned()));
}

#[tokio::test]
async fn layers_run_outermost_realm_first_in_order() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let inner = app.realm().nested();
    let _c = inner.around::<Halve>(Noted(trace.clone(), "c"));
    let _a = app.realm().around::<Halve>(Noted(trace.clone(), "a"));
    let _b = app.realm().around::<Halve>(Noted(trace.clone(), "b"));
    assert_eq!(run(&inner, 2).await, Ok(1));
    let inwards = ["a in 2", "b in 2", "c in 2"];
    let outwards = ["c out Ok(1)", "b out Ok(1)", "a out Ok(1)"];
    assert_eq!(trace.take(), [inwards, outwards].concat());
    assert_eq!(run(app.realm(), 2).await, Ok(1));
    assert_eq!(trace.take().len(), 4, "a layer of a nested realm is not seen from outside");
}

#[tokio::test]
async fn the_first_who_decides_ends_it() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let _first = app.realm().around::<Halve>(Knows(7, 3));
    let _second = app.realm().around::<Halve>(Knows(7, 4));
    let _third = app.realm().around::<Halve>(Noted(trace.clone(), "third"));
    assert_eq!(run(app.realm(), 7).await, Ok(3));
    assert_eq!(trace.take(), [""; 0], "those behind are not asked");
    assert_eq!(run(app.realm(), 4).await, Ok(2));
    assert_eq!(trace.take(), ["third in 4", "third out Ok(2)"]);
}

#[tokio::test]
async fn a_layer_may_run_the_rest_again() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let _retries = app.realm().around::<Halve>(Retries);
    let _noted = app.realm().around::<Halve>(Noted(trace.clone(), "inner"));
    assert_eq!(run(app.realm(), 5).await, Ok(3));
    assert_eq!(trace.take(), ["inner in 5", "inner out Err(\"5 is odd\")", "inner in 6", "inner out Ok(3)"]);
}

#[tokio::test]
async fn standing_middleware_notices_who_comes_and_goes() {
    let app = Scope::root("app");
    let inner = app.realm().nested();
    let mut middleware = inner.middleware::<Halve>();
    let asked = AtomicU32::new(0);
    let end = |n| {
        asked.fetch_add(1, Ordering::Relaxed);
        halve(n)
    };
    assert_eq!(in_time(middleware.through(7, end)).await, Err("7 is odd".to_owned()));
    let knows = app.realm().around::<Halve>(Knows(7, 3));
    assert_eq!(in_time(middleware.through(7, end)).await, Ok(3));
    assert_eq!(middleware.layers().len(), 1);
    let better = app.realm().nested();
    let _unseen = better.around::<Halve>(Knows(7, 4));
    assert_eq!(middleware.layers().len(), 1, "a realm beside is not ours");
    drop(knows);
    assert!(middleware.layers().is_empty());
    assert_eq!(in_time(middleware.through(7, end)).await, Err("7 is odd".to_owned()));
    assert_eq!(asked.into_inner(), 2);
}

#[tokio::test]
async fn layers_can_be_kept_and_run_elsewhere() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let _noted = app.realm().around::<Halve>(Noted(trace.clone(), "kept"));
    let retries = app.realm().around::<Halve>(Retries);
    let layers = app.realm().middleware::<Halve>().layers().to_vec();
    drop(retries);
    let end = |n| -> Boxed<'_, Result<u32, String>> { Box::pin(halve(n)) };
    assert_eq!(in_time(Next::over(&layers, &end).run(5)).await, Ok(3), "as it was when they were taken");
    assert_eq!(trace.take(), ["kept in 5", "kept out Ok(3)"]);
}
