//! The `tether` command, run as its users run it.

mod read;
