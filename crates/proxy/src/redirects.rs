//! `MOVED` and `ASK`: the table is corrected, and the request sent where the error says, if that is a member.
//!
//! ```text
//!   error ─► member? ── yes ─► the lane of the same group there ─► reply
//!              │ no
//!              └─► held, until a fresh table says whether it is ─► there, or an error
//! ```

use crate::label;
use crate::machine::ProxyMachine;
use crate::seat::{Hurry, Owed, OwedTo, Whose};
use base::ConnectionId;
use base::limits::{REDIRECTS_HELD_MAX, REDIRECTS_MAX};
use base::street::{Effect, Now};
use client::Qos;
use client::cluster::{NodeNumber, Redirect};
use wire::reply_parse::{Value, parse_reply};
use wire::request::encode;

/// A reply that sends its request elsewhere.
pub(crate) struct Redirected {
    pub owed: Owed,
    /// The request's bytes; unknown if the street has not given them back yet.
    pub request: Option<Vec<u8>>,
    /// The error as it came.
    pub error: Vec<u8>,
    /// Who said it, and whose seat it was.
    pub node: NodeNumber,
    pub seat: usize,
    pub whose: Whose,
}

/// Whether a reply of a cluster's node sends its request elsewhere.
#[inline]
pub(crate) fn sends_on(reply: &[u8]) -> bool {
    reply[0] == b'-' && (reply.starts_with(b"-MOVED ") || reply.starts_with(b"-ASK "))
}

/// Said where the proxy cannot send a request on for its caller; clients of clusters know it.
const TRY_AGAIN: &[u8] = b"-TRYAGAIN the slot went to another node while the request was on its way; ask again\r\n";

/// Said to a transaction whose keys are of several nodes.
const ELSEWHERE: &[u8] =
    b"-CROSSSLOT Keys in a transaction are of one slot: this one is on another node than those before\r\n";

impl ProxyMachine {
    /// Requests that were sent on go to whom they were sent.
    pub(crate) fn follow(&mut self, now: Now, effects: &mut Vec<Effect>) {
        for redirected in std::mem::take(&mut self.desk.redirected) {
            self.seats.counts_of(redirected.node).redirects += 1;
            self.follow_one(now, redirected, effects);
        }
    }

    pub(crate) fn follow_one(&mut self, now: Now, mut redirected: Redirected, effects: &mut Vec<Effect>) {
        let host = self.routes.table.host(redirected.node);
        let Some(redirect) = Redirect::of(&redirected.error[1..], host) else {
            return self.desk.deliver(Some(now.monotonic_us), redirected.owed, &redirected.error);
        };
        redirected.owed.redirects += 1;
        if redirected.owed.redirects > REDIRECTS_MAX {
            let error = format!("-ERR sent on {REDIRECTS_MAX} times; the nodes disagree about who has the key\r\n");
            return self.desk.deliver(Some(now.monotonic_us), redirected.owed, error.as_bytes());
        }
        match self.routes.table.member(&redirect.place) {
            None => self.hold(now, redirected),
            Some(node) => {
                let is_news = !redirect.is_ask && self.routes.table.moved(redirect.slot, node);
                if is_news {
                    self.want_table(redirected.whose, redirected.node);
                }
                if redirected.owed.is_bound {
                    // Inside MULTI the node gives the transaction up by itself.
                    let reply = if is_news || redirect.is_ask { TRY_AGAIN } else { ELSEWHERE };
                    return self.desk.deliver(Some(now.monotonic_us), redirected.owed, reply);
                }
                self.send_on(now, redirected, (node, redirect.is_ask), effects);
            }
        }
    }

    /// Nobody knows that place: a fresh table may.
    fn hold(&mut self, now: Now, redirected: Redirected) {
        if self.held.len() >= REDIRECTS_HELD_MAX {
            return self.desk.deliver(Some(now.monotonic_us), redirected.owed, TRY_AGAIN);
        }
        self.want_table(redirected.whose, redirected.node);
        self.held.push(redirected);
    }

    /// The table is to be asked for, at this node first.
    pub(crate) fn want_table(&mut self, whose: Whose, node: NodeNumber) {
        let group = match whose {
            Whose::Shared(group) => group,
            Whose::Own(_) | Whose::Idle | Whose::Aside => {
                let nobody = self.nobody();
                let first = self.seats.groups.numbers().next();
                first.unwrap_or_else(|| self.seats.group(&nobody, Hurry::Relaxed))
            }
        };
        self.routes.want(group, node);
    }

    fn send_on(
        &mut self,
        now: Now,
        redirected: Redirected,
        (node, is_ask): (NodeNumber, bool),
        effects: &mut Vec<Effect>,
    ) {
        let Redirected { owed, request: Some(request), .. } = redirected else {
            return self.desk.deliver(Some(now.monotonic_us), redirected.owed, TRY_AGAIN);
        };
        let number = match (redirected.whose, owed.to) {
            (Whose::Shared(group), _) => {
                Some(self.seats.shared(now.monotonic_us, group, self.routes.node(node), !self.routes.is_known))
            }
            (Whose::Own(_), OwedTo::Caller { caller, .. }) => {
                self.own_elsewhere(now, caller, (redirected.seat, node), effects)
            }
            _ => None,
        };
        let Some(number) = number else {
            return self.desk.deliver(Some(now.monotonic_us), owed, TRY_AGAIN);
        };
        self.push_on(now, (number, is_ask), owed, &request);
    }

    /// A request that was sent on, behind `ASKING` if it was to ask: both are in one write, so nothing comes between.
    fn push_on(&mut self, now: Now, (number, is_ask): (usize, bool), mut owed: Owed, request: &[u8]) {
        owed.is_asking = is_ask;
        let lane = &mut self.seats.get(number).lane;
        if lane.is_down(now.monotonic_us) {
            let error = self.down_error(number);
            return self.desk.deliver(Some(now.monotonic_us), owed, &error);
        }
        let caller = owed.caller_number();
        if is_ask {
            let mut asking = Vec::new();
            encode([b"ASKING".as_slice()], &mut asking);
            lane.push_again(now.monotonic_us, caller, Qos::Batch, Owed::NOBODY, &asking);
        }
        lane.push_again(now.monotonic_us, caller, Qos::Batch, owed, request);
        self.seats.touch(number);
    }

    /// The caller's own connection is one to another node from now on, unless it holds something where it is.
    fn own_elsewhere(
        &mut self,
        now: Now,
        connection: ConnectionId,
        (seat, node): (usize, NodeNumber),
        effects: &mut Vec<Effect>,
    ) -> Option<usize> {
        let is_last = self.seats.holds(seat) && self.seats.get(seat).lane.owed() == 0;
        let caller = self.desk.caller(connection)?;
        if !is_last || caller.is_held() || caller.own != Some(seat) {
            return None;
        }
        let (identity, label) = (caller.identity.clone(), label::of_caller(caller));
        let own = self.seats.own(now.monotonic_us, self.routes.node(node), &identity, (connection, &label));
        self.desk.caller(connection).expect("it was just there").own = Some(own);
        self.give_up_own(now, seat, effects);
        Some(own)
    }

    /// The question for the table is put, and its answers read.
    pub(crate) fn learn(&mut self, now: Now, effects: &mut Vec<Effect>) {
        for reply in std::mem::take(&mut self.desk.table_replies) {
            self.table_said(now, reply.as_deref(), effects);
        }
        for reply in std::mem::take(&mut self.desk.report_replies) {
            self.report_answered(now, &reply, effects);
        }
        self.look_for_silence(now, effects);
        while let Some((group, node)) = self.routes.ask(now.monotonic_us) {
            let number = self.seats.shared(now.monotonic_us, group, self.routes.node(node), false);
            let lane = &mut self.seats.get(number).lane;
            if lane.is_down(now.monotonic_us) {
                self.routes.missed(node);
                continue;
            }
            self.say(now, number, OwedTo::Table, &[b"CLUSTER", b"NODES"]);
        }
        if self.routes.rests() {
            self.let_held_go(now, effects);
        }
    }

    fn table_said(&mut self, now: Now, reply: Option<&[u8]>, effects: &mut Vec<Effect>) {
        let Some(node) = self.routes.asked() else { return };
        let said = reply.and_then(|reply| parse_reply(reply).ok()?).map(|(value, _)| value);
        let is_learnt = match said {
            Some(Value::Bulk(text) | Value::Verbatim(_, text)) => {
                let host = self.routes.table.host(node).to_owned();
                self.routes.table.learn(&String::from_utf8_lossy(&text), &host).is_ok()
            }
            _ => false,
        };
        match is_learnt {
            true => {
                self.routes.answered();
                self.leave_silent(now, effects);
            }
            false => self.routes.missed(node),
        }
    }

    /// Those that waited for a table go where they were sent, if that is a member now.
    fn let_held_go(&mut self, now: Now, effects: &mut Vec<Effect>) {
        for held in std::mem::take(&mut self.held) {
            let redirect = Redirect::of(&held.error[1..], self.routes.table.host(held.node));
            let place = redirect.as_ref().map(|redirect| &redirect.place);
            match place.and_then(|place| self.routes.table.member(place)) {
                Some(_) => self.follow_one(now, held, effects),
                None => {
                    let named = place.map_or_else(String::new, ToString::to_string);
                    let error = format!(
                        "-ERR a node sent this on to {named}, which is no member of its cluster; nothing was sent there\r\n"
                    );
                    self.desk.deliver(Some(now.monotonic_us), held.owed, error.as_bytes());
                }
            }
        }
    }
}
