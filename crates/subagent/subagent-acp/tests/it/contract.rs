//! What every provider owes.

use async_trait::async_trait;
use context::{BoxError, Scope};
use subagent::testing::{Children, Fixture, Task, contract};
use subagent::{Limits, Request};

use crate::world::{Mark, NAME, spine, stub};

struct Stubs(Mark);

#[async_trait]
impl Fixture for Stubs {
    fn name(&self) -> &str {
        NAME
    }

    fn children(&self) -> Children {
        Children::Elsewhere
    }

    fn request(&self, task: Task) -> Option<Request> {
        let prompt = match task {
            Task::Say(words) => format!("say {words}"),
            Task::Silence => "silence".to_owned(),
            Task::Hang => "hang".to_owned(),
            Task::Fail => "fail".to_owned(),
            Task::Panic => "panic".to_owned(),
            _ => return None,
        };
        Some(Request::new(prompt))
    }

    async fn compose(&self, app: &Scope, limits: Limits) -> Result<(), BoxError> {
        Ok(spine(limits, vec![stub("", &self.0)]).start(app).await?)
    }

    fn outside(&self) -> Vec<String> {
        self.0.processes().into_iter().map(|pid| format!("the process {pid}")).collect()
    }
}

// D-20, D-21, D-22, D-23, D-24, D-25, D-31
#[test]
fn children_that_are_processes_keep_the_contract() {
    contract(|| Stubs(Mark::new()));
}
