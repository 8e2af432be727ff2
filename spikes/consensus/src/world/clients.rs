//! What clients want of the cluster, and whether they got it.

use std::collections::BTreeSet;

use super::{Item, Judged, SECOND_NS, World};
use crate::node::{Event, Outcome, Wish};
use crate::types::Command;

/// A wish under way.
pub(super) struct Operation {
    wish: Wish,
    /// The last place that had been acknowledged when it was asked.
    floor: u64,
    in_peace: bool,
}

impl World {
    pub(super) fn on_client(&mut self) -> Judged {
        let pause_ns = SECOND_NS / 200 + self.rng.below(SECOND_NS / 20);
        self.agenda.after(pause_ns, 0, Item::Client);
        if !self.begun {
            self.begun = true;
            let voters = (1..=self.swarm.voters).collect();
            return self.ask(1, Wish::Begin(voters));
        }
        let node = self.likely_leader();
        if self.rng.chance(1, 5) {
            return self.ask(node, Wish::Read);
        }
        let command = self.rng.next_u64();
        self.judge.on_asked(command);
        self.ask(node, Wish::Agree(Command(command)))
    }

    /// A node that thinks it leads, or any.
    fn likely_leader(&mut self) -> u64 {
        let leads = |id: &u64| self.places[id].view.as_ref().is_some_and(|view| view.is_leader);
        let leaders: Vec<u64> = self.places.keys().copied().filter(leads).collect();
        if leaders.is_empty() || self.rng.chance(1, 10) {
            return 1 + self.rng.below(self.swarm.nodes);
        }
        leaders[self.rng.below(leaders.len() as u64) as usize]
    }

    pub(super) fn ask(&mut self, node: u64, wish: Wish) -> Judged {
        let now_ns = self.agenda.now_ns();
        let place = self.place(node);
        if place.node.is_none() || place.paused_until_ns > now_ns {
            return Ok(());
        }
        let life = place.life;
        let token = self.operations.len() as u64;
        self.trace.note(now_ns, format_args!("{node} is asked {token}: {wish:?}"));
        let operation = Operation { wish: wish.clone(), floor: self.judge.floor(), in_peace: self.peace };
        self.operations.insert(token, operation);
        self.tick(node, life, vec![Event::Asked { token, wish }])
    }

    pub(super) fn on_outcome(&mut self, node: u64, outcome: Outcome) -> Judged {
        let now_ns = self.agenda.now_ns();
        let Outcome { token, result } = outcome;
        self.trace.note(now_ns, format_args!("{node} answers {token}: {result:?}"));
        let operation = &self.operations[&token];
        match (&operation.wish, result) {
            (_, Err(_)) => self.coverage.refused += 1,
            (Wish::Agree(command), Ok(Some(applied))) => {
                self.judge.on_acknowledged(command.0, operation.floor, &applied)?;
                self.done = operation.in_peace && self.is_settled(applied.index);
            }
            (Wish::Read, Ok(Some(applied))) => {
                self.coverage.reads += 1;
                self.judge.on_read(operation.floor, &applied)?;
            }
            (Wish::Voters(_), Ok(_)) => self.coverage.changes += 1,
            (Wish::HandOver(_), Ok(_)) => self.coverage.hand_overs += 1,
            (_, Ok(_)) => {}
        }
        Ok(())
    }

    /// Whether everybody who votes has applied nearly everything, a moment after everything went right again.
    fn is_settled(&self, index: u64) -> bool {
        let voters = self.voters();
        let near = |id: &u64| {
            let view = self.places[id].view.as_ref();
            view.and_then(|view| view.applied).is_some_and(|applied| applied + 20 >= index)
        };
        !voters.is_empty() && voters.iter().all(near)
    }

    /// Who votes, as the leader of the latest term has it.
    pub(super) fn voters(&self) -> BTreeSet<u64> {
        let views = self.places.values().filter_map(|place| place.view.as_ref());
        let leader = views.filter(|view| view.is_leader).max_by_key(|view| view.term);
        leader.map(|view| view.voters.iter().flatten().copied().collect()).unwrap_or_default()
    }
}
