//! AT-16: five times as many requests as there are answers, a store that stands still while clients ask on, give up and come again,
//! and what is left of it when they ask no more.
//!
//! ```text
//!   steady ─► five offered for each that is answered ─► store stopped: nobody takes any more ─► half give up and come again, three times
//!     │                                                                                            │
//!     └───────── as much as before, by as much work ◄── nothing is left ◄── all that was taken is answered ◄── store goes on
//! ```
//!
//! A proxy that changes no reply has no error of its own for too much: it takes no more, and what it does not take the client still
//! has. So what is refused here is what no socket takes; a client that can wait no longer tries three others, as AT-16 has it.

use std::fmt;
use std::io;
use std::time::Instant;

use base::limits::{CALLER_REQUESTS_MAX, LANE_BATCH_BYTES_MAX, RECEIVE_BYTES};
use base::rng::Rng;
use rustix::process::Signal;

use super::caller::Caller;
use super::stage::Stage;
use super::{OverloadArguments, Verdicts, crowd, rates};
use crate::connection::encode;
use crate::process::contains;

/// Connections of the crowd.
const CALLERS: usize = 24;
/// Requests of each while there is no overload.
const STEADY_DEPTH: u64 = 16;
/// Replies that are counted before and after, and those to which five times as many requests are offered.
const REPLIES: u64 = 60_000;
/// Offered for each reply, so many in a write.
const TIMES: u64 = 5;
const AT_ONCE: u64 = 64;
/// Offered in vain, and then there is no bound.
const OFFERED_MAX: u64 = 200 * REPLIES;
/// Other connections that a request is tried at which the first one does not take.
const RETRIES: usize = 3;
/// Times that half of the crowd gives up and comes again.
const GIVEN_UP: usize = 3;
/// What a connection offers to a store that stands still: more than proxy and kernel may take of it by far.
const OFFERED_BYTES_MAX: usize = 24 << 20;
/// Looks in a row at which all wait and no socket took anything.
const LOOKS_STILL: u32 = 3;
/// Requests that a connection offers at a time.
const PIECE: u64 = 512;
/// What a caller costs the proxy while it waits: what it sent ahead, the receive on top, twice what that is for tables that grow, and
/// its requests on their way.
const CALLER_BYTES_MAX: u64 = 2 * 5 * RECEIVE_BYTES as u64 + 128 * CALLER_REQUESTS_MAX as u64;
/// What the lane holds, waiting and out, with tables that grow; and what else a process takes under load, which is not measured finer.
const PROXY_BYTES_MAX: u64 = 2 * ((4 << 20) + 2 * LANE_BATCH_BYTES_MAX as u64) + (16 << 20);
/// What lies at the store is no more than a lane may send it.
const STORE_BYTES_MAX: u64 = 16 << 20;

/// The crowd, and what became of those who left it.
struct Crowd {
    callers: Vec<Caller>,
    request: Vec<u8>,
    /// Of those who gave up: what they had asked, and been answered.
    gone_asked: u64,
    gone_answered: u64,
    gone: u64,
}

/// The scene.
pub(super) fn run(arguments: &OverloadArguments, verdicts: &mut Verdicts) -> io::Result<()> {
    let stage = Stage::start(arguments, &[])?;
    let mut crowd = Crowd::come(&stage)?;
    crowd.steady(REPLIES / 4)?;
    let steady = crowd.measured(&stage, Crowd::steady)?;
    let memory = stage.memory()?;
    let mut rng = Rng::new(arguments.seed);
    let flooded = crowd.measured(&stage, |crowd, replies| crowd.flood(replies, &mut rng, verdicts))?;
    let stopped = crowd.while_stopped(&stage)?;
    let (holds, found) = (stopped.is_ok(), stopped.unwrap_or_else(|found| found));
    verdicts.judge("a store that stands still: what nobody takes any more stays with the clients", holds, &found);
    if !holds {
        // All that was taken would have to be answered first, which nothing bounds.
        return Ok(());
    }
    crowd.judge_end(&stage, verdicts)?;
    let bound = PROXY_BYTES_MAX + (CALLERS + GIVEN_UP * CALLERS / 2) as u64 * CALLER_BYTES_MAX;
    let (holds, found) = stage.memory()?.within(memory, (bound, STORE_BYTES_MAX));
    verdicts.judge("memory stays within what callers and lane may hold", holds, &found);
    let after = crowd.measured(&stage, Crowd::steady)?;
    println!("before    {steady}\nflooded   {flooded}\nafter     {after}");
    verdicts.judge_errors("the crowd", crowd::error_of(&crowd.callers));
    if arguments.measure {
        rates::flood([&steady, &flooded, &after], verdicts);
    }
    Ok(())
}

/// What answers cost, and how many there were in a second: information, and verdicts on a quiet machine only.
pub(super) struct Pace {
    pub(super) per_second: f64,
    /// Processor time of proxy and store for each.
    each_us: [f64; 2],
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [proxy_us, store_us] = self.each_us;
        write!(
            f,
            "{:.0} replies/s, each {proxy_us:.2} us of the proxy and {store_us:.2} us of the store",
            self.per_second
        )
    }
}

impl Crowd {
    fn come(stage: &Stage) -> io::Result<Crowd> {
        let mut request = Vec::new();
        encode(&[b"INCR".as_slice(), b"counter"], &mut request);
        let callers = stage.callers(0, CALLERS)?;
        callers.iter().try_for_each(Caller::narrow)?;
        Ok(Crowd { callers, request, gone_asked: 0, gone_answered: 0, gone: 0 })
    }

    /// What was answered so far, to whomever.
    fn answered(&self) -> u64 {
        self.gone_answered + self.callers.iter().map(|caller| caller.answered).sum::<u64>()
    }

    /// So many replies, by what they took.
    fn measured(&mut self, stage: &Stage, work: impl FnOnce(&mut Crowd, u64) -> io::Result<()>) -> io::Result<Pace> {
        let (begun, before_ns, answered) = (Instant::now(), stage.cpu_ns()?, self.answered());
        work(self, REPLIES)?;
        let (now_ns, count) = (stage.cpu_ns()?, (self.answered() - answered) as f64);
        let each_us = [0, 1].map(|of| (now_ns[of] - before_ns[of]) as f64 / count / 1e3);
        Ok(Pace { per_second: count / begun.elapsed().as_secs_f64(), each_us })
    }

    /// Everybody asks no faster than it is answered, until there are so many replies more, and hears all of them.
    fn steady(&mut self, replies: u64) -> io::Result<()> {
        let goal = self.answered() + replies;
        while self.answered() < goal {
            for caller in &mut self.callers {
                super::tenants::top_up(caller, &self.request, STEADY_DEPTH)?;
            }
            self.hear()?;
        }
        crowd::hear_all(&mut self.callers, |_| {})
    }

    /// Takes what is there, once something is.
    fn hear(&mut self) -> io::Result<()> {
        crowd::wait(&self.callers)?;
        for caller in &mut self.callers {
            while caller.pull(64 << 10, |_| {})? {}
            caller.push()?;
        }
        Ok(())
    }

    /// Five requests are offered for each reply, each to a connection that is drawn, or to one of three others. Nothing is heard while they
    /// are offered, so each round is five times the one before where all of that was taken: until one is more than there is room for.
    fn flood(&mut self, replies: u64, rng: &mut Rng, verdicts: &mut Verdicts) -> io::Result<()> {
        let (begun, mut offered, mut refused) = (self.answered(), 0, 0);
        while self.answered() < begun + replies || (refused == 0 && offered < OFFERED_MAX) {
            let due = TIMES * (self.answered() - begun + STEADY_DEPTH);
            while offered < due {
                offered += AT_ONCE;
                refused += if self.offer(rng)? { 0 } else { AT_ONCE };
            }
            self.hear()?;
        }
        let answered = self.answered() - begun;
        let found = format!("{offered} offered, {answered} answered, {refused} refused at the door");
        // What is under way is little beside what was offered: without an overload nothing is refused, and nothing was shown.
        verdicts.judge("five times too much: what cannot be taken is refused before it is sent", refused > 0, &found);
        let at_most = offered - refused;
        let kept = format!("{answered} of {at_most} that were taken, the others under way");
        verdicts.judge("five times too much: answers go on", answered >= replies, &kept);
        Ok(())
    }

    /// Whether some connection takes more requests.
    fn offer(&mut self, rng: &mut Rng) -> io::Result<bool> {
        for _ in 0..=RETRIES {
            let caller = &mut self.callers[rng.below(CALLERS as u64) as usize];
            if caller.unsent_bytes() == 0 {
                caller.ask(&self.request, AT_ONCE);
                caller.push()?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Everybody offers until nobody takes any more; half of them give up and others come in their place, and so on.
    fn while_stopped(&mut self, stage: &Stage) -> io::Result<Result<String, String>> {
        crowd::hear_all(&mut self.callers, |_| {})?;
        stage.store.signal(Signal::STOP)?;
        let mut outcome = self.until_full(stage);
        for _ in 0..GIVEN_UP {
            if !matches!(outcome, Ok(Ok(_))) {
                break;
            }
            outcome = self.give_up(stage).and_then(|()| self.until_full(stage));
        }
        stage.store.signal(Signal::CONT)?;
        outcome
    }

    /// Until each has something that its socket does not take, and the proxy says that each waits.
    fn until_full(&mut self, stage: &Stage) -> io::Result<Result<String, String>> {
        let mut looks = 0;
        loop {
            let mut moved = 0;
            for caller in &mut self.callers {
                if caller.unsent_bytes() == 0 {
                    caller.ask(&self.request, PIECE);
                }
                moved += caller.push()?;
            }
            let most = self.callers.iter().map(|caller| caller.owed()).max().unwrap_or(0);
            if most as usize * self.request.len() > OFFERED_BYTES_MAX {
                return Ok(Err(format!("a connection was taken {OFFERED_BYTES_MAX} bytes, and more would be")));
            }
            // What a socket takes no more now it takes when the other end has read. Each look passes through the proxy's core, which
            // reads what has come before it answers.
            let all_wait =
                || Ok::<bool, io::Error>(stage.metric("zerohop_proxy_class_callers_waiting")? >= CALLERS as f64);
            looks = if moved == 0 && all_wait()? { looks + 1 } else { 0 };
            if looks == LOOKS_STILL {
                let taken: u64 = self.callers.iter().map(Caller::owed).sum();
                return Ok(Ok(format!(
                    "{taken} requests of {CALLERS} connections are under way, {} gave up",
                    self.gone
                )));
            }
        }
    }

    fn give_up(&mut self, stage: &Stage) -> io::Result<()> {
        for caller in self.callers.iter_mut().take(CALLERS / 2) {
            self.gone += 1;
            self.gone_asked += caller.asked;
            self.gone_answered += caller.answered;
            *caller = stage.caller(0)?;
            caller.narrow()?;
        }
        Ok(())
    }

    /// The load is over: who stayed is answered everything, nothing is done twice, and nothing is left.
    fn judge_end(&mut self, stage: &Stage, verdicts: &mut Verdicts) -> io::Result<()> {
        crowd::hear_all(&mut self.callers, |_| {})?;
        verdicts.judge("the load is over: who stayed is answered everything", true, &format!("{}", self.answered()));
        await_nothing_left(stage)?;
        verdicts.judge("the load is over: nothing is left in the proxy", true, "nobody waits, nothing is owed");
        let told = stage.direct()?.call_line("GET counter")?;
        let text = String::from_utf8_lossy(&told);
        let done: u64 = text.split("\r\n").nth(1).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let (answered, unheard) = (self.answered(), self.gone_asked - self.gone_answered);
        let found = format!("{done} done, {answered} answered, {unheard} of those who gave up");
        let is_right = done >= answered && done <= answered + unheard;
        verdicts.judge("each request was done once, those of who gave up at most once", is_right, &found);
        Ok(())
    }
}

/// Asks the proxy until it holds nothing for anybody: who gave up is forgotten a little later.
///
/// # Errors
/// When what it says has not changed for so many looks that somebody is forgotten.
fn await_nothing_left(stage: &Stage) -> io::Result<()> {
    let (mut last, mut looks) = (f64::NAN, 0);
    loop {
        let left = stage.left()?;
        if left == 0.0 {
            return Ok(());
        }
        looks = if left == last { looks + 1 } else { 0 };
        last = left;
        if looks > LOOKS_MAX {
            return Err(io::Error::other(format!("the load is over, and {left} requests and callers are left")));
        }
        // Each look passes through all cores of the proxy, so it is one behind what they do.
        if !contains(&stage.direct()?.call_line("PING")?, b"PONG") {
            return Err(io::Error::other("the store does not answer"));
        }
    }
}

/// Looks at a proxy that does not get on.
const LOOKS_MAX: u32 = 500;
