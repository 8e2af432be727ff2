//! What one core counts, and the facts it tells about itself.

use std::sync::atomic::Ordering;

use base::Database;
use base::limits::DATABASE_COUNT;
use storage::maintenance::Class;

use crate::node::{CoreFacts, Gauges, KeyspaceFacts};
use crate::shard::Shard;

impl Shard {
    /// This core's part of INFO.
    pub(crate) fn facts(&self) -> CoreFacts {
        let mut statistics = self.statistics.clone();
        statistics.counters.connections_refused = self.node.connections_refused.load(Ordering::Relaxed);
        for connection in self.connections.iter() {
            statistics.count_errors(connection.output.errors());
        }
        statistics.counters.changes = self.store.changes();
        statistics.counters.expired_keys = self.store.expired();
        statistics.counters.evicted_keys = self.store.evicted();
        let lookups = self.store.lookups();
        (statistics.counters.keyspace_hits, statistics.counters.keyspace_misses) = (lookups.found, lookups.missed);
        if let Some(log) = &self.log {
            statistics.counters.log_groups = log.sealed().0;
            statistics.counters.log_bytes = log.bytes_total();
            statistics.counters.log_syncs = log.syncs_total();
        }
        let mut keyspace = [KeyspaceFacts::default(); DATABASE_COUNT as usize];
        for (number, facts) in keyspace.iter_mut().enumerate() {
            let count = self.store.count(Database(number as u8));
            *facts = KeyspaceFacts { keys: count.keys, expiring: count.expiring };
        }
        let migrations = self.membership.iter().flat_map(|membership| membership.migrations.list()).copied().collect();
        CoreFacts { statistics, gauges: self.gauges(), keyspace, migrations }
    }

    /// CONFIG RESETSTAT: what was answered before it in this tick is forgotten, too.
    pub(crate) fn reset_statistics(&mut self) {
        self.statistics.reset();
        self.store.reset_counters();
        self.node.connections_refused.store(0, Ordering::Relaxed);
        for connection in self.connections.iter_mut() {
            drop(connection.output.take_errors());
        }
    }

    fn gauges(&self) -> Gauges {
        let mut gauges = Gauges {
            connections: self.connections.count() as u64,
            record_bytes: self.store.record_bytes() as u64,
            index_bytes: self.store.index_bytes() as u64,
            log_failed: u64::from(self.node.log_failure().is_some()),
            log_full: u64::from(self.has_no_log_room()),
            ..Gauges::default()
        };
        for connection in self.connections.iter() {
            gauges.blocked_connections += u64::from(connection.stall.is_waiter());
            gauges.watching_connections += u64::from(connection.session.is_watching());
            gauges.request_bytes += connection.input.capacity() as u64;
            gauges.reply_bytes += connection.output.pending_bytes() as u64;
            gauges.session_bytes += size_of_val(connection) as u64;
        }
        if let Some(log) = &self.log {
            gauges.log_segments = log.segment_count();
            gauges.log_held_bytes = log.held_bytes();
            gauges.ticks_writers_waited = self.pace.held.writers;
            gauges.ticks_waited_for_segment = self.pace.held.for_segment;
            gauges.ticks_uploads_waited = self.pace.held.uploads;
            gauges.log_groups_unsynced = log.sealed().0 - log.durable().0;
            gauges.log_synced_unix_ms = self.synced_unix_ms;
            if let Some(until_us) = self.pins.until_us() {
                gauges.backup_pins = 1;
                gauges.backup_files_withheld = self.withheld() as u64;
                let left_us = until_us.saturating_sub(self.now.monotonic_us);
                gauges.backup_lease_end_unix_ms = self.now.unix_ms + left_us / 1000;
            }
        }
        if self.store.tiers() {
            let tiered = self.store.tiered();
            (gauges.cold_keys, gauges.cold_bytes) = (tiered.cold_keys, tiered.cold_bytes);
            (gauges.clean_bytes, gauges.dirty_bytes) = (tiered.clean_bytes, tiered.dirty_bytes);
            (gauges.values_cooled, gauges.values_fetched) = (tiered.cooled, tiered.fetched);
            gauges.fetches_under_way = self.fetches.len() as u64;
            (gauges.fetch_waits, gauges.fetch_failures) = (self.fetches.waits, self.fetches.failures);
        }
        if let Some(checkpoints) = &self.checkpoints {
            gauges.run_bytes = checkpoints.run_bytes();
            (gauges.runs_published, gauges.runs_published_bytes) = checkpoints.published();
            gauges.runs_failed = u64::from(checkpoints.failure().is_some());
            gauges.runs_written_bytes = checkpoints.written_bytes();
            let (is_alarmed, alarms) = checkpoints.alarm();
            (gauges.maintenance_alarmed, gauges.maintenance_alarms) = (u64::from(is_alarmed), alarms);
            gauges.checkpoint_backlog_bytes = self.log.as_ref().map_or(0, |log| checkpoints.backlog_bytes(log));
        }
        if self.core.0 == 0 && self.outbox.len() > 1 {
            let (now, most) = self.permits.in_use();
            (gauges.runs_at_once, gauges.runs_at_once_max) = (u64::from(now), u64::from(most));
            gauges.runs_at_once_cap = u64::from(self.permits.cap());
        }
        let done = Class::ALL.map(|class| self.scheduler.done(class));
        [
            gauges.eviction_steps,
            gauges.checkpoint_steps,
            gauges.reclaim_steps,
            gauges.expiry_steps,
            gauges.stray_steps,
        ] = done.map(|done| done.steps);
        gauges.maintenance_shortened = done.iter().map(|done| done.shortened).sum();
        gauges.reclaim_backlog_bytes = self.store.garbage_bytes() as u64;
        gauges
    }
}

#[cfg(test)]
mod tests {
    use base::{ConnectionId, Door, Entrance, Event};

    use crate::Durability;
    use crate::one_core::{Core, request, turn};

    #[test]
    fn ticks_and_what_they_executed_are_counted() {
        let _turn = turn();
        let mut core = Core::new(Durability::Memory, 2);
        let before = core.shard.facts().statistics.counters;
        core.tick(0, &[request(&[b"GET", b"key"]), request(&[b"GET", b"key"]), request(&[b"GET", b"key"])].concat());
        core.tick(0, b"");
        core.tick(1, &request(&[b"PING"]));
        let after = core.shard.facts().statistics.counters;
        assert_eq!((after.ticks - before.ticks, after.ticks_with_commands - before.ticks_with_commands), (3, 2));
        assert_eq!(after.commands_per_tick_max, 3);
    }

    #[test]
    fn what_the_store_counts_is_told_and_forgotten_with_the_rest() {
        let _turn = turn();
        let mut core = Core::new(Durability::Memory, 1);
        for words in [&[b"SET".as_slice(), b"k", b"v"][..], &[b"GET", b"k"], &[b"GET", b"none"], &[b"GET", b"none"]] {
            core.tick(0, &request(words));
        }
        let counted = |core: &Core| {
            let counters = core.shard.facts().statistics.counters;
            (counters.keyspace_hits, counters.keyspace_misses)
        };
        assert_eq!(counted(&core), (1, 2));
        core.tick(0, &request(&[b"CONFIG", b"RESETSTAT"]));
        assert_eq!(counted(&core), (0, 0));
    }

    /// What INFO tells of errors to one more client.
    fn errors(core: &Core) -> Vec<(String, u64)> {
        let errors = core.shard.facts().statistics;
        assert_eq!(errors.counters.errors, errors.errors().total());
        errors.errors().iter().map(|(code, count)| (code.to_owned(), count)).collect()
    }

    #[test]
    fn every_error_that_a_client_is_told_is_counted_once_by_its_first_word() {
        let _turn = turn();
        let mut core = Core::new(Durability::Memory, 3);
        let wrong_type = [request(&[b"LPUSH", b"list", b"a"]), request(&[b"GET", b"list"])].concat();
        core.tick(0, &wrong_type);
        assert_eq!(errors(&core), [("WRONGTYPE".to_owned(), 1)]);
        // Unknown, wrong arity, one that waits and is told, one inside EXEC, EXEC itself, and what nobody wants to hear.
        core.tick(0, &[request(&[b"NOSUCH"]), request(&[b"GET"])].concat());
        core.tick(1, &request(&[b"BLPOP", b"none", b"0"]));
        let id = core.shard.connections.iter().map(|connection| connection.session.client_id()).nth(1).expect("three");
        core.tick(0, &request(&[b"CLIENT", b"UNBLOCK", id.to_string().as_bytes(), b"ERROR"]));
        let exec = [&[b"MULTI".as_slice()][..], &[b"GET", b"list"], &[b"GET", b"none"], &[b"GET", b"list"], &[b"EXEC"]];
        core.tick(0, &exec.map(request).concat());
        core.tick(0, &[&[b"MULTI".as_slice()][..], &[b"NOSUCH"], &[b"EXEC"]].map(request).concat());
        core.tick(2, &[&[b"CLIENT".as_slice(), b"REPLY", b"OFF"][..], &[b"GET", b"list"]].map(request).concat());
        let counts = [("ERR", 3), ("EXECABORT", 1), ("UNBLOCKED", 1), ("WRONGTYPE", 4)];
        assert_eq!(errors(&core), counts.map(|(code, count)| (code.to_owned(), count)));
        // Malformed bytes end the connection with the error; its count stays.
        core.tick(0, b"*1\r\n+\r\n");
        core.tick(1, b"");
        assert!(core.closed.contains(&0));
        assert_eq!(errors(&core)[0], ("ERR".to_owned(), 4));
        // Who asks in the same tick is told of it, too.
        core.replies.clear();
        core.tick(1, &[&[b"GET".as_slice(), b"list"][..], &[b"INFO", b"errorstats"]].map(request).concat());
        let told = String::from_utf8_lossy(&core.replies[&1]).into_owned();
        assert!(told.contains("\r\nerrorstat_WRONGTYPE:count=5\r\n"), "{told}");
        // Forgotten with the rest, what came before it in the same tick included.
        core.tick(
            1,
            &[&[b"GET".as_slice(), b"list"][..], &[b"CONFIG", b"RESETSTAT"], &[b"NOSUCH"]].map(request).concat(),
        );
        assert_eq!(errors(&core), [("ERR".to_owned(), 1)]);
        core.tick(1, b"");
        assert_eq!(errors(&core), [("ERR".to_owned(), 1)]);
    }

    #[test]
    fn who_is_not_let_in_is_counted() {
        let _turn = turn();
        let mut core = Core::new(Durability::Memory, 1);
        core.shard.connections_refused().fetch_add(2, std::sync::atomic::Ordering::Relaxed);
        let refused = |core: &Core| core.shard.facts().statistics.counters.connections_refused;
        assert_eq!(refused(&core), 2);
        // Nobody asks for a password: only this machine may come in.
        core.events.push(Event::Accepted {
            connection: ConnectionId { index: 7, generation: 0 },
            door: Door::Standalone,
            entrance: Entrance::default(),
            peer: "10.0.0.1:5".into(),
            local: "10.0.0.2:6379".into(),
        });
        core.tick(0, b"");
        assert!(core.replies[&7].starts_with(b"-DENIED "));
        assert_eq!((refused(&core), errors(&core)), (3, vec![("DENIED".to_owned(), 1)]));
        core.tick(0, &request(&[b"CONFIG", b"RESETSTAT"]));
        assert_eq!(refused(&core), 0);
    }
}
