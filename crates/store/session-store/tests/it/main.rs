//! The store in memory, against the suite that every store passes.

use std::sync::Arc;

use session_store::{MemoryStore, SessionStore, testing};

struct InMemory(MemoryStore);

impl testing::Place for InMemory {
    fn store(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.0.clone())
    }
}

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    testing::contract(|| InMemory(MemoryStore::default())).await;
}

#[test]
fn messages_are_one_line_and_name_the_place() {
    let id = session::Sessions::new().create("/").id();
    let damage = session_store::Damage { place: "/x/y.jsonl".into(), line: Some(7), why: "expected `,`".into() };
    assert_eq!(damage.to_string(), "/x/y.jsonl:7 is damaged: expected `,`");
    let busy = session_store::Busy { id, holder: Some(u32::MAX) };
    assert_eq!(busy.to_string(), format!("session {id} is open in process {}", u32::MAX));
}
