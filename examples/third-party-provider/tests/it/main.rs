//! The provider `panel` over the default composition.

mod contract;
mod guide;
mod panel;
