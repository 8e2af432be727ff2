//! Strings and counters.

pub(crate) mod conditional;
pub(crate) mod counter;
pub(crate) mod float;
pub(crate) mod get;
pub(crate) mod lcs;
pub(crate) mod lifetime;
pub(crate) mod range;
pub(crate) mod set;
pub(crate) mod set_many;

#[cfg(test)]
pub(crate) mod swap_tests;
#[cfg(test)]
mod tests;
