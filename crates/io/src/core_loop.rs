//! The loop of one core: collect, read the clock, tick, perform, deliver.

use crate::batch_size::{BatchSize, Taken};
use crate::clock::{Clock, monotonic_us};
use crate::dialer::Dialer;
use crate::driver::{Collected, Driver, RETRY_US};
use crate::event_list::EventList;
use crate::gap_watch::GapWatch;
use crate::handover::{Arrival, Arrivals, Exit};
use crate::log_files::LogFiles;
use crate::mailbox::Mailbox;
use crate::named_files::NamedFiles;
use base::ids::ConnectionId;
use base::limits::TICK_GAP_TOLD_US;
use base::street::{Effect, Event, HandOver, Machine, Now, TickInput, TickOutput};
use std::io;

/// How long replies under way may still take when the machine has stopped, microseconds.
const STOP_GRACE_US: u64 = 3_000_000;

/// Largest send whose completion may be told late, bytes: above, a tick is nothing beside the copying, and a machine
/// may have stalled the connection until the send is done.
const QUIET_SEND_BYTES_MAX: usize = 16 << 10;

/// Everything one core's loop holds.
pub(crate) struct CoreLoop<D, M: Machine> {
    pub driver: D,
    pub machine: M,
    pub mailbox: Mailbox<M::Message>,
    pub log: Option<LogFiles>,
    pub files: Option<NamedFiles>,
    pub dialer: Dialer,
    pub exit: Exit,
    pub arrivals: Option<Arrivals>,
    pub clock: Clock,
}

impl<D: Driver, M: Machine> CoreLoop<D, M> {
    /// Runs until the machine stops; gives it back.
    pub fn run(mut self) -> io::Result<M> {
        let mut events = EventList::new();
        let mut hops = Vec::new();
        let mut output = TickOutput::default();
        // The first tick comes at once: the machine has yet to say what it waits for.
        let mut timeout_us = Some(0);
        let mut gaps = GapWatch::new(monotonic_us());
        let mut batch = BatchSize::new();
        let mut taken = Taken::default();
        loop {
            let collected = self.collect(timeout_us, batch.next(), &mut events, &mut hops)?;
            let now = self.clock.now();
            let gap = gaps.tick(collected.sleep, now.monotonic_us);
            batch.adapt(gap.us, taken);
            taken = collected.taken;
            if gap.us >= TICK_GAP_TOLD_US {
                events.push_first(Event::TickGap(gap));
            }
            let (received, room) = self.driver.received_and_room();
            self.machine.open(now, received, room, &mut events.events);
            (output.deadline_us, output.more, output.quiet_completions) = (None, false, false);
            self.machine.tick(
                TickInput { now, received: self.driver.received(), events: &mut events.events, hops: &mut hops },
                &mut output,
            );
            self.driver.release_received();
            crate::block_memory::release_spare(now.monotonic_us);
            events.reset();
            hops.clear();
            let stop = self.perform(&mut output, &mut events);
            if self.log.as_ref().is_some_and(LogFiles::forbids_sends) {
                output.hops.clear();
            }
            self.mailbox.deliver(&mut output.hops);
            if stop {
                self.finish_sends(&mut events);
                return Ok(self.machine);
            }
            timeout_us = self.next_timeout_us(now, &output, &events);
        }
    }

    /// Sleeps unless there is something to do, then lists all that happened.
    fn collect(
        &mut self,
        mut timeout_us: Option<u64>,
        at_most: Taken,
        events: &mut EventList,
        hops: &mut Vec<(base::ids::CoreId, M::Message)>,
    ) -> io::Result<Collected> {
        if timeout_us != Some(0) && !self.mailbox.doorbell().try_sleep() {
            timeout_us = Some(0);
        }
        let collected = self.driver.collect(timeout_us, at_most, events)?;
        // Before looking: whoever rings from now on is seen by the next try_sleep.
        self.mailbox.doorbell().awake();
        self.mailbox.collect(hops);
        if let Some(log) = &mut self.log {
            while let Some((read, outcome)) = self.driver.ended_read() {
                log.end_run_read(read, outcome, events);
            }
            log.collect(events);
        }
        if let Some(files) = &mut self.files {
            files.collect(events);
        }
        while let Some((token, socket)) = self.dialer.ended() {
            let connection = socket.and_then(|socket| {
                self.driver.admit(socket).ok_or_else(|| String::from("this core has no room for it"))
            });
            events.push(Event::Dialed { token, connection });
        }
        self.collect_arrivals(events);
        if self.mailbox.doorbell().take_shutdown() {
            events.push(Event::ShutdownRequested);
        }
        Ok(collected)
    }

    /// Takes what another process handed over. Those for whom there is no room wait until somebody leaves.
    fn collect_arrivals(&mut self, events: &mut EventList) {
        while let Some(arrivals) = &self.arrivals
            && self.driver.has_room()
        {
            match arrivals.next() {
                Arrival::Connection(socket, state) => {
                    // Without room for its registration nobody can serve it, and it closes.
                    if let Some(connection) = self.driver.admit(socket) {
                        events.push(Event::Arrived { connection, state });
                    }
                }
                Arrival::None => return,
                Arrival::Ended => {
                    self.arrivals = None;
                    events.push(Event::ArrivalsEnded);
                }
            }
        }
    }

    /// Gives a connection away, unless it has closed, which was told.
    fn hand_over(&mut self, connection: ConnectionId, state: &[u8], events: &mut EventList) {
        let outcome = match self.driver.idle_socket(connection) {
            Some(socket) => self.exit.send(state, socket),
            None => HandOver::Full,
        };
        if outcome == HandOver::Gone {
            self.driver.forget(connection);
        }
        events.push(Event::HandedOver { connection, outcome });
    }

    /// Performs the list in order; whether the machine stopped.
    fn perform(&mut self, output: &mut TickOutput<M::Message>, events: &mut EventList) -> bool {
        let quiet = output.quiet_completions;
        let mut stop = false;
        for effect in output.effects.drain(..) {
            match effect {
                Effect::Send { connection, buffer } => {
                    if self.log.as_ref().is_none_or(|log| !log.forbids_sends()) {
                        let quiet = quiet && buffer.len() <= QUIET_SEND_BYTES_MAX;
                        self.driver.send(connection, buffer, quiet, events);
                    }
                }
                Effect::Close { connection } => self.driver.close(connection, events),
                Effect::PauseReceive { connection } => self.driver.pause_receive(connection, events),
                Effect::ResumeReceive { connection } => self.driver.resume_receive(connection, events),
                Effect::Still { connection } => self.driver.still(connection, events),
                Effect::HandOver { connection, state } => self.hand_over(connection, &state, events),
                Effect::StopListening => {
                    self.driver.stop_listening(events);
                    events.push(Event::ListeningStopped);
                }
                Effect::ReleaseMemory => crate::memory::release(),
                Effect::KeepFreedMemory(keeps) => crate::block_memory::keep(keeps),
                Effect::Dial { token, address } => self.dialer.dial(token, address),
                Effect::Stop => stop = true,
                Effect::ReadRun { token, name, offset, bytes } => self.read_run(token, name, (offset, bytes), events),
                Effect::WriteFile { token, name, offset, bytes } => match &mut self.files {
                    Some(files) => files.write(token, &name, offset, bytes, events),
                    None => events.push(Event::FileFailed { token, reason: no_directory() }),
                },
                Effect::ReplaceFile { token, name, bytes } => match &mut self.files {
                    Some(files) => files.replace(token, &name, bytes, events),
                    None => events.push(Event::FileFailed { token, reason: no_directory() }),
                },
                Effect::ReadFile { token, name, bytes_max } => match &mut self.files {
                    Some(files) => files.read(token, &name, bytes_max, events),
                    None => events.push(Event::FileFailed { token, reason: no_directory() }),
                },
                log_effect => match &mut self.log {
                    Some(log) => log.perform(log_effect, quiet, events),
                    None => events.push(Event::LogFailed { reason: no_directory() }),
                },
            }
        }
        stop
    }

    /// By the driver where it can, and by a thread where not.
    fn read_run(&mut self, token: u64, name: String, (offset, bytes): (u64, u64), events: &mut EventList) {
        let Some(log) = &mut self.log else {
            return events.push(Event::RunRead { token, read: Err(no_directory()) });
        };
        match self.driver.reads_runs().then(|| log.run_read(token, &name, (offset, bytes))).flatten() {
            Some(read) => self.driver.read_run(read),
            None => log.perform(Effect::ReadRun { token, name, offset, bytes }, false, events),
        }
    }

    /// How long the next collect may sleep.
    fn next_timeout_us(&self, now: Now, output: &TickOutput<M::Message>, events: &EventList) -> Option<u64> {
        if output.more
            || self.dialer.has_refused()
            || events.is_prompt()
            || self.driver.has_more()
            || self.mailbox.has_arrivals()
        {
            return Some(0);
        }
        // Of many idle cores one has to look after memory.
        let memory_due_us = if self.mailbox.core().0 == 0 { crate::block_memory::due_us() } else { None };
        let due_us = [output.deadline_us, memory_due_us].into_iter().flatten().min();
        let until_deadline = due_us.map(|due_us| due_us.saturating_sub(now.monotonic_us));
        if self.mailbox.has_unsent() || self.driver.wants_retry() {
            return Some(until_deadline.map_or(RETRY_US, |us| us.min(RETRY_US)));
        }
        until_deadline
    }

    /// Lets the last replies leave, for a bounded time.
    fn finish_sends(&mut self, events: &mut EventList) {
        let end_us = monotonic_us() + STOP_GRACE_US;
        loop {
            let left_us = end_us.saturating_sub(monotonic_us());
            if self.driver.sends_under_way() == 0
                || left_us == 0
                || self.driver.collect(Some(left_us), Taken::ALL, events).is_err()
            {
                return;
            }
            self.driver.release_received();
            events.reset();
        }
    }
}

fn no_directory() -> String {
    String::from("this node has no data directory")
}
