//! What a model sees of delegation, byte for byte, and what the tools leave behind.

mod answers;
mod background;
mod background_of_children;
mod comes_and_goes;
mod doubles;
mod held;
mod offered;
mod stage;
mod structured;
