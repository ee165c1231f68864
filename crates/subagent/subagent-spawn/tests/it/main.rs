//! The promises of delegation, over the whole composition: what the disk, the logs and the registries say.

mod budget;
mod capture;
mod contract;
mod denials;
mod doubles;
mod durable;
mod filters;
mod fork;
mod hand_in;
mod limits;
mod nothing_left;
mod providers;
mod results;
mod runs;
mod scope;
mod siblings;
mod stress;
mod told;
mod world;
