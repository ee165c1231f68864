//! Tools, against the public API.
