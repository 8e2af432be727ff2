//! What the run really exercised: how often each command ended in which kind of reply.

use std::collections::{BTreeMap, BTreeSet};

use wire::registry::{self, CommandSpec, Family, Oracle};

use crate::reply::outcome;

/// Counts of outcomes by command.
#[derive(Default)]
pub struct Coverage {
    counts: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Coverage {
    /// Notes the reply to a command.
    pub fn note(&mut self, arguments: &[Vec<u8>], reply: &[u8]) {
        let Some(first) = arguments.first() else { return };
        let mut name = match registry::lookup(first) {
            Some(spec) => spec.full_name.to_string(),
            None => "(unknown)".to_string(),
        };
        if let (Some(spec), Some(second)) = (registry::lookup(first), arguments.get(1))
            && let Some(subcommand) = spec.subcommand(second)
        {
            name = subcommand.full_name.to_string();
        }
        *self.counts.entry(name).or_default().entry(outcome(reply)).or_default() += 1;
    }

    /// Commands of the registry that never succeeded or never failed.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        for name in expected_names() {
            let outcomes = self.counts.get(name);
            let has = |is_error: bool| {
                outcomes.is_some_and(|outcomes| outcomes.keys().any(|outcome| outcome.starts_with('-') == is_error))
            };
            if !has(false) {
                gaps.push(format!("{name} never succeeded"));
            }
            if !has(true) {
                gaps.push(format!("{name} never failed"));
            }
        }
        gaps
    }

    /// One line per command.
    pub fn print(&self) {
        for (name, outcomes) in &self.counts {
            let outcomes: Vec<String> = outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
            println!("  {name:<14} {}", outcomes.join(", "));
        }
    }
}

/// Data commands that the run must have met; ZH.WAIT is judged by its own tests, since it waits, and DUMP, since stores pack what
/// they dump in different ways.
fn expected_names() -> BTreeSet<&'static str> {
    let is_expected = |spec: &&CommandSpec| {
        spec.family == Family::Data
            && spec.subcommands.is_empty()
            && !matches!(spec.full_name, "zh.wait" | "wait" | "waitaof" | "dump")
            && spec.oracle != Oracle::Valkey
    };
    registry::all().filter(is_expected).map(|spec| spec.full_name).collect()
}

#[cfg(test)]
mod tests {
    use super::{Coverage, expected_names};
    use crate::catalogue::CATALOGUE;

    #[test]
    fn the_catalogue_knows_every_data_command() {
        for name in expected_names() {
            assert!(CATALOGUE.iter().any(|entry| entry.name().eq_ignore_ascii_case(name)), "{name} has no template");
        }
    }

    #[test]
    fn a_command_that_only_failed_is_a_gap() {
        let mut coverage = Coverage::default();
        coverage.note(&[b"GET".to_vec()], b"-ERR wrong number\r\n");
        let gaps = coverage.gaps();
        assert!(gaps.contains(&"get never succeeded".to_string()));
        assert!(!gaps.contains(&"get never failed".to_string()));
    }
}
