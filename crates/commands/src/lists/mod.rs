//! Lists.

pub(crate) mod blocking;
pub(crate) mod elements;
pub(crate) mod ends;
pub(crate) mod position;
pub(crate) mod several;
pub(crate) mod transfer;
pub(crate) mod windows;

#[cfg(test)]
mod tests;
