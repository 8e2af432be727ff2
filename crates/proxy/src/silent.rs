//! Nodes of a cluster that say nothing: another one is asked who has their slots, and what is theirs no more leaves them.
//!
//! ```text
//!   half a second without a word ─► CLUSTER NODES at another member ─► another node has the slot?
//!        waits, never left ────────► there
//!        left, only reads ─────────► there, within the retry budget
//!        left, writes ─────────────► nobody knows: its caller is closed, as when the connection is lost
//!   three times as long           ─► it is reported (`report`)
//! ```

use crate::machine::ProxyMachine;
use crate::redirects::Redirected;
use crate::seat::{Owed, OwedTo, Whose};
use base::Slot;
use base::street::{Effect, Now};
use client::CommandTable;
use client::cluster::{NodeNumber, RoutingTable, slot_of};
use wire::{Arguments, ParseLimits, Parsed, parse};

/// By what it is decided which requests leave a node.
struct Leaving<'a> {
    table: &'a RoutingTable,
    commands: &'a CommandTable,
    node: NodeNumber,
}

impl Leaving<'_> {
    /// The slot of a request that another node has by now.
    fn slot(&self, owed: &Owed, request: &[u8]) -> Option<Slot> {
        let is_of_table = !owed.is_asking && !owed.is_bound;
        let is_somebodys = matches!(owed.to, OwedTo::Caller { .. } | OwedTo::Part { .. } | OwedTo::Collapsed { .. });
        if !is_of_table || !is_somebodys {
            return None;
        }
        let mut spans = Vec::new();
        let Parsed::Request { .. } = parse(request, 0, &mut spans, &ParseLimits::AUTHENTICATED) else { return None };
        let arguments = Arguments::new(request, &spans);
        let known = self.commands.look_up(&arguments[0], arguments.get(1))?;
        let slot = slot_of(known.key(arguments)?);
        let holder = self.table.holder(slot)?;
        (holder != self.node).then_some(slot)
    }

    /// What the node would say of it if it spoke.
    fn moved(&self, owed: &Owed, request: &[u8]) -> Vec<u8> {
        let slot = self.slot(owed, request).expect("who leaves has a slot");
        let holder = self.table.holder(slot).expect("a slot that is left has a holder");
        format!("-MOVED {} {}\r\n", slot.number(), self.table.address(holder)).into_bytes()
    }
}

impl ProxyMachine {
    /// Looks whether nodes owe replies for too long, if it is time to.
    pub(crate) fn look_for_silence(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if !self.seats.looks_for_silence(now.monotonic_us) {
            return;
        }
        let silent = self.seats.silent(now.monotonic_us);
        silent.iter().for_each(|&number| self.suspect(now, number, effects));
        if let Some(&number) = silent.first() {
            let seat = self.seats.get(number);
            if let Whose::Shared(group) = seat.whose {
                let node = seat.node;
                self.routes.doubt(group, node);
            }
        }
        self.leave_silent(now, effects);
    }

    /// What waits before silent nodes for slots that are another one's by the table goes there.
    pub(crate) fn leave_silent(&mut self, now: Now, effects: &mut Vec<Effect>) {
        for number in self.seats.silent(now.monotonic_us) {
            self.desert(now, number, effects);
        }
    }

    fn desert(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        let seat = self.seats.get(number);
        let (node, whose) = (seat.node, seat.whose);
        let leaving = Leaving { table: &self.routes.table, commands: &self.table, node };
        let leaves = |owed: &Owed, request: &[u8]| leaving.slot(owed, request).is_some();
        let out = seat.lane.give_up_some_out(Owed::NOBODY, leaves);
        let waiting = seat.lane.take_some_waiting(now.monotonic_us, leaves, Owed::caller_number);
        if out.is_empty() && waiting.is_empty() {
            return;
        }
        let is_deserted = seat.lane.items().all(|owed| matches!(owed.to, OwedTo::Nobody | OwedTo::Label));
        let sent_on = |(owed, request): (Owed, Vec<u8>)| {
            let error = leaving.moved(&owed, &request);
            Redirected { owed, request: Some(request), error, node, seat: number, whose }
        };
        let (mut sent_again, mut unknown) = (Vec::new(), Vec::new());
        for (owed, request) in out {
            match owed.is_read && self.retries.spend() {
                true => sent_again.push(sent_on((owed, request))),
                false => unknown.push(owed),
            }
        }
        let retries = sent_again.len() as u64;
        // In the order in which they were asked.
        sent_again.extend(waiting.into_iter().map(sent_on));
        self.seats.counts_of(node).retries += retries;
        unknown.into_iter().for_each(|owed| self.fate_unknown(now, number, owed, effects));
        sent_again.into_iter().for_each(|redirected| self.follow_one(now, redirected, effects));
        if is_deserted {
            self.close_seat(now, number, effects);
        }
        self.let_go_on(number);
    }
}
