//! `tether policy audit` on logs that the program wrote and somebody changed.

mod approval;
mod children;
mod creation;
mod descriptors;
mod forge;
mod later;
mod lineage;
mod reports;
mod seeds;
