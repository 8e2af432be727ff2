//! Suites about the text of the repository: formatting, house rules, licences.

use super::{Company, Counts, Suite, Turn};
use crate::{deny, needs, tidy};

/// `cargo fmt --check`.
pub const FORMAT: Suite = Suite {
    name: "format",
    about: "every Rust file is formatted",
    needs: &[&needs::RUSTFMT],
    budget_seconds: 20,
    turn: Turn::Fixed,
    company: Company::Alone,
    run: |_| tidy::is_formatted().map(Counts::one),
};

/// `cargo x tidy`; each rule counts as one test.
pub const TIDY: Suite = Suite {
    name: "tidy",
    about: "the house rules",
    needs: &[],
    budget_seconds: 20,
    turn: Turn::Fixed,
    company: Company::Alone,
    run: |_| tidy::check_all().map(|(passed, failed)| Counts { passed, failed, skipped: 0 }),
};

/// `cargo x deny`.
pub const DENY: Suite = Suite {
    name: "deny",
    about: "licences, sources and duplicate versions of what the lock file names",
    needs: &[],
    budget_seconds: 60,
    turn: Turn::Fixed,
    company: Company::Alone,
    run: |_| deny::check_all().map(|(_, findings)| Counts::one(findings == 0)),
};
