//! Bits of strings.

pub(crate) mod combine;
pub(crate) mod count;
pub(crate) mod field;
pub(crate) mod single;

#[cfg(test)]
mod tests;
