//! Helpers of the simulator's tests: the toy node.

pub mod toy;
