//! A node of a Zerohop that says nothing for long is reported to another one, which has it looked at (`client::cluster::Suspicion`).
//!
//! ```text
//!   silent for 1.5 s, and keeps its slots ─► another member, on a connection of its own: COMMAND INFO ZH.CLUSTER
//!        it is no Zerohop, or cannot be reached ─► closed          it is one ─► ZH.CLUSTER SUSPECT name ─► answered ─► closed
//! ```
//!
//! Of its own, because the answer may take seconds; it logs in as those who wait before the silent node. One at a time.

use crate::machine::ProxyMachine;
use crate::seat::{OwedTo, Whose};
use base::street::{Effect, Now};
use client::cluster::{QUESTION, Report, Suspicion};
use wire::reply_parse::{Value, parse_reply};

/// How long an answer is waited for before somebody else may be reported, microseconds.
const REPORTED_US_MAX: u64 = 10_000_000;

/// See the module.
#[derive(Default)]
pub(crate) struct Reports {
    suspicion: Suspicion,
    under_way: Option<UnderWay>,
}

/// A report that somebody is to hear.
struct UnderWay {
    report: Report,
    seat: usize,
    /// It is known that it goes to a Zerohop, and it has left.
    is_said: bool,
    until_us: u64,
}

impl ProxyMachine {
    /// Has the node of a silent seat reported, if it is time to.
    pub(crate) fn suspect(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        let now_us = now.monotonic_us;
        match &self.reports.under_way {
            Some(under_way) if under_way.until_us > now_us => return,
            Some(_) => self.end_report(now, effects),
            None => {}
        }
        let seat = self.seats.get(number);
        let (node, silence, identity) = (seat.node, *seat.lane.silence(), seat.identity.clone());
        let Some(report) = self.reports.suspicion.report(now_us, node, &silence, &self.routes.table) else { return };
        let seat = self.seats.aside(now_us, self.routes.node(report.to), &identity);
        self.say(now, seat, OwedTo::Report, &QUESTION.map(str::as_bytes));
        self.reports.under_way = Some(UnderWay { report, seat, is_said: false, until_us: now_us + REPORTED_US_MAX });
    }

    /// Whom it goes to has said something.
    pub(crate) fn report_answered(&mut self, now: Now, reply: &[u8], effects: &mut Vec<Effect>) {
        let Some(under_way) = &mut self.reports.under_way else { return };
        if under_way.is_said || !is_zerohop(reply) {
            return self.end_report(now, effects);
        }
        under_way.is_said = true;
        let (seat, report) = (under_way.seat, under_way.report.clone());
        self.say(now, seat, OwedTo::Report, &report.words().map(str::as_bytes));
    }

    /// Its connection is gone.
    pub(crate) fn report_lost(&mut self, number: usize) {
        self.reports.under_way = None;
        drop(self.seats.remove(number));
    }

    fn end_report(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if let Some(under_way) = self.reports.under_way.take() {
            debug_assert_eq!(self.seats.get(under_way.seat).whose, Whose::Aside, "nobody else's");
            self.remove_seat(now, under_way.seat, effects);
        }
    }
}

/// Whether somebody knows the command, as no other store does.
fn is_zerohop(reply: &[u8]) -> bool {
    let found = parse_reply(reply).ok().flatten().map(|(value, _)| value);
    matches!(found, Some(Value::Array(known)) if matches!(known[..], [Value::Array(_) | Value::Map(_)]))
}
