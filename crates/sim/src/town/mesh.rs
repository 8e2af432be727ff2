//! Wires at work: dialing, bytes that arrive or wait, connections that end.

use base::Door;

use super::network::End;
use super::oracle::{PORT, host_of};
use super::{Item, Town};
use crate::disk::CrashKind;
use crate::street::Dial;

/// Where the link of a node's first core is; those of the others come behind.
const LINK_PORT: u16 = PORT + 10_001;
/// Before somebody who could not be reached is tried again, as TCP does.
const RESEND_US: u64 = 200_000;
/// How often that is.
const RESENDS: u32 = 4;
/// How long it takes at most until who had a connection with a node that lost its power hears of it.
const SILENCE_US_MAX: u64 = 3_000_000;

impl Town {
    pub(super) fn dial(&mut self, node: usize, dial: Dial) {
        let boot = self.members[node].street.boot_number();
        let delay_us = self.way_us();
        self.agenda.after(delay_us, Item::Dialing { node, boot, dial, tries: 0 });
    }

    pub(super) fn dialing(&mut self, (node, boot): (usize, u32), dial: Dial, tries: u32) {
        if !self.is_that(node, boot) {
            return;
        }
        let Some((target, core)) = self.called(&dial.address) else {
            return self.violate(format!("{} was dialed, which nobody has", dial.address));
        };
        let is_cut = self.network.is_cut(node, target) || self.network.is_cut(target, node);
        if is_cut && tries < RESENDS {
            return self.agenda.after(RESEND_US, Item::Dialing { node, boot, dial, tries: tries + 1 });
        }
        // A node that has fewer cores since its last start listens on fewer ports.
        if is_cut || self.members[target].street.machine(core).is_none() {
            return self.street(node).dial_failed(dial.core, dial.token);
        }
        let there = self.street(target).connect(core, Door::Node, 1);
        let here = self.street(node).dialed(dial.core, dial.token);
        let end = |node: usize, socket, boot| End { node, socket, boot, is_over: false };
        let target_boot = self.members[target].street.boot_number();
        let wire = self.network.add([end(node, here, boot), end(target, there, target_boot)]);
        self.met.wires += 1;
        self.note("wire", &[wire as u64, node as u64, target as u64]);
    }

    /// The node and the core whose link has this address.
    fn called(&self, address: &str) -> Option<(usize, u16)> {
        let (host, port) = address.split_once(':')?;
        let node = (0..self.members.len()).find(|number| host_of(*number) == host)?;
        let core = port.parse::<u16>().ok()?.checked_sub(LINK_PORT)?;
        (core < self.draw.cores_max).then_some((node, core))
    }

    fn is_that(&self, node: usize, boot: u32) -> bool {
        let street = &self.members[node].street;
        street.is_up() && street.boot_number() == boot
    }

    /// The street of an end hands over what its machine sent.
    pub(super) fn carry(&mut self, (wire, end): (usize, usize), bytes: Vec<u8>) {
        let there = &mut self.network.wires[wire];
        if !there.ends[end].is_over {
            there.flows[end].segments.push_back(bytes);
            self.plan_flow(wire, end);
        }
    }

    /// Nothing comes from that end any more.
    pub(super) fn end_flow(&mut self, wire: usize, end: usize) {
        let there = &mut self.network.wires[wire];
        if !std::mem::replace(&mut there.ends[end].is_over, true) {
            there.flows[end].ends = true;
            self.plan_flow(wire, end);
        }
    }

    pub(super) fn plan_flow(&mut self, wire: usize, from: usize) {
        if self.network.is_free(wire, from) && !self.network.wires[wire].flows[from].is_planned {
            self.network.wires[wire].flows[from].is_planned = true;
            let delay_us = self.way_us();
            self.agenda.after(delay_us, Item::Flow { wire, from });
        }
    }

    /// Ways are free again: what waited arrives.
    pub(super) fn plan_waiting(&mut self) {
        self.network.waiting().into_iter().for_each(|(wire, from)| self.plan_flow(wire, from));
    }

    /// What is on its way arrives: a segment, or the end.
    pub(super) fn arrive(&mut self, wire: usize, from: usize) {
        let is_free = self.network.is_free(wire, from);
        let there = &mut self.network.wires[wire];
        there.flows[from].is_planned = false;
        let target = there.ends[1 - from];
        if !is_free {
            return;
        }
        let Some(bytes) = there.flows[from].segments.pop_front() else {
            if there.flows[from].ends {
                self.break_end(wire, 1 - from);
            }
            return;
        };
        if !self.is_that(target.node, target.boot) {
            // Whoever is there now knows nothing of it, and says so.
            if self.members[target.node].street.is_up() {
                self.network.wires[wire].flows[from].segments.clear();
                self.network.wires[wire].ends[1 - from].is_over = true;
                self.network.wires[wire].flows[1 - from].ends = true;
                self.plan_flow(wire, 1 - from);
            }
            return;
        }
        if !target.is_over {
            self.street(target.node).write(target.socket, &bytes);
        }
        let flow = &self.network.wires[wire].flows[from];
        if flow.ends || !flow.segments.is_empty() {
            self.plan_flow(wire, from);
        }
    }

    /// The connection is gone for the machine at that end, or says no more.
    pub(super) fn break_end(&mut self, wire: usize, end: usize) {
        let End { node, socket, boot, is_over } = self.network.wires[wire].ends[end];
        if is_over || !self.is_that(node, boot) {
            return;
        }
        let flow = &self.network.wires[wire].flows[1 - end];
        if flow.segments.is_empty() && flow.ends && self.rng.chance(1, 2) {
            // Its answer, that it closes as well, finds nobody.
            return self.street(node).end_of_peer(socket);
        }
        self.network.wires[wire].ends[end].is_over = true;
        self.street(node).reset(socket);
    }

    /// A node died. What it had handed over still arrives if only the process is gone; if the machine is, nobody hears of it for a
    /// while.
    pub(super) fn lose_wires(&mut self, node: usize, kind: CrashKind) {
        if kind == CrashKind::Kill {
            return;
        }
        for wire in 0..self.network.wires.len() {
            for end in 0..2 {
                let there = &mut self.network.wires[wire];
                if there.ends[end].node != node || there.ends[end].is_over {
                    continue;
                }
                there.ends[end].is_over = true;
                there.flows[end].segments.clear();
                let silent_us = 1 + self.rng.below(SILENCE_US_MAX);
                self.agenda.after(silent_us, Item::Break { wire, end: 1 - end });
            }
        }
    }
}
