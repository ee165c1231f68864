//! What every provider owes.

use async_trait::async_trait;
use bundle::Policies;
use context::{BoxError, Scope};
use subagent::Limits;
use subagent::testing::{Fixture, contract};

struct Spine;

#[async_trait]
impl Fixture for Spine {
    fn name(&self) -> &str {
        subagent_spawn::NAME
    }

    async fn compose(&self, app: &Scope, limits: Limits) -> Result<(), BoxError> {
        Ok(bundle::spine(Policies { limits, ..Policies::default() }).start(app).await?)
    }
}

#[test]
fn spawn_keeps_the_contract() {
    contract(|| Spine);
}
