//! What a model sees of delegation, byte for byte, and what the tool leaves behind.

mod answers;
mod offered;
mod stage;
