//! What one core counts: plain numbers of one writer, copied when somebody asks.

use base::Now;
use wire::registry::{COMMAND_ID_COUNT, CommandId};

use crate::receive::Arrival;

/// Counters of one core, and scratch memory that ticks hand on.
pub struct Statistics {
    /// Requests that reached the gate.
    pub requests: u64,
    /// Requests refused with an error before they ran.
    pub errors: u64,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Requests forwarded to other cores.
    pub hops: u64,
    /// Ticks.
    pub ticks: u64,
    /// Windows run.
    pub windows: u64,
    /// Longest time between the starts of two ticks of which the first left work over, microseconds.
    pub tick_gap_us_max: u64,
    commands: [u64; COMMAND_ID_COUNT],
    pub(crate) last_tick_us: u64,
    pub(crate) arrivals_scratch: Vec<Arrival>,
    pub(crate) reply_scratch: Vec<u8>,
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics {
            requests: 0,
            errors: 0,
            connections_accepted: 0,
            hops: 0,
            ticks: 0,
            windows: 0,
            tick_gap_us_max: 0,
            commands: [0; COMMAND_ID_COUNT],
            last_tick_us: 0,
            arrivals_scratch: Vec::new(),
            reply_scratch: Vec::new(),
        }
    }
}

/// One core's part of INFO.
#[derive(Clone, Debug)]
pub struct CoreCounters {
    /// Which core.
    pub core: u16,
    /// Requests that reached the gate.
    pub requests: u64,
    /// Requests refused before they ran.
    pub errors: u64,
    /// Connections accepted since start.
    pub connections_accepted: u64,
    /// Connections open.
    pub connections: u64,
    /// Blocked clients.
    pub blocked: u64,
    /// Requests forwarded.
    pub hops: u64,
    /// Ticks.
    pub ticks: u64,
    /// Windows of requests.
    pub windows: u64,
    /// Changes applied.
    pub changes: u64,
    /// Keys that went because their time was over.
    pub expired: u64,
    /// Bytes of index, heap and lists.
    pub data_bytes: u64,
    /// Keys and expiring keys of each database.
    pub databases: Vec<(u64, u64)>,
    /// Log bytes sealed since start.
    pub log_bytes: u64,
    /// Syncs since start.
    pub log_syncs: u64,
    /// Log groups sealed and durable.
    pub log_groups: (u64, u64),
    /// Calls by [`CommandId`].
    pub commands: Vec<u64>,
}

impl Statistics {
    pub(crate) fn note_tick(&mut self, now: Now) {
        self.ticks += 1;
        self.last_tick_us = now.monotonic_us;
    }

    #[inline]
    pub(crate) fn note_window(&mut self, _requests: usize) {
        self.windows += 1;
    }

    #[inline]
    pub(crate) fn note_command(&mut self, id: CommandId) {
        self.commands[id as usize] += 1;
    }

    /// Calls by [`CommandId`].
    pub fn commands(&self) -> &[u64] {
        &self.commands
    }

    pub(crate) fn keep_scratch(&mut self, _arrivals: &[Arrival]) {}

    pub(crate) fn reset(&mut self) {
        *self = Statistics { ticks: self.ticks, last_tick_us: self.last_tick_us, ..Statistics::default() };
    }
}

impl crate::shard::Shard {
    /// This core's part of INFO.
    pub(crate) fn counters(&self) -> CoreCounters {
        let databases = (0..base::limits::DATABASE_COUNT).map(|number| {
            let count = self.store.count(base::Database(number));
            (count.keys, count.expiring)
        });
        CoreCounters {
            core: self.core.0,
            requests: self.statistics.requests,
            errors: self.statistics.errors,
            connections_accepted: self.statistics.connections_accepted,
            connections: self.connections.len() as u64,
            blocked: self.waiters.len() as u64,
            hops: self.statistics.hops,
            ticks: self.statistics.ticks,
            windows: self.statistics.windows,
            changes: self.store.changes(),
            expired: self.store.expired(),
            data_bytes: self.store.heap_bytes() as u64,
            databases: databases.collect(),
            log_bytes: self.log.as_ref().map_or(0, |log| log.bytes_total()),
            log_syncs: self.log.as_ref().map_or(0, |log| log.syncs_total()),
            log_groups: self.log.as_ref().map_or((0, 0), |log| (log.sealed().0, log.durable().0)),
            commands: self.statistics.commands().to_vec(),
        }
    }
}
