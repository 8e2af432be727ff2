//! What clients want of the cluster, and whether they got it.

use std::collections::BTreeSet;

use super::{Item, Judged, SECOND_NS, World};
use consensus::{Answer, Event, Member, Proposal, Refusal, Role};

use crate::commands;

/// A proposal under way.
pub(super) struct Operation {
    proposal: Proposal,
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
            return self.ask(1, Proposal::Begin(voters));
        }
        let id = self.likely_leader();
        if self.rng.chance(1, 5) {
            return self.ask(id, Proposal::Read);
        }
        let command = commands::draw(&mut self.rng);
        self.judge.on_asked(command.encode());
        self.ask(id, Proposal::Agree(command))
    }

    /// A member that thinks it leads, or any.
    fn likely_leader(&mut self) -> u64 {
        let leads = |id: &u64| self.places[id].view.as_ref().is_some_and(|view| view.role == Role::Leader);
        let leaders: Vec<u64> = self.places.keys().copied().filter(leads).collect();
        if leaders.is_empty() || self.rng.chance(1, 10) {
            return 1 + self.rng.below(self.swarm.members);
        }
        leaders[self.rng.below(leaders.len() as u64) as usize]
    }

    pub(super) fn ask(&mut self, id: u64, proposal: Proposal) -> Judged {
        let now_ns = self.agenda.now_ns();
        let place = self.place(id);
        if place.member.is_none() || place.paused_until_ns > now_ns {
            return Ok(());
        }
        let life = place.life;
        let token = self.operations.len() as u64;
        self.trace.note(now_ns / 1000, format_args!("{id} is asked {token}: {proposal:?}"));
        let operation = Operation { proposal: proposal.clone(), floor: self.judge.floor(), in_peace: self.peace };
        self.operations.insert(token, operation);
        self.tick(id, life, vec![Event::Proposed { token, proposal }])
    }

    pub(super) fn on_answered(&mut self, id: u64, token: u64, result: Result<Answer, Refusal>) -> Judged {
        let now_ns = self.agenda.now_ns();
        self.trace.note(now_ns / 1000, format_args!("{id} answers {token}: {result:?}"));
        let operation = &self.operations[&token];
        match (&operation.proposal, result) {
            (_, Err(Refusal::Unknown)) => self.coverage.unknown += 1,
            (Proposal::Begin(_), Err(Refusal::Elsewhere { .. })) => self.begun = false,
            (_, Err(_)) => self.coverage.refused += 1,
            (Proposal::Agree(command), Ok(Answer::Agreed { index, .. })) => {
                self.judge.on_acknowledged(command.encode(), operation.floor, index)?;
                self.done = operation.in_peace && self.is_settled(index);
            }
            (Proposal::Read, Ok(Answer::Readable { index })) => {
                self.coverage.reads += 1;
                self.judge.on_read(operation.floor, index)?;
            }
            (Proposal::Voters(_), Ok(_)) => self.coverage.changes += 1,
            (Proposal::HandOver(_), Ok(_)) => self.coverage.hand_overs += 1,
            (_, Ok(_)) => {}
        }
        Ok(())
    }

    /// Whether everybody who votes has applied nearly everything, a moment after everything went right again.
    fn is_settled(&self, index: u64) -> bool {
        let voters = self.voters();
        let near = |id: &u64| {
            let member = self.places[id].member.as_ref();
            member.and_then(Member::applied).is_some_and(|applied| applied + 20 >= index)
        };
        !voters.is_empty() && voters.iter().all(near)
    }

    /// Who votes, as the leader of the latest term has it.
    pub(super) fn voters(&self) -> BTreeSet<u64> {
        let views = self.places.values().filter_map(|place| place.view.as_ref());
        let leader = views.filter(|view| view.role == Role::Leader).max_by_key(|view| view.term);
        leader.map(|view| view.voters.iter().flatten().copied().collect()).unwrap_or_default()
    }
}
