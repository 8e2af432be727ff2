//! What collectors and operators read of a proxy, over HTTP: a machine beside the cores, on a thread of its own.

mod page;
mod registry;
mod round;
mod sample;
#[cfg(test)]
mod tests;

pub use page::page;
pub(crate) use round::Admin;
