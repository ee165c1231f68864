//! What fuzzing tries.
//!
//! *Owns:* a function for each target, which takes any bytes and panics where a promise does not hold; the worlds that
//! they work in, and the oracles that judge by the disk alone.
//! *Never:* a fuzzing engine (`fuzz/libfuzzer` hands the functions to one), anything outside of a temporary directory that
//! each input gets for itself, a check that the code under test does for itself with the same code.
//!
//! The same bytes do the same every time, so every input of the committed corpus is a test:
//!
//! ```
//! fuzz::fence(b"link ../outside ws/way\nwrite way/new.txt\nedit sub/deep.txt\nread @/home/sessions/other.jsonl");
//! fuzz::tool_arguments(b"write read-only\n{\"path\": \"../x\", \"content\": 1}");
//! fuzz::log_decode(b"{\"seq\":0,\"time\":1,\"type\":\"turn/start\",\"data\":{\"turn\":1}}");
//! fuzz::frames(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/close\",\"params\":{\"sessionId\":\"$S\"}}");
//! fuzz::config(b"[budget]\ntokens = 5\n---\n[budget]\ntokens = 6");
//! ```

mod config;
mod fence;
mod frames;
mod log_decode;
mod oracle;
mod tool_arguments;
mod world;

use std::path::Path;

pub use config::config;
pub use fence::fence;
pub use frames::frames;
pub use log_decode::log_decode;
pub use tool_arguments::tool_arguments;

/// A target: any bytes, and a panic where they break a promise.
pub type Target = fn(&[u8]);

/// Every target, by the name that its corpus has.
pub const TARGETS: [(&str, Target); 5] = [
    ("config", config),
    ("fence", fence),
    ("frames", frames),
    ("log_decode", log_decode),
    ("tool_arguments", tool_arguments),
];

/// Where the committed corpora are, a directory for each target.
pub fn corpora() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))
}
