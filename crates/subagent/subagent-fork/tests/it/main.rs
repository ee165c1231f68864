//! The provider `fork` against the suite that every provider passes.

mod contract;
