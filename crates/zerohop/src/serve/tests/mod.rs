//! The machine on a virtual street: every event by hand, a clock that stands unless it is moved, nodes that say what a test wants.

mod bounds;
mod failing;
mod lines;
mod lives;
mod order;
mod rig;
