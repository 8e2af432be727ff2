//! The binary `zerohop`.
fn main() {}
