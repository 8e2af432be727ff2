//! The registry: every metric of a node, once. The exposition and docs/metrics.md are made from it.

mod cluster;
mod keyspace;
mod log;
mod maintenance;
mod memory;
mod node;
mod own;
mod requests;

use shard::beside::CoreStanding;
use shard::node::{Counters, Gauges};

use crate::exposition::Family;
pub use crate::exposition::{Series, Value};
use crate::sample::Sample;

/// What a number does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until the node starts again or `CONFIG RESETSTAT`.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How many were at most as long as each of some bounds.
    Histogram,
}

impl Kind {
    /// As expositions spell it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }

    /// What a line's name has behind the metric's.
    pub fn suffix(self) -> &'static str {
        match self {
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Histogram => "",
        }
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    None,
    /// Bytes.
    Bytes,
    /// Seconds, with a point; of points in time since 1970.
    Seconds,
}

impl Unit {
    /// As names end and OpenMetrics spells it.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Bytes => Some("bytes"),
            Unit::Seconds => Some("seconds"),
        }
    }
}

/// Where the numbers come from.
#[derive(Clone, Copy)]
pub enum Read {
    /// Of each core that answered.
    Core(fn(&CoreStanding) -> Value),
    /// Of the node as a whole.
    Node(fn(&Sample, &mut Series<'_>)),
}

/// One metric.
pub struct Metric {
    /// Its name, without the `_total` of a counter's lines.
    pub name: &'static str,
    /// What it does.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// The field of INFO that has the same number, added up over cores; empty: none has.
    pub info: &'static str,
    /// One sentence.
    pub help: &'static str,
    pub(crate) read: Read,
}

impl Metric {
    const fn new(kind: Kind, name: &'static str, help: &'static str) -> Metric {
        Metric { name, kind, unit: unit_of(name), labels: &[], info: "", help, read: Read::Node(|_, _| ()) }
    }

    /// What its lines have in common.
    pub(crate) fn family(&self) -> Family {
        let Metric { name, kind, unit, help, labels, .. } = *self;
        Family { name, kind, unit, help, labels }
    }

    /// INFO has it under this name.
    const fn info(self, info: &'static str) -> Metric {
        Metric { info, ..self }
    }

    const fn of_core(self, read: fn(&CoreStanding) -> Value) -> Metric {
        Metric { labels: &["core"], read: Read::Core(read), ..self }
    }

    const fn of_node(self, labels: &'static [&'static str], read: fn(&Sample, &mut Series<'_>)) -> Metric {
        Metric { labels, read: Read::Node(read), ..self }
    }
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric::new(Kind::Counter, name, help)
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric::new(Kind::Gauge, name, help)
}

/// The name says it, as it should.
pub const fn unit_of(name: &str) -> Unit {
    match (ends_with(name, b"_bytes"), ends_with(name, b"_seconds")) {
        (true, _) => Unit::Bytes,
        (_, true) => Unit::Seconds,
        _ => Unit::None,
    }
}

const fn ends_with(name: &str, end: &[u8]) -> bool {
    let name = name.as_bytes();
    let mut number = 0;
    while number < end.len() {
        if name.len() < end.len() || name[name.len() - end.len() + number] != end[number] {
            return false;
        }
        number += 1;
    }
    true
}

/// What belongs together on the page.
pub struct Group {
    /// Its heading.
    pub heading: &'static str,
    /// A sentence or two below it.
    pub about: &'static str,
    /// In order.
    pub metrics: &'static [Metric],
}

/// All groups, in the order of the page and of the exposition.
pub static GROUPS: [Group; 8] = [
    Group { heading: "The node", about: "What runs, and whether its cores do.", metrics: &node::METRICS },
    Group {
        heading: "Requests",
        about: "By the stages of a tick: receive, route, execute, reply.",
        metrics: &requests::METRICS,
    },
    Group { heading: "Keys", about: "What there is, and what went by itself.", metrics: &keyspace::METRICS },
    Group {
        heading: "Memory",
        about: "What the cores know they use, and what the system says.",
        metrics: &memory::METRICS,
    },
    Group {
        heading: "The log",
        about: "The stages append and commit. Zero in durability `memory`.",
        metrics: &log::METRICS,
    },
    Group {
        heading: "Runs and maintenance",
        about: "What is done beside requests, by class, and whether it keeps up.",
        metrics: &maintenance::METRICS,
    },
    Group {
        heading: "The cluster",
        about: "Of a node of a cluster only: on its own it has no such lines. Numbers of the table are those that this node knows; `member` and \
                `node` are written as `zerohop cluster` writes them.",
        metrics: &cluster::METRICS,
    },
    Group {
        heading: "The admin port",
        about: "What is asked here, and how long the cores take to answer.",
        metrics: &own::METRICS,
    },
];

/// Every metric, in order.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    GROUPS.iter().flat_map(|group| group.metrics)
}

/// A part of what a core has, as a label names it, and how it is read.
type Part = (&'static str, fn(&Gauges) -> u64);

fn put_parts(sample: &Sample, series: &mut Series<'_>, parts: &[Part]) {
    for (core, standing) in sample.answered() {
        for (part, of) in parts {
            series.put(&[&core, part], Value::Whole(of(gauges(standing))));
        }
    }
}

fn counters(core: &CoreStanding) -> &Counters {
    &core.facts.statistics.counters
}

fn gauges(core: &CoreStanding) -> &Gauges {
    &core.facts.gauges
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_as_collectors_expect_them() {
        let mut known = BTreeSet::new();
        for metric in all() {
            let Metric { name, help, .. } = metric;
            assert!(known.insert(*name), "{name} is there twice");
            let is_word = |word: &str| {
                !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            };
            assert!(name.split('_').all(is_word), "{name}");
            assert!(name.starts_with("zerohop_") || name.starts_with("process_"), "{name}");
            assert!(!name.ends_with("_total"), "{name}: its lines have that by themselves");
            assert!(help.ends_with('.') && !help.contains(['\n', '\\']), "{name}: {help}");
            assert!(metric.labels.iter().all(|label| label.split('_').all(is_word)), "{name}");
        }
        assert!(known.len() > 80, "{}", known.len());
    }

    #[test]
    fn units_follow_from_names() {
        assert_eq!(unit_of("zerohop_reply_bytes"), Unit::Bytes);
        assert_eq!(unit_of("process_cpu_seconds"), Unit::Seconds);
        assert_eq!((unit_of("bytes"), unit_of("zerohop_keys")), (Unit::None, Unit::None));
    }
}
