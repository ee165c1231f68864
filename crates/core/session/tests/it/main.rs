//! The session, against its public API.
