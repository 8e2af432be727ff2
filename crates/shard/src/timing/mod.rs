//! How long commands take: SLOWLOG and LATENCY.
//!
//! ```text
//!  execute ── is it timed? ──► start ─ commands::execute ─ stop ──┬─► SLOWLOG  longer than slowlog-log-slower-than
//!  (at home, for another core,                                    └─► LATENCY  latency-monitor-threshold or longer
//!   in EXEC, when it wakes up)                                              ▲
//!  a sync is done, a core is late for its tick ─────────────────────────────┘
//!
//!  SLOWLOG GET ── Question::Timing ──► every core: its own clients' ──► merged ──► reply
//! ```
//!
//! To time a command is to read the clock twice, which would be much of what a GET costs. So commands whose cost grows with
//! nothing are timed only where a threshold is below [`BOUNDED_US`]: they never take that long, unless the system takes the
//! processor away, which is a gap between ticks.
//!
//! While `latency-tracking` is on every command is timed, and counted by how long it took.
//!
//! An entry is kept by the core of the client, wherever the command ran.

mod ask;
mod events;
mod graph;
mod histogram;
mod slow_log;

#[cfg(test)]
mod tests;

pub use ask::{TimingAnswer, TimingQuestion, TimingRequest};
pub use events::Event;
pub use histogram::{Durations, Histogram};
pub use slow_log::SlowEntry;

pub(crate) use ask::{no_samples, write};

use base::{ConnectionId, TickGap};
use events::Events;
use slow_log::SlowLog;
use wire::Arguments;
use wire::registry::{COMMAND_ID_COUNT, CommandId, CommandSpec, Flags, all};

use crate::hop::Control;
use crate::node::Config;
use crate::shard::Shard;
use crate::waiters::Target;

/// What a command of bounded cost never takes, microseconds.
const BOUNDED_US: u64 = 1000;
/// How the registry writes that a command's cost grows with nothing.
const BOUNDED: &str = "O(1)";

/// See the module.
pub(crate) struct Timing {
    is_timed: [bool; COMMAND_ID_COUNT],
    /// Commands that take longer go to the slow log, microseconds; `None`: none does.
    slower_than_us: Option<u64>,
    /// Waits that long are events, microseconds; `None`: none is.
    event_us_min: Option<u64>,
    /// How long each took is counted.
    tracks: bool,
    slow_log: SlowLog,
    events: Events,
}

impl Timing {
    pub(crate) fn new(config: &Config) -> Timing {
        let mut timing = Timing {
            is_timed: [false; COMMAND_ID_COUNT],
            slower_than_us: None,
            event_us_min: None,
            tracks: false,
            slow_log: SlowLog::default(),
            events: Events::default(),
        };
        timing.configure(config);
        timing
    }

    /// Settings changed.
    pub(crate) fn configure(&mut self, config: &Config) {
        let slower_than_us = u64::try_from(config.integer("slowlog-log-slower-than")).ok();
        let threshold_ms = u64::try_from(config.integer("latency-monitor-threshold")).ok();
        let event_us_min = threshold_ms.filter(|&ms| ms > 0).map(|ms| ms.saturating_mul(1000));
        let entries_max = usize::try_from(config.integer("slowlog-max-len")).unwrap_or(usize::MAX);
        self.slow_log.set_entries_max(entries_max);
        let tracks = config.value("latency-tracking") == b"yes";
        let before = (self.slower_than_us, self.event_us_min, self.tracks);
        if before == (slower_than_us, event_us_min, tracks) {
            return;
        }
        (self.slower_than_us, self.event_us_min, self.tracks) = (slower_than_us, event_us_min, tracks);
        let least_us = slower_than_us.into_iter().chain(event_us_min).chain(tracks.then_some(0)).min();
        self.is_timed = [false; COMMAND_ID_COUNT];
        for spec in all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands)) {
            let is_bounded = spec.complexity == BOUNDED;
            // What EXEC runs is timed one by one.
            let never = spec.id == CommandId::Exec;
            self.is_timed[spec.id as usize] =
                !never && least_us.is_some_and(|least_us| !is_bounded || least_us < BOUNDED_US);
        }
    }

    /// Remembers something that is no command.
    pub(crate) fn note_event(&mut self, event: Event, unix_ms: u64, took_us: u64) {
        if self.event_us_min.is_some_and(|least_us| took_us >= least_us) {
            self.events.note(event, unix_ms / 1000, took_us / 1000);
        }
    }
}

impl Shard {
    /// Whether a command is timed.
    #[inline]
    pub(crate) fn times(&self, spec: &CommandSpec) -> bool {
        self.timing.is_timed[spec.id as usize]
    }

    /// A command begins; `None`: it is not timed.
    #[inline]
    pub(crate) fn start_timing(&mut self, spec: &'static CommandSpec) -> Option<u64> {
        self.times(spec).then(|| self.measured_ns())
    }

    /// It ended; what goes on waiting is not told. Whose it was is `None` where that is not known.
    #[inline]
    pub(crate) fn stop_timing(
        &mut self,
        begun_ns: Option<u64>,
        whose: Option<Target>,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
    ) {
        if let Some(begun_ns) = begun_ns {
            let took_ns = self.measured_ns().saturating_sub(begun_ns);
            self.note_time(took_ns, whose, spec, arguments);
        }
    }

    fn note_time(&mut self, took_ns: u64, whose: Option<Target>, spec: &'static CommandSpec, arguments: Arguments<'_>) {
        if self.timing.tracks {
            self.statistics.durations.note(spec, took_ns);
        }
        let took_us = took_ns / 1000;
        let event = if spec.flags.contains(Flags::FAST) { Event::FastCommand } else { Event::Command };
        self.timing.note_event(event, self.now.unix_ms, took_us);
        if self.timing.slower_than_us.is_none_or(|bound_us| took_us < bound_us) {
            return;
        }
        let entry = SlowEntry::new(spec, arguments, self.now.unix_ms, took_us);
        match whose {
            Some(Target::Local(connection)) => self.note_slow(Some(connection), entry),
            Some(Target::Remote(origin, _)) if origin.core == self.core => {
                self.note_slow(Some(origin.connection), entry)
            }
            Some(Target::Remote(origin, _)) => {
                let entry = Box::new(entry);
                self.batch_for(origin.core).controls.push(Control::Slow { connection: origin.connection, entry });
            }
            None => self.note_slow(None, entry),
        }
    }

    /// A command of a connection of this core took long, here or elsewhere.
    pub(crate) fn note_slow(&mut self, connection: Option<ConnectionId>, mut entry: SlowEntry) {
        if let Some(connection) = connection.and_then(|id| self.connections.get_mut(id)) {
            entry.peer = connection.session.peer().to_owned();
            entry.name = connection.session.name().to_vec();
        }
        self.timing.slow_log.note(entry, self.core);
    }

    /// This core served nobody for so long.
    pub(crate) fn note_gap(&mut self, gap: TickGap) {
        self.statistics.gaps.add(gap);
        self.timing.note_event(Event::TickGap, self.now.unix_ms, gap.us);
    }
}
