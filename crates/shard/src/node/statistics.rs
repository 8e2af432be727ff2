//! What a core counts while it works. Plain integers of one core, added up when somebody asks.

use super::gaps::LongestGaps;
use crate::timing::Durations;
use wire::registry::{COMMAND_ID_COUNT, CommandId, CommandSpec, all};
use wire::{ErrorCode, ErrorTally};

macro_rules! numbers {
    ($(#[$doc:meta])* $type:ident { $($(#[$sum_doc:meta])* $sum:ident,)* @max $($(#[$max_doc:meta])* $max:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $type {
            $($(#[$sum_doc])* pub $sum: u64,)*
            $($(#[$max_doc])* pub $max: u64,)*
        }

        impl $type {
            /// Adds the numbers of another core; of maxima the larger one stays.
            pub fn add(&mut self, other: &$type) {
                $(self.$sum += other.$sum;)*
                $(self.$max = self.$max.max(other.$max);)*
            }
        }
    };
}

numbers! {
    /// Events since the start, or since CONFIG RESETSTAT.
    Counters {
        /// Connections that arrived.
        connections_accepted,
        /// Connections refused for want of room.
        connections_refused,
        /// Requests executed, those inside EXEC included.
        commands,
        /// Bytes received.
        input_bytes,
        /// Bytes sent.
        output_bytes,
        /// Reads that found their key.
        keyspace_hits,
        /// Reads that did not.
        keyspace_misses,
        /// Requests answered from a copy of what another instance serves.
        copy_reads,
        /// Keys removed because their time was up.
        expired_keys,
        /// Keys removed to make room.
        evicted_keys,
        /// Error replies.
        errors,
        /// Failed AUTH.
        authentication_failures,
        /// Changes of keys.
        changes,
        /// Requests that another core executed for a connection of this one.
        hops_sent,
        /// Requests executed for connections of other cores.
        hops_received,
        /// Ticks.
        ticks,
        /// Ticks that executed at least one request.
        ticks_with_commands,
        /// Log groups written.
        log_groups,
        /// Log bytes written.
        log_bytes,
        /// Syncs of the log.
        log_syncs,
        /// Waiters that another's write woke.
        waiters_woken,
        /// Bytes of memory given back that nothing referred to any more.
        reclaimed_bytes,
        /// Keys dropped because other nodes have them.
        stray_keys,
        @max
        /// Most requests of one tick.
        commands_per_tick_max,
    }
}

numbers! {
    /// How things stand now.
    Gauges {
        /// Connections.
        connections,
        /// Connections that wait for another's write.
        blocked_connections,
        /// Connections with watched keys.
        watching_connections,
        /// Requests per second, lately.
        commands_per_second,
        /// Bytes of records, dead ones that are not reused yet included.
        record_bytes,
        /// Bytes of indexes.
        index_bytes,
        /// Bytes of log groups that are being filled or written.
        log_buffer_bytes,
        /// Keys whose value is not in memory.
        cold_keys,
        /// Bytes of those values.
        cold_bytes,
        /// Bytes of values that memory and a run have.
        clean_bytes,
        /// Bytes of values that wait for a run before they may leave memory.
        dirty_bytes,
        /// Values that left memory, since the start.
        values_cooled,
        /// Values that came back, since the start.
        values_fetched,
        /// Values asked for and not here.
        fetches_under_way,
        /// Requests that waited for values, since the start.
        fetch_waits,
        /// Values that could not be read, since the start.
        fetch_failures,
        /// Bytes of requests that are not complete.
        request_bytes,
        /// Bytes of replies that have not left.
        reply_bytes,
        /// Bytes of connections themselves: sessions, transactions.
        session_bytes,
        /// Log segments of this process on disk.
        log_segments,
        /// Bytes of log that runs do not replace yet.
        log_held_bytes,
        /// Ticks since the start in which writers waited for the disk.
        ticks_writers_waited,
        /// Of them, those in which the next segment was being made, or room behind the present one.
        ticks_waited_for_segment,
        /// Ticks since the start in which long values on their way waited for runs.
        ticks_uploads_waited,
        /// Bytes of the slot groups' runs.
        run_bytes,
        /// Runs published since the start.
        runs_published,
        /// Bytes of those.
        runs_published_bytes,
        /// Bytes of runs written, of those that were dropped, too.
        runs_written_bytes,
        /// Ticks with maintenance, by class.
        eviction_steps,
        /// As above.
        checkpoint_steps,
        /// As above.
        reclaim_steps,
        /// As above.
        expiry_steps,
        /// As above.
        stray_steps,
        /// Of those, with less than was wanted.
        maintenance_shortened,
        /// Bytes of log since the next runs came due.
        checkpoint_backlog_bytes,
        /// Bytes of memory that nothing refers to.
        reclaim_backlog_bytes,
        /// Cores whose runs fall behind.
        maintenance_alarmed,
        /// How often one began to.
        maintenance_alarms,
        /// Runs under way; core 0 knows.
        runs_at_once,
        /// Most of them so far; core 0 knows.
        runs_at_once_max,
        /// As many as there may be; core 0 knows.
        runs_at_once_cap,
        /// Cores whose last run failed.
        runs_failed,
        /// Cores that keep files for a backup.
        backup_pins,
        /// Files that only a backup still needs.
        backup_files_withheld,
        /// Log groups written and not synced.
        log_groups_unsynced,
        /// 1 when the log failed and writes are refused.
        log_failed,
        /// 1 while the log has no room and writes are refused.
        log_full,
        @max
        /// Unix milliseconds of the latest sync of the log.
        log_synced_unix_ms,
        /// Unix milliseconds at which a backup's lease ends unless it is renewed.
        backup_lease_end_unix_ms,
    }
}

impl Gauges {
    /// Bytes that the core knows it uses.
    pub fn used_bytes(&self) -> u64 {
        self.record_bytes
            + self.index_bytes
            + self.log_buffer_bytes
            + self.request_bytes
            + self.reply_bytes
            + self.session_bytes
    }
}

/// Keys of one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceFacts {
    /// Keys.
    pub keys: u64,
    /// Keys that will expire.
    pub expiring: u64,
}

/// How often one command was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Executed.
    pub executed: u64,
    /// Refused before execution: arity, rights, slot, memory, a log that takes nothing.
    pub rejected: u64,
    /// Executed and answered with an error.
    pub failed: u64,
}

impl Calls {
    /// One that was counted did not run, or not here. Since it was counted all may have been forgotten.
    pub(crate) fn take_back(&mut self) {
        self.executed = self.executed.saturating_sub(1);
    }
}

/// All that a core counts; it bumps these in place.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Events.
    pub counters: Counters,
    /// The longest gaps between ticks; of one core, never added up.
    pub gaps: LongestGaps,
    /// [`Counters::commands`] when the tick began.
    commands_before: u64,
    /// By command, indexed by [`CommandId`].
    calls: Box<[Calls]>,
    errors: ErrorTally,
    /// How long commands took, while that is counted.
    pub durations: Durations,
}

impl Default for Statistics {
    fn default() -> Statistics {
        let calls = vec![Calls::default(); COMMAND_ID_COUNT].into_boxed_slice();
        Statistics {
            counters: Counters::default(),
            gaps: LongestGaps::default(),
            commands_before: 0,
            calls,
            errors: ErrorTally::default(),
            durations: Durations::default(),
        }
    }
}

impl Statistics {
    /// A tick begins.
    pub(crate) fn begin_tick(&mut self) {
        self.counters.ticks += 1;
        self.commands_before = self.counters.commands;
    }

    /// Whether it executed a request so far.
    pub(crate) fn has_served(&self) -> bool {
        self.counters.commands > self.commands_before
    }

    /// It ends.
    pub(crate) fn end_tick(&mut self) {
        let commands = self.counters.commands.saturating_sub(self.commands_before);
        self.counters.ticks_with_commands += u64::from(commands > 0);
        self.counters.commands_per_tick_max = self.counters.commands_per_tick_max.max(commands);
    }

    /// The counts of one command.
    #[inline]
    pub fn calls(&mut self, id: CommandId) -> &mut Calls {
        &mut self.calls[id as usize]
    }

    /// Counts an error reply.
    #[cold]
    pub fn count_error(&mut self, code: ErrorCode) {
        self.counters.errors += 1;
        self.errors.note(code);
    }

    /// Counts error replies.
    pub fn count_errors(&mut self, errors: &ErrorTally) {
        self.counters.errors += errors.total();
        self.errors.add(errors);
    }

    /// Error replies by code.
    pub fn errors(&self) -> &ErrorTally {
        &self.errors
    }

    /// The counts of every command and subcommand that was asked for, in the registry's order.
    pub fn called(&self) -> impl Iterator<Item = (&'static CommandSpec, Calls)> {
        let with_subcommands = |spec: &'static CommandSpec| std::iter::once(spec).chain(spec.subcommands);
        let specs = all().flat_map(with_subcommands);
        specs.map(|spec| (spec, self.calls[spec.id as usize])).filter(|(_, calls)| *calls != Calls::default())
    }

    /// Adds what another core counted.
    pub fn add(&mut self, other: &Statistics) {
        self.counters.add(&other.counters);
        for (mine, theirs) in self.calls.iter_mut().zip(&other.calls) {
            mine.executed += theirs.executed;
            mine.rejected += theirs.rejected;
            mine.failed += theirs.failed;
        }
        self.errors.add(&other.errors);
        self.durations.add(&other.durations);
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&mut self) {
        *self = Statistics::default();
    }
}
