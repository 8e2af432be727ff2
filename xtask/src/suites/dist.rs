//! The suite about what a stranger downloads: the static binary and the Debian package.

use super::{Company, Suite, Turn};
use crate::{dist, needs};

/// Both artefacts are built and each is started in an empty root.
pub const ARTEFACTS: Suite = Suite {
    name: "artefacts",
    about: "the static binary and the Debian package, each started in an empty root",
    needs: &[&needs::DPKG],
    budget_seconds: 300,
    turn: Turn::Shard("artefacts"),
    company: Company::SideBySide,
    run: |_| dist::check(&dist::build()?),
};
