//! What a store tells: answers go to their requests; `MOVED` and `ASK` are followed, to members only.
//!
//! ```text
//!   told ─► answer ─────────────────────────────► its request
//!     └──► MOVED, ASK ─► member? ── yes ─► asked there
//!                          │ no
//!                          └─► held, until a fresh table says whether it is ─► there, or an error
//! ```

use super::handler::Handler;
use super::machine::ServeMachine;
use super::requests::{Answer, AskNumber};
use super::upstream::{Seat, Told};
use crate::client::{Error, Reply};
use base::limits::{REDIRECTS_HELD_MAX, REDIRECTS_MAX};
use base::street::Effect;
use client::cluster::{NodeNumber, Redirect};
use std::time::Duration;

/// An ask that a node sent on to a place that nobody knows.
pub(super) struct SentOn {
    number: AskNumber,
    redirect: Redirect,
    /// Who said so.
    node: NodeNumber,
    /// When its time is over, microseconds.
    pub deadline_us: u64,
}

impl<H: Handler> ServeMachine<H> {
    /// Everything that the lanes told is put where it belongs. Nothing of the application runs.
    pub(super) fn take_told(&mut self, now_us: u64) {
        for told in std::mem::take(&mut self.upstream.told) {
            let Told { seat, answer, bytes, node } = told;
            if self.upstream.table.is_cluster() && means_lost(&answer) {
                self.upstream.learning.want(self.upstream.other_than(node));
            }
            match seat {
                Seat::Table => self.table_said(node, &answer),
                Seat::Suspicion => self.upstream.may_report(now_us, node, &answer),
                Seat::Nobody => {}
                Seat::Ask(number) => match (self.redirect(node, &answer), self.requests.asked(number)) {
                    (Some(redirect), Some(asked)) => {
                        let deadline_us = asked.deadline_us;
                        self.follow(now_us, SentOn { number, redirect, node, deadline_us });
                    }
                    _ => self.requests.settle(number, answer, bytes),
                },
            }
        }
    }

    fn redirect(&self, node: NodeNumber, answer: &Answer) -> Option<Redirect> {
        let Err(Error::Server(error)) = answer else { return None };
        Redirect::of(error.text().as_bytes(), self.upstream.table.host(node))
    }

    fn follow(&mut self, now_us: u64, sent_on: SentOn) {
        let Some(asked) = self.requests.asked(sent_on.number) else { return };
        let Some(node) = self.upstream.table.member(&sent_on.redirect.place) else {
            return self.hold(sent_on);
        };
        asked.redirects += 1;
        if asked.redirects > REDIRECTS_MAX {
            return self.astray(&sent_on, "it was sent on too often; the nodes disagree about who has the key");
        }
        if !sent_on.redirect.is_ask && self.upstream.table.moved(sent_on.redirect.slot, node) {
            self.upstream.learning.want(sent_on.node);
        }
        self.upstream.ask(now_us, sent_on.number, asked, Some((node, sent_on.redirect.is_ask)));
    }

    /// Nobody knows that place: a fresh table may.
    fn hold(&mut self, sent_on: SentOn) {
        if self.held.len() >= REDIRECTS_HELD_MAX {
            return self.astray(&sent_on, "too much waits to hear whether that is a node of the cluster");
        }
        self.upstream.learning.want(sent_on.node);
        self.held.push(sent_on);
    }

    fn astray(&mut self, sent_on: &SentOn, problem: &'static str) {
        let address = self.upstream.table.address(sent_on.node).to_owned();
        let place = sent_on.redirect.place.to_string();
        self.requests.settle(sent_on.number, Err(Error::SentAstray { address, place, problem }), 0);
    }

    fn table_said(&mut self, node: NodeNumber, answer: &Answer) {
        let host = self.upstream.table.host(node).to_owned();
        let is_learnt = match answer {
            Ok(Reply::BulkString(text) | Reply::VerbatimString(_, text)) => {
                self.upstream.table.learn(&String::from_utf8_lossy(text), &host).is_ok()
            }
            _ => false,
        };
        match is_learnt {
            true => self.upstream.learnt(),
            false => self.upstream.learning.missed(node, &self.upstream.table),
        }
    }

    /// The question for the table is put, and those that waited for its answer go where they were sent.
    pub(super) fn learn(&mut self, now_us: u64, effects: &mut Vec<Effect>) {
        for id in self.upstream.leave_silent(now_us) {
            self.give_up(id, effects);
        }
        if let Some(node) = self.upstream.learning.ask(now_us, &self.upstream.table) {
            self.upstream.ask_for_table(now_us, node);
        }
        let rests = self.upstream.learning.rests();
        for sent_on in std::mem::take(&mut self.held) {
            if sent_on.deadline_us <= now_us {
                let address = self.upstream.table.address(sent_on.node).to_owned();
                let late = Error::TimedOut { address, after: Duration::ZERO };
                self.requests.settle(sent_on.number, Err(late), 0);
                continue;
            }
            if !rests {
                self.held.push(sent_on);
                continue;
            }
            match self.upstream.table.member(&sent_on.redirect.place) {
                Some(_) => self.follow(now_us, sent_on),
                None => self.astray(&sent_on, "that is no node of its cluster, and nothing was sent there"),
            }
        }
    }
}

/// Whether an answer makes it likely that its node is gone.
fn means_lost(answer: &Answer) -> bool {
    matches!(
        answer,
        Err(Error::Unreachable { .. } | Error::Lost { .. } | Error::Unknown { .. } | Error::TimedOut { .. })
    )
}
