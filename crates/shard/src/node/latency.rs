//! SLOWLOG and LATENCY: what is asked for. Each core knows what its own clients waited for.

use super::facts::NodeFacts;
use super::info::InfoText;
use super::outcome::NodeOutcome;
use crate::timing::{Durations, Event, Histogram, TimingRequest, no_samples};
use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec, lookup, spec as registry_entry, write_help};
use wire::{Arguments, Reply, error};

/// Entries that SLOWLOG GET shows unless it is told how many; Redis's number.
const SLOW_COUNT_DEFAULT: usize = 10;

/// SLOWLOG and its subcommands.
pub(super) fn execute_slowlog(spec: &CommandSpec, arguments: Arguments<'_>, reply: &mut Reply<'_>) -> NodeOutcome {
    let request = match spec.id {
        Id::SlowlogGet if arguments.len() > 3 => {
            error::wrong_arity(reply, spec.full_name);
            return NodeOutcome::Done;
        }
        Id::SlowlogGet => match arguments.get(2).map(parse_integer) {
            None => TimingRequest::SlowGet(Some(SLOW_COUNT_DEFAULT)),
            Some(Some(-1)) => TimingRequest::SlowGet(None),
            Some(Some(count @ 0..)) => TimingRequest::SlowGet(usize::try_from(count).ok()),
            Some(_) => {
                error::SLOWLOG_COUNT.write(reply);
                return NodeOutcome::Done;
            }
        },
        Id::SlowlogLen => TimingRequest::SlowLen,
        Id::SlowlogReset => {
            reply.ok();
            TimingRequest::SlowReset
        }
        _ => {
            write_help(registry_entry(Id::Slowlog), reply);
            return NodeOutcome::Done;
        }
    };
    NodeOutcome::Timing(request)
}

/// LATENCY and its subcommands.
pub(super) fn execute_latency(
    spec: &CommandSpec,
    arguments: Arguments<'_>,
    facts: &NodeFacts<'_>,
    reply: &mut Reply<'_>,
) -> NodeOutcome {
    let request = match spec.id {
        Id::LatencyLatest => Some(TimingRequest::Latest),
        Id::LatencyHistory => {
            let event = Event::named(&arguments[2]);
            if event.is_none() {
                reply.array(0);
            }
            event.map(TimingRequest::History)
        }
        Id::LatencyGraph => {
            let event = Event::named(&arguments[2]);
            if event.is_none() {
                no_samples(&arguments[2], reply);
            }
            event.map(TimingRequest::Graph)
        }
        Id::LatencyReset if arguments.len() == 2 => Some(TimingRequest::Reset(Event::ALL.to_vec())),
        Id::LatencyReset => Some(TimingRequest::Reset(arguments.from(2).iter().filter_map(Event::named).collect())),
        Id::LatencyDoctor => Some(TimingRequest::Doctor),
        Id::LatencyHistogram => {
            write_histograms(arguments.from(2), facts, reply);
            None
        }
        _ => {
            write_help(registry_entry(Id::Latency), reply);
            None
        }
    };
    request.map_or(NodeOutcome::Done, NodeOutcome::Timing)
}

/// Thousandths of commands whose bounds INFO tells: Redis's `latency-tracking-info-percentiles`.
const QUANTILES: [(&str, u64); 3] = [("p50", 500), ("p99", 990), ("p99.9", 999)];

/// `LATENCY HISTOGRAM [command...]`: of a container, all of its subcommands.
fn write_histograms(names: Arguments<'_>, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let durations = sum(facts);
    let meant: Vec<&CommandSpec> = names.iter().filter_map(lookup).collect();
    let is_meant = |spec: &CommandSpec| {
        let has = |one: &&CommandSpec| one.id == spec.id || one.subcommands.iter().any(|sub| sub.id == spec.id);
        names.is_empty() || meant.iter().any(has)
    };
    let told: Vec<(&CommandSpec, &Histogram)> = durations.iter().filter(|(spec, _)| is_meant(spec)).collect();
    reply.map(told.len());
    for (spec, histogram) in told {
        reply.bulk(spec.full_name.as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.integer(histogram.count() as i64);
        reply.bulk(b"histogram_usec");
        let bounds = histogram.cumulative();
        reply.map(bounds.len());
        for (bound_us, count) in bounds {
            reply.integer(bound_us as i64);
            reply.integer(count as i64);
        }
    }
}

/// INFO latencystats: bounds, each a power of two of microseconds.
pub(super) fn write_info(facts: &NodeFacts<'_>, text: &mut InfoText) {
    text.heading("Latencystats");
    for (spec, histogram) in sum(facts).iter() {
        let bounds = QUANTILES.map(|(name, of_thousand)| format!("{name}={}", histogram.quantile_us(of_thousand)));
        text.line(format_args!("latency_percentiles_usec_{}", spec.full_name), format_args!("{}", bounds.join(",")));
    }
}

fn sum(facts: &NodeFacts<'_>) -> Durations {
    let mut sum = Durations::default();
    facts.cores.iter().for_each(|core| sum.add(&core.statistics.durations));
    sum
}
