//! The store as a library, through its public interface.

mod basics;
mod example;
