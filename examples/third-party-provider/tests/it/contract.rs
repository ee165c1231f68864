//! What every provider owes.

use async_trait::async_trait;
use bundle::Policies;
use context::{BoxError, Scope};
use subagent::Limits;
use subagent::testing::{Fixture, contract};
use third_party_provider::{Config, NAME, Panel};

struct Spine;

#[async_trait]
impl Fixture for Spine {
    fn name(&self) -> &str {
        NAME
    }

    async fn compose(&self, app: &Scope, limits: Limits) -> Result<(), BoxError> {
        let spine = bundle::spine(Policies { limits, ..Policies::default() });
        Ok(spine.with(Panel, Config::default()).start(app).await?)
    }
}

#[test]
fn the_panel_keeps_the_contract() {
    contract(|| Spine);
}
