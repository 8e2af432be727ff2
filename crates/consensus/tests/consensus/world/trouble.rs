//! What goes wrong, and the peace after it.

use std::collections::BTreeSet;

use super::{Item, Judged, PATIENCE_NS, Place, SECOND_NS, World};
use consensus::{Event, Proposal, Role};

impl World {
    pub(super) fn on_trouble(&mut self) -> Judged {
        if self.peace {
            return Ok(());
        }
        let pause_ns = SECOND_NS / 20 + self.rng.below(SECOND_NS);
        self.agenda.after(pause_ns, 0, Item::Trouble);
        let id = 1 + self.rng.below(self.swarm.members);
        match self.rng.below(7) {
            0 if self.swarm.crashes => self.crash_some(id),
            1 if self.swarm.cuts => self.cut_some(id),
            2 => self.mend(),
            3 if self.swarm.pauses => self.pause(id),
            4 if self.swarm.changes => return self.change_voters(),
            5 if self.swarm.hand_overs => return self.ask_leaders(&Proposal::HandOver(id)),
            6 => return self.alarm(id),
            _ => {}
        }
        Ok(())
    }

    /// A member, or everybody who follows, takes who leads for gone: rightly or not, nothing that was agreed may depend on it.
    fn alarm(&mut self, id: u64) -> Judged {
        let Some(leader) = self.place(id).view.as_ref().and_then(|view| view.leader) else { return Ok(()) };
        let alone = self.rng.chance(1, 2);
        let now_ns = self.agenda.now_ns();
        let is_awake = |(_, place): &(&u64, &Place)| place.paused_until_ns <= now_ns;
        let all: Vec<(u64, u64)> = self.places.iter().filter(is_awake).map(|(id, place)| (*id, place.life)).collect();
        self.coverage.alarms += 1;
        self.trace.note(now_ns / 1000, format_args!("{id} takes {leader} for gone, alone {alone}"));
        for (id, life) in all.into_iter().filter(|(other, _)| *other == id || (!alone && *other != leader)) {
            let stands = self.rng.chance(1, 2);
            self.tick(id, life, vec![Event::LeaderGone { leader, stands }])?;
        }
        Ok(())
    }

    /// One member, or it and others at the same moment: what they share is their power.
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
        let Some(member) = place.member.take() else { return };
        let polls = member.polls().0;
        drop(member);
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
        self.trace.note(now_ns / 1000, format_args!("{id} dies, power {power}, torn {torn}"));
        let down_ns = SECOND_NS / 100 + self.rng.below(3 * SECOND_NS);
        self.agenda.after(down_ns, self.rng.next_u64(), Item::Restart { id, life });
    }

    /// One way, one member in both ways, or one half from the other.
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
        self.trace.note(self.agenda.now_ns() / 1000, format_args!("cut {:?}", self.cut));
    }

    fn mend(&mut self) {
        self.cut.clear();
        self.trace.note(self.agenda.now_ns() / 1000, format_args!("no way is cut"));
    }

    fn pause(&mut self, id: u64) {
        let now_ns = self.agenda.now_ns();
        let until_ns = now_ns + SECOND_NS / 10 + self.rng.below(3 * SECOND_NS);
        let place = self.place(id);
        if place.member.is_none() || place.paused_until_ns > now_ns {
            return;
        }
        place.paused_until_ns = until_ns;
        self.coverage.pauses += 1;
        self.trace.note(now_ns / 1000, format_args!("{id} stands still until {until_ns}"));
    }

    /// Three or more of all members, drawn anew.
    fn change_voters(&mut self) -> Judged {
        let mut voters: BTreeSet<u64> = self.places.keys().copied().collect();
        while voters.len() > 3 && self.rng.chance(1, 2) {
            let out = 1 + self.rng.below(self.swarm.members);
            voters.remove(&out);
        }
        self.ask_leaders(&Proposal::Voters(voters))
    }

    /// Ask everybody who thinks it leads.
    fn ask_leaders(&mut self, wish: &Proposal) -> Judged {
        let leads = |place: &Place| place.view.as_ref().is_some_and(|view| view.role == Role::Leader);
        let leaders: Vec<u64> = self.places.iter().filter(|(_, place)| leads(place)).map(|(id, _)| *id).collect();
        leaders.into_iter().try_for_each(|leader| self.ask(leader, wish.clone()))
    }

    /// From now on nothing goes wrong, and everybody comes back.
    pub(super) fn on_peace(&mut self) -> Judged {
        let now_ns = self.agenda.now_ns();
        self.peace = true;
        self.mend();
        self.trace.note(now_ns / 1000, format_args!("peace"));
        self.agenda.after(PATIENCE_NS, 0, Item::Patience);
        let dead: Vec<u64> =
            self.places.iter().filter(|(_, place)| place.member.is_none()).map(|(id, _)| *id).collect();
        dead.into_iter().try_for_each(|id| self.start(id))
    }

    /// A sync fails: the member is told, and lives on for a while in which it must be silent.
    pub(super) fn fail_sync(&mut self, id: u64, life: u64, ordinal: u64) -> Judged {
        let now_ns = self.agenda.now_ns();
        let place = self.place(id);
        place.disk.fail(ordinal);
        place.is_failed = true;
        self.coverage.failed_syncs += 1;
        self.trace.note(now_ns / 1000, format_args!("{id}'s sync of {ordinal} fails"));
        self.agenda.after(SECOND_NS / 2, self.rng.next_u64(), Item::Bury { id, life });
        self.tick(id, life, vec![Event::WriteFailed { reason: "the disk is full".to_owned() }])
    }

    pub(super) fn on_bury(&mut self, id: u64, life: u64) -> Judged {
        if self.place(id).life == life && self.place(id).is_failed {
            self.crash(id);
        }
        Ok(())
    }
}
