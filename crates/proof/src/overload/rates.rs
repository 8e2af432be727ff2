//! By the clock: what AT-15 and AT-16 ask of latencies and rates. For a quiet machine; no run of the gate comes here.

use std::io;
use std::time::{Duration, Instant};

use super::flood::Pace;
use super::stage::Stage;
use super::tenants::{self, Loud};
use super::{Verdicts, crowd};
use crate::connection::encode;

/// AT-15: a quiet tenant asks so often.
const EVERY: Duration = Duration::from_millis(5);
/// Requests by which its p99 is known.
const REQUESTS: usize = 1000;
/// AT-15.
const P99_MAX: Duration = Duration::from_millis(5);
const TIMES_ALONE_MAX: u32 = 2;
/// AT-16: of the answers before, with five times as many requests, and when that is over.
const GOODPUT_MIN: f64 = 0.8;
const RECOVERED_MIN: f64 = 0.95;

/// AT-15: p99 of a tenant alone, and beside each kind of aggressor.
pub(super) fn tenants(stage: &Stage, verdicts: &mut Verdicts) -> io::Result<()> {
    let alone = p99(stage, None)?;
    for loud in tenants::kinds() {
        let beside = p99(stage, Some(&loud))?;
        let found = format!("{beside:?}, {alone:?} alone");
        let holds = beside <= P99_MAX && beside <= TIMES_ALONE_MAX * alone;
        verdicts.judge(&format!("measured, beside {}: p99 of 5 ms and twice that of alone", loud.name), holds, &found);
    }
    Ok(())
}

fn p99(stage: &Stage, loud: Option<&Loud>) -> io::Result<Duration> {
    let mut others = stage.callers(1, if loud.is_some() { tenants::LOUD_CALLERS } else { 0 })?;
    let mut quiet = stage.caller(2)?;
    let mut request = Vec::new();
    encode(&[b"GET".as_slice(), b"quiet"], &mut request);
    let (mut latencies, mut asked, mut next) = (Vec::new(), None, Instant::now());
    while latencies.len() < REQUESTS {
        if asked.is_none() && next <= Instant::now() {
            quiet.ask(&request, 1);
            quiet.push()?;
            (asked, next) = (Some(Instant::now()), next + EVERY);
        }
        if let Some(loud) = loud {
            for caller in &mut others {
                tenants::top_up(caller, &loud.request, loud.depth)?;
                caller.pull(64 << 10, |_| {})?;
            }
        }
        quiet.pull(4 << 10, |_| {})?;
        if quiet.owed() == 0 {
            latencies.extend(asked.take().map(|asked| asked.elapsed()));
        }
    }
    crowd::hear_all(&mut others, |_| {})?;
    latencies.sort_unstable();
    Ok(latencies[latencies.len() * 99 / 100])
}

/// AT-16: what is answered in a second before there is too much, while there is, and afterwards.
pub(super) fn flood([before, flooded, after]: [&Pace; 3], verdicts: &mut Verdicts) {
    let part = |pace: &Pace| pace.per_second / before.per_second;
    let judge = |verdicts: &mut Verdicts, what: &str, pace: &Pace, bar: f64| {
        verdicts.judge(what, part(pace) >= bar, &format!("{:.0} %", 100.0 * part(pace)));
    };
    judge(verdicts, "measured: with five times too much there are 80 % of the answers", flooded, GOODPUT_MIN);
    judge(verdicts, "measured: afterwards there are 95 %", after, RECOVERED_MIN);
}
