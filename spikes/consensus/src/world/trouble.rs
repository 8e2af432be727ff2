//! What goes wrong, and the peace after it.

use std::collections::BTreeSet;

use super::{Item, Judged, PATIENCE_NS, Place, SECOND_NS, World};
use crate::node::Wish;

impl World {
    pub(super) fn on_trouble(&mut self) -> Judged {
        if self.peace {
            return Ok(());
        }
        let pause_ns = SECOND_NS / 20 + self.rng.below(SECOND_NS);
        self.agenda.after(pause_ns, 0, Item::Trouble);
        let node = 1 + self.rng.below(self.swarm.nodes);
        match self.rng.below(6) {
            0 if self.swarm.crashes => self.crash_some(node),
            1 if self.swarm.cuts => self.cut_some(node),
            2 => self.mend(),
            3 if self.swarm.pauses => self.pause(node),
            4 if self.swarm.changes => return self.change_voters(),
            5 if self.swarm.hand_overs => return self.ask_leaders(&Wish::HandOver(node)),
            _ => {}
        }
        Ok(())
    }

    /// One node, or it and others at the same moment: what they share is their power.
    fn crash_some(&mut self, id: u64) {
        self.crash(id);
        if self.rng.chance(1, 3) {
            let also: Vec<u64> = self.places.keys().copied().filter(|_| self.rng.chance(2, 3)).collect();
            also.into_iter().for_each(|id| self.crash(id));
        }
    }

    fn crash(&mut self, id: u64) {
        let now_ns = self.agenda.now_ns();
        let power = self.rng.chance(2, 3);
        let mut rng = self.rng.clone();
        let place = self.place(id);
        let Some(node) = place.node.take() else { return };
        let polls = node.polls().0;
        drop(node);
        place.life += 1;
        place.view = None;
        place.paused_until_ns = 0;
        let life = place.life;
        let torn = if power { place.disk.cut_power(&mut rng) } else { false };
        if !power {
            place.disk.kill();
        }
        self.rng = rng;
        self.coverage.polls += polls;
        self.coverage.power_cuts += u64::from(power);
        self.coverage.kills += u64::from(!power);
        self.coverage.torn += u64::from(torn);
        self.trace.note(now_ns, format_args!("{id} dies, power {power}, torn {torn}"));
        let down_ns = SECOND_NS / 100 + self.rng.below(3 * SECOND_NS);
        self.agenda.after(down_ns, self.rng.next_u64(), Item::Restart { node: id, life });
    }

    /// One way, one node in both ways, or one half from the other.
    fn cut_some(&mut self, id: u64) {
        let others: Vec<u64> = self.places.keys().copied().filter(|other| *other != id).collect();
        match self.rng.below(3) {
            0 => {
                let other = others[self.rng.below(others.len() as u64) as usize];
                self.cut.insert((id, other));
            }
            1 if self.rng.chance(1, 2) => self.cut.extend(others.iter().map(|other| (id, *other))),
            1 => self.cut.extend(others.iter().map(|other| (*other, id))),
            _ => {
                let half: BTreeSet<u64> = self.places.keys().copied().filter(|_| self.rng.chance(1, 2)).collect();
                let rest: Vec<u64> = self.places.keys().copied().filter(|id| !half.contains(id)).collect();
                self.cut.extend(half.iter().flat_map(|a| rest.iter().flat_map(|b| [(*a, *b), (*b, *a)])));
            }
        }
        self.coverage.cuts += 1;
        self.trace.note(self.agenda.now_ns(), format_args!("cut {:?}", self.cut));
    }

    fn mend(&mut self) {
        self.cut.clear();
        self.trace.note(self.agenda.now_ns(), format_args!("no way is cut"));
    }

    fn pause(&mut self, id: u64) {
        let now_ns = self.agenda.now_ns();
        let until_ns = now_ns + SECOND_NS / 10 + self.rng.below(3 * SECOND_NS);
        let place = self.place(id);
        if place.node.is_none() || place.paused_until_ns > now_ns {
            return;
        }
        place.paused_until_ns = until_ns;
        self.coverage.pauses += 1;
        self.trace.note(now_ns, format_args!("{id} stands still until {until_ns}"));
    }

    /// Three or more of all nodes, drawn anew.
    fn change_voters(&mut self) -> Judged {
        let mut voters: BTreeSet<u64> = self.places.keys().copied().collect();
        while voters.len() > 3 && self.rng.chance(1, 2) {
            let out = 1 + self.rng.below(self.swarm.nodes);
            voters.remove(&out);
        }
        self.ask_leaders(&Wish::Voters(voters))
    }

    /// Ask everybody who thinks it leads.
    fn ask_leaders(&mut self, wish: &Wish) -> Judged {
        let leads = |place: &Place| place.view.as_ref().is_some_and(|view| view.is_leader);
        let leaders: Vec<u64> = self.places.iter().filter(|(_, place)| leads(place)).map(|(id, _)| *id).collect();
        leaders.into_iter().try_for_each(|leader| self.ask(leader, wish.clone()))
    }

    /// From now on nothing goes wrong, and everybody comes back.
    pub(super) fn on_peace(&mut self) -> Judged {
        let now_ns = self.agenda.now_ns();
        self.peace = true;
        self.mend();
        self.trace.note(now_ns, format_args!("peace"));
        self.agenda.after(PATIENCE_NS, 0, Item::Patience);
        let dead: Vec<u64> = self.places.iter().filter(|(_, place)| place.node.is_none()).map(|(id, _)| *id).collect();
        dead.into_iter().try_for_each(|id| self.start(id))
    }

    /// A table that has seen the end has everything.
    pub(super) fn end_of(&self, place: &Place) -> Judged {
        let Some(node) = place.node.as_ref() else { return Ok(()) };
        let applied = place.view.as_ref().and_then(|view| view.applied);
        if applied.is_some_and(|applied| applied >= self.judge.floor()) { self.judge.on_end(node) } else { Ok(()) }
    }
}
