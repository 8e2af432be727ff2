//! Cores at work: what an item of the agenda does inside the node, when a core ticks, and messages between cores.

use base::{CoreId, Event, Machine, TickInput};

use super::{Item, Street, Work};
use crate::node::Node;

impl<N: Node> Street<N> {
    pub(super) fn inside(&mut self, item: Item<<N::Machine as Machine>::Message>) {
        match item {
            Item::Tick { core, stamp } => self.tick(core, stamp),
            Item::ToServer(socket) => self.deliver_to_server(socket),
            Item::Hop { from, to, message } => {
                self.trace.note(self.agenda.now_us(), "hop", &[u64::from(from), u64::from(to)], &[]);
                self.cores[usize::from(to)].hops.push((CoreId(from), message));
                self.wake(to);
            }
            Item::Unblock(core) => {
                // A process that stands still asks for nothing more.
                let rest_us = self.paused_until_us.saturating_sub(self.agenda.now_us());
                if rest_us > 0 {
                    return self.after(rest_us, Item::Unblock(core));
                }
                self.cores[usize::from(core)].blocked = false;
                self.perform(core);
            }
            Item::Prepared { core, segment } => self.prepared(core, segment),
            Item::Extended { core, segment, bytes } => self.extended(core, segment, bytes),
            Item::RunsSynced { core, names, snapshots } => self.runs_synced(core, &names, snapshots),
            Item::RunDone { core, event } => self.tell(core, event),
            Item::NamedFile { core, effect } => self.named_file(core, effect),
            Item::Synced { core, ordinal, files } => self.synced(core, ordinal, files),
            Item::Timer(_) | Item::ToClient(_) => unreachable!("these outlive a node and are handled before"),
        }
    }

    pub(super) fn tick(&mut self, core: u16, stamp: u64) {
        let (now, now_us) = (self.now(), self.agenda.now_us());
        let place = &mut self.cores[usize::from(core)];
        if place.stamp != stamp || place.stopped {
            return;
        }
        place.tick_at = None;
        if self.paused_until_us > now_us {
            let until_us = self.paused_until_us;
            return self.tick_by(core, until_us);
        }
        if place.blocked {
            place.missed_tick = true;
            return;
        }
        let mut output = place.output.take().expect("ticks do not nest");
        (output.deadline_us, output.more, output.quiet_completions) = (None, false, false);
        let counts = [u64::from(core), place.events.len() as u64, place.received.len() as u64, place.hops.len() as u64];
        self.trace.note(self.agenda.now_us(), "tick", &counts, &place.received);
        let (events, hops) = (&mut place.events, &mut place.hops);
        place.machine.tick(TickInput { now, received: &place.received, events, hops }, &mut output);
        place.received.clear();
        place.events.clear();
        place.hops.clear();
        place.work.extend(output.effects.drain(..).map(Work::Effect));
        place.work.extend(output.hops.drain(..).map(|(to, message)| Work::Hop(to, message)));
        let (more, deadline_us) = (output.more, output.deadline_us);
        place.output = Some(output);
        self.perform(core);
        if !self.is_up() {
            return;
        }
        if more {
            self.wake(core);
        } else if let Some(deadline_us) = deadline_us {
            let late_us = self.rng.below(self.weather.tick_us_max + 1);
            self.tick_by(core, self.moment_of(deadline_us).saturating_add(late_us));
        }
    }

    /// Something happened to a core: it ticks soon.
    pub(crate) fn wake(&mut self, core: u16) {
        let delay_us = self.rng.below(self.weather.tick_us_max + 1);
        self.tick_by(core, self.agenda.now_us() + delay_us);
    }

    pub(super) fn tick_by(&mut self, core: u16, at_us: u64) {
        let boot = self.boot;
        let place = &mut self.cores[usize::from(core)];
        if place.tick_at.is_some_and(|planned| planned <= at_us) {
            return;
        }
        place.tick_at = Some(at_us);
        place.stamp += 1;
        let stamp = place.stamp;
        self.agenda.at(at_us, (boot, Item::Tick { core, stamp }));
    }

    pub(crate) fn tell(&mut self, core: u16, event: Event) {
        self.cores[usize::from(core)].events.push(event);
        self.wake(core);
    }

    pub(crate) fn send_hop(&mut self, from: u16, to: CoreId, message: <N::Machine as Machine>::Message) {
        if to.0 == self.core_count() {
            return self.for_resident.push((CoreId(from), message));
        }
        let delay_us = self.chance_us(self.weather.hop_us_max);
        let now_us = self.agenda.now_us();
        let last = &mut self.cores[usize::from(to.0)].hop_at[usize::from(from)];
        *last = (*last).max(now_us + delay_us);
        let at_us = *last;
        self.agenda.at(at_us, (self.boot, Item::Hop { from, to: to.0, message }));
    }
}
