//! One generator thread: an epoll loop over its connections.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::connection::{Connection, Flushed};
use super::dial::no_password;
use super::measure::{Observations, Window};
use super::plan::{LoadPlan, OpenLoop};
use super::request::Requests;

const READ_BYTES: usize = 256 << 10;
const NS_PER_MS: u64 = 1_000_000;
const EVENTS_PER_TURN: usize = 256;
/// How long an idle thread sleeps at most before it looks whether the run is over.
const SLEEP_NS_MAX: u64 = 50_000_000;
/// The last stretch before an intended start is spun away: a timer wakes up to this much late.
const SPIN_NS: u64 = 60_000;
/// How long a thread waits for replies that are still in flight when the run is over.
const DRAIN_NS_MAX: u64 = 5_000_000_000;

/// How long to sleep when the next start is due in `until_due_ns`. Whole milliseconds, rounded down: epoll_wait counts in them
/// and rounds up, and every request would seem to take half a millisecond more.
fn sleep_before(until_due_ns: u64) -> u64 {
    let spare_ms = until_due_ns.saturating_sub(SPIN_NS) / NS_PER_MS;
    (spare_ms * NS_PER_MS).min(SLEEP_NS_MAX)
}

/// Intended starts, drawn one after the other.
#[derive(Debug)]
struct Schedule {
    mean_gap_ns: f64,
    poisson: bool,
    next_ns: f64,
}

impl Schedule {
    fn advance(&mut self, unit: f64) {
        let factor = if self.poisson { -(1.0 - unit).ln() } else { 1.0 };
        self.next_ns += self.mean_gap_ns * factor;
    }

    /// How many starts lie between the two and are still to come. The gaps count by their mean: a rate that no server bears
    /// leaves more of them than can be drawn in a reasonable time.
    fn left_within(&self, from_ns: f64, until_ns: f64) -> u64 {
        let first_ns = self.next_ns.max(from_ns);
        ((until_ns - first_ns) / self.mean_gap_ns).ceil().max(0.0) as u64
    }
}

/// A thread's machine.
pub struct Generator {
    thread: usize,
    window: Arc<Window>,
    requests: Requests,
    pipeline: usize,
    connections: Vec<Connection>,
    epoll: OwnedFd,
    schedule: Option<Schedule>,
    /// Open loop: how long after its time the last request started.
    late_ns: u64,
    spins: bool,
    /// Open loop: connections with room, longest waiting first.
    with_room: VecDeque<usize>,
    /// Measured requests still to be started, when the run is bounded by their number.
    budget: Option<u64>,
    /// Replies still to be measured.
    to_measure: u64,
    /// Without a warm-up the window opens with the first request, so that a bounded number is exactly that number.
    opens_window: bool,
    completed: u64,
    observations: Observations,
}

impl Generator {
    /// Thread `thread` of the run, with its share of the connections and, if the run is bounded, of the requests.
    pub fn new(
        plan: &LoadPlan,
        thread: usize,
        window: Arc<Window>,
        requests: Requests,
        connections: Vec<Connection>,
        budget: Option<u64>,
    ) -> Result<Generator, String> {
        let failed = |error: Errno| format!("cannot watch the connections: {error}");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        for (index, connection) in connections.iter().enumerate() {
            epoll::add(&epoll, &connection.socket, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)
                .map_err(failed)?;
        }
        let schedule = plan.open_loop.map(|OpenLoop { per_second, poisson, .. }| Schedule {
            mean_gap_ns: 1e9 * plan.threads as f64 / per_second,
            poisson,
            next_ns: 0.0,
        });
        Ok(Generator {
            thread,
            window,
            requests,
            pipeline: plan.pipeline,
            with_room: VecDeque::with_capacity(connections.len()),
            connections,
            epoll,
            schedule,
            late_ns: 0,
            spins: plan.open_loop.is_some_and(|open| open.spins),
            budget,
            to_measure: budget.unwrap_or(u64::MAX),
            opens_window: plan.warm_up.is_zero(),
            completed: 0,
            observations: Observations::new(),
        })
    }

    /// Generates load until the window's owner says stop or the budget is used, then waits for replies in flight.
    pub fn run(mut self) -> Result<Observations, String> {
        // The default slack of 50 us would be part of every open-loop latency.
        if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
            return Err(format!("cannot ask for exact timers: {error}"));
        }
        let mut events = Vec::with_capacity(EVENTS_PER_TURN);
        let mut buffer = vec![0u8; READ_BYTES];
        let mut stopping_since = None;
        if self.opens_window {
            self.window.open_first();
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.next_ns = self.window.now_ns() as f64;
        }
        for index in 0..self.connections.len() {
            self.refill(index, self.window.now_ns())?;
        }
        loop {
            if self.schedule.is_some() {
                self.start_due()?;
            }
            if self.over() {
                let now = self.window.now_ns();
                let since = *stopping_since.get_or_insert(now);
                if self.connections.iter().all(|connection| connection.outstanding() == 0) {
                    break;
                }
                if now - since > DRAIN_NS_MAX {
                    return Err("the server did not answer requests in flight within 5 s".into());
                }
            }
            self.wait(&mut events)?;
            for event in events.drain(..) {
                self.on_event(event, &mut buffer)?;
            }
            self.window.publish(self.thread, self.completed);
        }
        self.finish()
    }

    fn over(&self) -> bool {
        self.window.stopping() || (self.budget == Some(0) && self.window.opened())
    }

    fn on_event(&mut self, event: epoll::Event, buffer: &mut [u8]) -> Result<(), String> {
        let (index, flags) = (event.data.u64() as usize, event.flags);
        if flags.contains(epoll::EventFlags::OUT) {
            self.flush(index)?;
        }
        if !flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
            return Ok(());
        }
        let bytes = match rustix::io::read(&self.connections[index].socket, &mut *buffer) {
            Ok(0) => return Err("the server closed a connection".into()),
            Ok(bytes) => bytes,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(format!("cannot read: {error}")),
        };
        let now = self.window.now_ns();
        let mut replies = self.take_replies(index, now, &buffer[..bytes])?;
        self.completed += replies;
        while replies > 0 {
            let Some(ended) = self.connections[index].ended(replies) else {
                return Err("the server sent more replies than requests".into());
            };
            replies -= u64::from(ended.requests);
            if self.window.covers(ended.at_ns) {
                self.observations.record(now - ended.at_ns.min(now), ended.requests);
            }
        }
        self.refill(index, now)
    }

    /// Counts the replies that `bytes` complete; those within the window also apart, up to the last that the run asked for.
    fn take_replies(&mut self, index: usize, now: u64, bytes: &[u8]) -> Result<u64, String> {
        let scanner = &mut self.connections[index].scanner;
        let (mut rest, mut replies) = (bytes, 0);
        while !rest.is_empty() {
            let is_measured = self.to_measure > 0 && self.window.covers(now);
            let at_most = if is_measured { self.to_measure } else { u64::MAX };
            let Observations { tally, outside, .. } = &mut self.observations;
            let tally = if is_measured { tally } else { outside };
            let (ended, left) = scanner
                .feed_at_most(rest, at_most, tally)
                .map_err(|refused| format!("the server does not speak this protocol: {}", refused.0))?;
            // Every other reply would say the same.
            if let Some(problem) = tally.first_error.as_deref().and_then(no_password) {
                return Err(problem);
            }
            (rest, replies) = (left, replies + ended);
            if is_measured {
                self.observations.replies += ended;
                self.to_measure -= ended;
            }
            if is_measured && self.to_measure == 0 {
                self.observations.last_ns = Some(now);
            }
        }
        Ok(replies)
    }

    /// Closed loop: starts as many requests as the connection has room for. Open loop: queues it as having room.
    fn refill(&mut self, index: usize, now: u64) -> Result<(), String> {
        let room = self.pipeline.saturating_sub(self.connections[index].outstanding());
        if self.schedule.is_some() {
            let connection = &mut self.connections[index];
            if room > 0 && !connection.queued {
                connection.queued = true;
                self.with_room.push_back(index);
            }
            return Ok(());
        }
        let mut started = 0;
        while started < room && self.may_start() {
            self.append(index);
            started += 1;
        }
        if started > 0 {
            self.connections[index].started(now, started as u32);
            self.flush(index)?;
        }
        Ok(())
    }

    /// Whether one more request may start; takes it from the budget once the window is open.
    fn may_start(&mut self) -> bool {
        if self.window.stopping() {
            return false;
        }
        match &mut self.budget {
            Some(left) if self.window.opened() => {
                let may = *left > 0;
                *left = left.saturating_sub(1);
                may
            }
            _ => true,
        }
    }

    fn append(&mut self, index: usize) {
        let Connection { output, slots, follow_up, .. } = &mut self.connections[index];
        self.requests.append(output, slots.as_ref(), follow_up);
    }

    /// Open loop: starts every request whose time has come, as far as connections have room.
    fn start_due(&mut self) -> Result<(), String> {
        let now = self.window.now_ns();
        while let Some(due_ns) = self.schedule.as_ref().map(|schedule| schedule.next_ns as u64) {
            if due_ns > now || self.with_room.is_empty() || !self.may_start() {
                break;
            }
            let index = self.with_room.pop_front().expect("checked just above");
            self.append(index);
            self.late_ns = now - due_ns;
            self.connections[index].started(due_ns, 1);
            self.connections[index].queued = false;
            self.flush(index)?;
            self.refill(index, now)?;
            let unit = self.requests.unit();
            if let Some(schedule) = &mut self.schedule {
                schedule.advance(unit);
            }
        }
        Ok(())
    }

    fn flush(&mut self, index: usize) -> Result<(), String> {
        let connection = &mut self.connections[index];
        let flushed = connection.flush().map_err(|error| format!("cannot write: {error}"))?;
        let blocked = flushed == Flushed::Blocked;
        if blocked != connection.blocked {
            connection.blocked = blocked;
            let interest = if blocked { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
            epoll::modify(&self.epoll, &connection.socket, epoll::EventData::new_u64(index as u64), interest)
                .map_err(|error| format!("cannot watch a connection: {error}"))?;
        }
        Ok(())
    }

    fn wait(&self, events: &mut Vec<epoll::Event>) -> Result<(), String> {
        let mut sleep_ns = SLEEP_NS_MAX;
        let mut exact = None;
        if let Some(schedule) = &self.schedule
            && !self.with_room.is_empty()
            && !self.over()
        {
            let until_due = (schedule.next_ns as u64).saturating_sub(self.window.now_ns());
            if self.spins {
                sleep_ns = sleep_before(until_due);
            } else {
                (exact, sleep_ns) = (Some(until_due.min(SLEEP_NS_MAX)), 0);
            }
        }
        let timeout = |ns| Timespec::try_from(Duration::from_nanos(ns)).expect("50 ms fit a timespec");
        if let Some(exact_ns) = exact {
            // Unlike epoll_wait it counts in nanoseconds; what it found, epoll tells.
            match rustix::event::poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout(exact_ns))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(format!("cannot wait for replies: {error}")),
            }
        }
        let timeout = timeout(sleep_ns);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(format!("cannot wait for replies: {error}")),
        }
    }

    /// Starts that were due in the window and found no connection with room: silence about them would be the very omission an
    /// open loop exists to avoid.
    fn note_backlog(&mut self) {
        let Some(schedule) = &self.schedule else { return };
        if self.budget == Some(0) {
            // All were made, the last of them so late.
            self.observations.behind_ns = self.late_ns;
            return;
        }
        let (start_ns, end_ns) = self.window.span_ns();
        // What came due while the last replies were awaited was never to be sent.
        let until_ns = end_ns.min(self.window.now_ns()) as f64;
        self.observations.behind_ns = (until_ns - schedule.next_ns).max(0.0) as u64;
        self.observations.unsent = schedule.left_within(start_ns as f64, until_ns);
    }

    fn finish(mut self) -> Result<Observations, String> {
        self.note_backlog();
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        self.observations.thread_cpu_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        Ok(self.observations)
    }
}

#[cfg(test)]
mod tests;
