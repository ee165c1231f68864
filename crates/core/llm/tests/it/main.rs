//! Routes, errors and replies, against the public API.

mod replies;
mod routes;
