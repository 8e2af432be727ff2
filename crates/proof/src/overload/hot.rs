//! AT-25, a hot key: nine of ten requests are of one key, more of them than a lane takes; those of other keys are answered in their
//! turn all the same.
//!
//! A cold request is answered before whatever comes after it: while it waits the hot ones are given no more than they had under way
//! when it was asked, and the turns that stand in a line.

use std::io;

use super::caller::Caller;
use super::stage::Stage;
use super::{OverloadArguments, Verdicts, crowd};
use crate::connection::encode;
use crate::reply::show;

/// Connections that ask for the hot key, requests of each under way, and the length of what they write.
const HOT_CALLERS: usize = 18;
const HOT_DEPTH: u64 = 256;
const HOT_BYTES: usize = 4 << 10;
/// What they hear in turns: they write it, and every fourth time ask how long it is, so that replies that change places are seen.
const HOT_REPLIES: [&[u8]; 4] = [b"+OK\r\n", b"+OK\r\n", b"+OK\r\n", b":4096\r\n"];
/// Bytes of replies that are heard at once: a third of what one has under way.
const PIECE_BYTES: usize = 512;
/// Connections with a key of their own, each with one request under way.
const COLD_CALLERS: usize = 2;
/// Requests of each of these that are counted.
const COLD_REQUESTS: usize = 120;

/// One that asks for a key of its own, and counts in it.
struct Cold {
    caller: Caller,
    key: String,
    asked_at: Option<u64>,
    waits: Vec<u64>,
    wrong: Option<String>,
}

impl Cold {
    fn ask(&mut self, hot: u64) -> io::Result<()> {
        if self.asked_at.is_none() && self.waits.len() < COLD_REQUESTS {
            let mut request = Vec::new();
            encode(&[b"INCR".as_slice(), self.key.as_bytes()], &mut request);
            self.caller.ask(&request, 1);
            self.caller.push()?;
            self.asked_at = Some(hot);
        }
        Ok(())
    }

    fn hear(&mut self, hot: u64) -> io::Result<()> {
        let Some(asked_at) = self.asked_at else { return Ok(()) };
        let expected = format!(":{}\r\n", self.waits.len() + 1);
        let wrong = &mut self.wrong;
        self.caller.pull(4 << 10, |reply| {
            if reply != expected.as_bytes() {
                wrong.get_or_insert_with(|| show(reply));
            }
        })?;
        if self.caller.owed() == 0 {
            self.waits.push(hot - asked_at);
            self.asked_at = None;
        }
        Ok(())
    }
}

/// The hot ones have their turns one after the other: whoever is passed by the others falls behind.
fn judge_turns(hot: &[Caller], verdicts: &mut Verdicts) {
    let answered = || hot.iter().map(|caller| caller.answered);
    let (least, most) = (answered().min().unwrap_or(0), answered().max().unwrap_or(0));
    let mean = answered().sum::<u64>() / HOT_CALLERS as u64;
    let found = format!("{least} to {most}, {mean} on average");
    verdicts.judge("those who ask for a hot key have their turns: each half of the average", 2 * least >= mean, &found);
}

/// All that a caller of the hot key is told; how many were told by then. In pieces: what came to others meanwhile was not passed by what
/// this one hears later.
fn hear_hot(caller: &mut Caller, cold: &mut [Cold], mut told: u64, wrong: &mut Option<String>) -> io::Result<u64> {
    loop {
        for one in cold.iter_mut() {
            one.hear(told)?;
        }
        let before = caller.answered;
        let mut number = before as usize;
        let more = caller.pull(PIECE_BYTES, |reply| {
            if reply != HOT_REPLIES[number % HOT_REPLIES.len()] {
                wrong.get_or_insert_with(|| show(reply));
            }
            number += 1;
        })?;
        told += caller.answered - before;
        if !more {
            return Ok(told);
        }
    }
}

/// The scene.
pub(super) fn run(arguments: &OverloadArguments, verdicts: &mut Verdicts) -> io::Result<()> {
    let stage = Stage::start(arguments, &[])?;
    let mut hot = stage.callers(0, HOT_CALLERS)?;
    let mut cold = Vec::new();
    for (number, caller) in stage.callers(0, COLD_CALLERS)?.into_iter().enumerate() {
        cold.push(Cold { caller, key: format!("cold:{number}"), asked_at: None, waits: Vec::new(), wrong: None });
    }
    let mut requests: [Vec<u8>; HOT_REPLIES.len()] = Default::default();
    let [writes @ .., asks] = &mut requests;
    writes.iter_mut().for_each(|request| encode(&[b"SET".as_slice(), b"hot", &[b'h'; HOT_BYTES]], request));
    encode(&[b"STRLEN".as_slice(), b"hot"], asks);
    let (mut told, mut wrong) = (0, None);
    while !cold.iter().all(|one| one.waits.len() == COLD_REQUESTS) {
        for caller in &mut hot {
            let wanted =
                if 2 * caller.owed() <= HOT_DEPTH { (HOT_DEPTH - caller.owed()) / HOT_REPLIES.len() as u64 } else { 0 };
            for request in (0..wanted).flat_map(|_| &requests) {
                caller.ask(request, 1);
            }
            caller.push()?;
        }
        crowd::wait(hot.iter().chain(cold.iter().map(|one| &one.caller)))?;
        for one in &mut cold {
            one.hear(told)?;
        }
        for caller in &mut hot {
            told = hear_hot(caller, &mut cold, told, &mut wrong)?;
        }
        for one in &mut cold {
            one.ask(told)?;
        }
    }
    judge_turns(&hot, verdicts);
    crowd::hear_all(&mut hot, |_| {})?;
    let mut waits: Vec<u64> = cold.iter().flat_map(|one| one.waits.iter().copied()).collect();
    waits.sort_unstable();
    let under_way = HOT_CALLERS as u64 * HOT_DEPTH;
    let longest = waits.last().copied().unwrap_or(0);
    let found =
        format!("{longest} at most, {} at 50 %, of {under_way} under way, {told} in all", waits[waits.len() / 2]);
    verdicts.judge("beside a hot key: nobody passes a request of another key", longest <= under_way, &found);
    let found = wrong.as_deref().unwrap_or("all of them");
    verdicts.judge("a hot key: replies are those of their requests", wrong.is_none(), found);
    let wrong = cold.iter().find_map(|one| one.wrong.clone());
    let found = wrong.as_deref().unwrap_or("all of them");
    verdicts.judge("beside a hot key: other keys count as they were counted", wrong.is_none(), found);
    let shares = told as f64 / (told + waits.len() as u64) as f64;
    verdicts.judge("nine of ten requests were of the hot key", shares >= 0.9, &format!("{:.1} %", 100.0 * shares));
    verdicts.judge_errors("a hot key", crowd::error_of(hot.iter().chain(cold.iter().map(|one| &one.caller))));
    Ok(())
}
