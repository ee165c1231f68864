//! Configuration and starting, over real files and the whole composition.

mod anything;
mod bad_input;
mod edge;
mod files;
mod layers;
mod starting;
mod world;
