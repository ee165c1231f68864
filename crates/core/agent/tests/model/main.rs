//! The inbox and the life of an agent under a checker that tries thousands of schedules. Agent, session and context are
//! the real ones, with the checker's locks and tasks; the driver is the model's. What the checker cannot show is said
//! where the context is checked.

mod creating;
mod discarding;
mod ending;
mod sending;
mod stage;
