//! A thread that asks and waits: it sends, reads for everybody until its own reply is there, or sleeps while another one reads.

use super::background::Core;
use super::error::Error;
use super::gathering::{Gatherer, Round};
use super::link::{Actor, Link, Locked, Reader, State};
use super::options::{LOOK_US, Settings};
use super::seat::{Answer, Seat, ThreadSeat};
use client::desk::{Ask, NotAsked, Place};
use io::clock::monotonic_us;
use io::stream::{Received, Watched, wait};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Threads that are noted as sleepers before those that are gone are looked for.
const PARKED_MIN: usize = 64;

/// When to look again whether what is due was sent, if somebody else is sending, microseconds.
const LOOK_AGAIN_US: u64 = 1_000;

/// For how long a thread waits.
pub(super) struct Patience {
    deadline_us: u64,
    /// When to ask next whether the thread is to go on.
    look_us: u64,
    pub is_interrupted: bool,
}

impl Patience {
    pub fn new(settings: &Settings, deadline_us: u64) -> Patience {
        let look_us = settings.interrupted.map_or(u64::MAX, |_| monotonic_us() + LOOK_US);
        Patience { deadline_us, look_us, is_interrupted: false }
    }

    /// Until when it may wait at a time.
    pub fn until_us(&self) -> u64 {
        self.deadline_us.min(self.look_us)
    }

    /// Asks whether it is to go on, if it is time: never under a lock, because whoever answers may wait for somebody who wants it.
    pub fn look(&mut self, settings: &Settings) {
        let Some(is_interrupted) = settings.interrupted else { return };
        let now_us = monotonic_us();
        if now_us >= self.look_us {
            self.look_us = now_us + LOOK_US;
            self.is_interrupted = is_interrupted();
        }
    }
}

impl Link {
    /// Asks, and returns with what came of it.
    pub fn call(&self, core: &Arc<Core>, ask: Ask<'_>) -> Answer {
        let (seat, number) = ThreadSeat::begin();
        let mut patience = Patience::new(&self.settings, ask.deadline_us);
        let (mut state, place) = self.enter(core, ask, &seat, &mut patience)?;
        self.asked.fetch_add(1, Ordering::Relaxed);
        let round = state.begin_to_gather(Gatherer::Thread);
        loop {
            state = self.act(state, Actor::Thread);
            if !seat.waits(number) {
                break;
            }
            if patience.is_interrupted {
                state.desk.give_up(place);
                self.hand_over(core, &mut state);
                self.release(state);
                return Err(Error::Interrupted);
            }
            let now_us = monotonic_us();
            if now_us >= ask.deadline_us {
                self.expire(&mut state);
                continue;
            }
            if state.may_read() {
                state = self.read(state, &seat, now_us, &mut patience);
                if !state.strays.is_empty() {
                    core.wake_background();
                }
                continue;
            }
            let is_held = state.gathering.holds(now_us) && round.is_none_or(|round| !state.gathering.is_in(round));
            let act_us = state.act_us(now_us).filter(|_| !is_held);
            state.mind_rest(core);
            state.park(&seat, number);
            self.sleep(state, &seat, act_us.unwrap_or(u64::MAX), &mut patience);
            if let Some(answer) = seat.take() {
                return answer;
            }
            state = self.lock();
            state.parked.retain(|(other, _)| !Arc::ptr_eq(other, &seat));
        }
        self.hand_over(core, &mut state);
        self.release(state);
        seat.take().expect("who does not wait was told")
    }

    /// Takes a place at the desk. A thread that finds too much there waits until there is less: it is asked for nothing else meanwhile.
    fn enter<'a>(
        &'a self,
        core: &Arc<Core>,
        ask: Ask<'_>,
        seat: &Arc<ThreadSeat>,
        patience: &mut Patience,
    ) -> Result<(Locked<'a>, Place), Error> {
        let mut state = self.lock();
        loop {
            let now_us = monotonic_us();
            let error = match state.desk.ask(now_us, ask, Seat::Thread(Arc::clone(seat))) {
                Ok(place) => {
                    core.mind_silence();
                    state.gathering.asked();
                    return Ok((state, place));
                }
                Err(NotAsked::Full) if patience.is_interrupted => Some(Error::Interrupted),
                Err(NotAsked::Full) if now_us < ask.deadline_us => None,
                Err(why) => Some(self.refusal(&state, why)),
            };
            if let Some(error) = error {
                self.hand_over(core, &mut state);
                self.release(state);
                return Err(error);
            }
            state = self.act(state, Actor::Thread);
            if state.may_read() {
                state = self.read(state, seat, now_us, patience);
                continue;
            }
            let until_us = state.act_us(now_us).unwrap_or(ask.deadline_us);
            state.mind_rest(core);
            state.crowd.push(Seat::Thread(Arc::clone(seat)));
            self.sleep(state, seat, until_us, patience);
            state = self.lock();
        }
    }

    fn sleep(&self, state: Locked<'_>, seat: &Arc<ThreadSeat>, until_us: u64, patience: &mut Patience) {
        let seen = self.sleepers.look();
        self.release(state);
        self.sleepers.sleep(seen, seat.bed, until_us.min(patience.until_us()));
        patience.look(&self.settings);
    }

    /// Reads once, or until there is something else to do.
    fn read<'a>(
        &'a self,
        mut state: Locked<'a>,
        own: &Arc<ThreadSeat>,
        now_us: u64,
        patience: &mut Patience,
    ) -> Locked<'a> {
        let Some(stream) = state.stream.clone() else { return state };
        let connection = state.dials;
        let mut buffer = state.take_buffer();
        state.reader = Reader::Caller;
        let (for_room, act_us) = (state.unsent.is_some(), state.act_us(now_us));
        let left = Duration::from_micros(patience.until_us().saturating_sub(now_us));
        self.release(state);
        // The socket itself wakes the reader after that time: with about that long to go nothing else has to.
        let wait_max = self.settings.wait_max();
        let is_patient = left >= wait_max - wait_max / 16;
        let is_ready = (is_patient && act_us.is_none() && !for_room) || {
            let left = act_us.map_or(left, |act_us| left.min(Duration::from_micros(act_us.saturating_sub(now_us))));
            let mut watched = [Watched::new(&stream, true, for_room)];
            self.reads.fetch_add(1, Ordering::Relaxed);
            wait(&mut watched, None, Some(left)).is_err() || watched[0].is_ready
        };
        let received = match () {
            () if !is_ready => Received::Nothing,
            () if for_room => stream.receive_now(&mut buffer),
            () => stream.receive(&mut buffer),
        };
        self.reads.fetch_add(u64::from(is_ready), Ordering::Relaxed);
        if received == Received::Nothing {
            patience.look(&self.settings);
        }
        let mut state = self.lock();
        state.reader = Reader::Nobody;
        self.hear(&mut state, connection, received, &buffer, Some(own));
        state.buffer = buffer;
        if for_room { self.send_rest(state) } else { state }
    }

    /// Hands the socket more of what it had no room for.
    pub(super) fn send_rest<'a>(&'a self, mut state: Locked<'a>) -> Locked<'a> {
        if state.is_acting {
            return state;
        }
        match state.unsent.take() {
            Some((buffer, from)) => self.send(state, buffer, from),
            None => state,
        }
    }

    /// Whoever gives up a role looks whether somebody waits without anybody who reads for him.
    pub(super) fn hand_over(&self, core: &Arc<Core>, state: &mut State) {
        let is_read_for = state.wake_sleeper() || state.reader != Reader::Nobody;
        if !is_read_for && state.driven > 0 {
            core.wake_background();
        }
        state.mind_rest(core);
    }
}

impl State {
    /// Whether whoever asked now, or was answered, is to let others ask before anything is sent; it has to look again then.
    pub fn begin_to_gather(&mut self, gatherer: Gatherer) -> Option<Round> {
        let now_us = monotonic_us();
        let is_due = self.desk.deadline_us(now_us).is_some_and(|us| us <= now_us);
        let may_gather = is_due && !self.is_acting && self.unsent.is_none();
        if may_gather { self.gathering.begin(now_us, gatherer) } else { None }
    }

    /// Whether a caller may begin to read.
    fn may_read(&self) -> bool {
        let is_free = self.reader == Reader::Nobody || (self.reader == Reader::Watch && self.driven == 0);
        is_free && self.stream.is_some()
    }

    /// When somebody has to act though nothing happens. Whoever acts already does it at once, and may be gone before what comes behind is
    /// due: then somebody else looks a little later.
    pub(super) fn act_us(&self, now_us: u64) -> Option<u64> {
        if self.gathering.holds(now_us) {
            return self.gathering.until_us();
        }
        let is_busy = self.is_acting || self.unsent.is_some();
        let soonest_us = if is_busy { now_us + LOOK_AGAIN_US } else { 0 };
        self.desk.deadline_us(now_us).map(|us| us.max(soonest_us))
    }

    /// If nobody reads and a caller sleeps, he is to be woken: the last one that went to sleep, because when its reply is there,
    /// those of all before it are.
    pub(super) fn wake_sleeper(&mut self) -> bool {
        while self.reader == Reader::Nobody
            && let Some((seat, number)) = self.parked.pop()
        {
            if seat.waits(number) {
                self.told.push(Seat::Thread(seat));
                return true;
            }
        }
        false
    }

    /// Who began to read while something was being sent does not see when there is room for the rest of it.
    fn mind_rest(&self, core: &Arc<Core>) {
        if self.unsent.is_some() && self.reader != Reader::Nobody {
            core.wake_background();
        }
    }

    fn park(&mut self, seat: &Arc<ThreadSeat>, number: u64) {
        if self.parked.len() >= PARKED_MIN.max(2 * self.desk.owed()) {
            self.parked.retain(|(seat, number)| seat.waits(*number));
        }
        self.parked.push((Arc::clone(seat), number));
    }
}
