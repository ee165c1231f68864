//! Whole numbers, as files, variables and flags have them.

use std::fmt::Display;
use std::str::FromStr;

/// A kind of whole number that a setting can be.
pub trait Whole: PartialOrd + Display + FromStr + TryFrom<u64> {
    /// The largest.
    const MOST: Self;
}

impl Whole for u32 {
    const MOST: Self = Self::MAX;
}

impl Whole for u64 {
    const MOST: Self = Self::MAX;
}

/// A whole number from `least` on, for flags and variables.
///
/// # Errors
///
/// What it has to be.
pub fn parse_whole<N: Whole>(text: &str, least: N) -> Result<N, String> {
    match text.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(format!("not a whole number in digits: it is {}", range(&least))),
    }
}

pub(crate) fn range<N: Whole>(least: &N) -> String {
    format!("at least {least} and at most {}", N::MOST)
}
