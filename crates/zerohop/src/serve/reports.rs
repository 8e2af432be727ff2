//! Silent nodes are reported to another one, if that is of a Zerohop, on a lane of its own: the answer may take seconds.

use super::requests::Answer;
use super::upstream::{Line, Seat, Upstream};
use crate::client::Reply;
use client::Qos;
use client::cluster::{NodeNumber, QUESTION, Report};
use client::desk::Ask;
use wire::request::encode;

/// How long an answer is waited for, microseconds.
const REPORTED_US_MAX: u64 = 10_000_000;

impl Upstream {
    /// Asks whom it goes to whether he is one who can be told.
    pub fn begin_report(&mut self, now_us: u64, report: Report) {
        let to = report.to;
        self.reports.push(report);
        self.say_aside(now_us, to, Seat::Suspicion, QUESTION);
    }

    /// Somebody said whether he can be told.
    pub fn may_report(&mut self, now_us: u64, to: NodeNumber, answer: &Answer) {
        let is_zerohop =
            matches!(answer, Ok(Reply::Array(found)) if matches!(found[..], [Reply::Array(_) | Reply::Map(_)]));
        let Some(place) = self.reports.iter().position(|report| report.to == to) else { return };
        let report = self.reports.remove(place);
        if is_zerohop {
            self.say_aside(now_us, to, Seat::Nobody, report.words());
        }
    }

    fn say_aside(&mut self, now_us: u64, to: NodeNumber, seat: Seat, words: [&str; 3]) {
        let mut request = Vec::new();
        encode(words.map(str::as_bytes), &mut request);
        let (qos, deadline_us) = (Qos::Single, now_us + REPORTED_US_MAX);
        let (is_read, is_asking, slot) = (false, false, None);
        let ask = Ask { caller: 0, qos, is_read, deadline_us, is_asking, slot, request: &request };
        self.put(now_us, (to, Line::Aside), ask, seat);
    }
}
