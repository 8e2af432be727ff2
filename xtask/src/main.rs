//! Every chore of the repository, one file each.
fn main() {}
