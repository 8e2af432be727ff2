//! What the cores of this node are told, and what they say of their followers.

use base::{CoreId, InstanceName};
use control::{Action, Member};
use placement::{SlotRange, SlotSet};
use shard::gather::Answer;
use shard::{Control, Held, HopBatch};
use std::sync::Arc;

use crate::inside::Inside;

/// Between two questions about followers that are being filled, microseconds.
const ASK_US: u64 = 20_000;

/// What was told last.
pub(crate) struct Cores {
    count: u16,
    version: u64,
    until_us: u64,
}

impl Cores {
    pub fn new(count: u16) -> Cores {
        Cores { count, version: 0, until_us: 0 }
    }

    /// All of them, by their numbers.
    pub fn all(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.count).map(CoreId)
    }

    /// Table and lease, where they are others than before. The table first: nobody serves by an older one under a lease that
    /// was granted for a newer. Nor hears a core of a table that has another start of its node: by that one it may be first of
    /// what others hold, and would have them forget it.
    pub fn tell(&mut self, now_us: u64, inside: &mut Inside, hops: &mut Vec<(CoreId, HopBatch)>) {
        let table = inside.table();
        let is_newer = table.version() > self.version && inside.is_up();
        let view = is_newer.then(|| Arc::new(table.view()));
        self.version = if is_newer { table.version() } else { self.version };
        let until_us = inside.may_serve_until_us();
        let node = inside.me();
        let lease = (until_us != self.until_us).then_some(until_us);
        self.until_us = until_us;
        let learns = now_us >= inside.held_us && inside.proposals.is_empty() && inside.asks_cores();
        let asks = inside.suspicion.take_asking() || learns;
        if asks {
            inside.held_us = now_us + ASK_US;
        }
        let answers = inside.orders.take_answers().into_iter();
        let answer = |(core, gather, ordered)| (core, Control::Answer { gather, answer: Answer::Ordered(ordered) });
        let mut telling = inside.moving.take_telling();
        telling.extend(answers.map(answer));
        if view.is_some() || lease.is_some() || asks {
            for core in self.all() {
                let mut batch = HopBatch::default();
                batch.controls.extend(view.clone().map(|view| Control::View { node, view }));
                batch.controls.extend(lease.map(|until_us| Control::Lease { until_us }));
                batch.controls.extend(asks.then_some(Control::AskHeld));
                hops.push((core, batch));
            }
        }
        // Who asks may be no core: a machine beside them.
        for (asker, control) in telling {
            match hops.iter_mut().find(|(to, _)| *to == asker) {
                Some((_, batch)) => batch.controls.push(control),
                None => {
                    let mut batch = HopBatch::default();
                    batch.controls.push(control);
                    hops.push((asker, batch));
                }
            }
        }
    }
}

impl Inside {
    /// Whether there is something to learn from this node's cores.
    pub fn asks_cores(&self) -> bool {
        self.has_filling() || self.has_taken_over() || self.has_surplus()
    }

    /// Whether the first of a chain, one of this node's cores, has to say when somebody behind it may leave.
    fn has_surplus(&self) -> bool {
        let (me, wanted) = (self.me(), usize::from(self.table().settings().chain_length));
        let is_mine = |chain: &control::Chain| chain.primary().is_some_and(|first| first.node == me);
        self.table().stretches().any(|(_, stretch)| is_mine(&stretch.chain) && stretch.chain.len() > wanted)
    }

    /// Whether a follower of one of this node's cores is being filled.
    fn has_filling(&self) -> bool {
        let me = self.me();
        let is_mine = |chain: &control::Chain| chain.primary().is_some_and(|first| first.node == me);
        self.table()
            .stretches()
            .any(|(_, stretch)| is_mine(&stretch.chain) && stretch.chain.iter().any(|member| !member.whole))
    }

    /// What the followers of a core have: those that have everything are said to be whole. That is planned for the table of which
    /// the core knew then: a follower that left since, and comes again, has nothing of what it had.
    pub fn on_held(&mut self, core: CoreId, epoch: u64, held: &[Held]) {
        if !self.proposals.is_empty() {
            return;
        }
        self.end_moves(core, epoch);
        self.doubt(core, epoch, held);
        self.let_leave(core, epoch, held);
        let first = InstanceName { node: self.me(), core };
        let mut actions = Vec::new();
        for (slots, stretch) in self.table().stretches().filter(|(_, stretch)| stretch.chain.primary() == Some(first)) {
            // In the order of the chain: who is behind somebody that is being filled waits.
            let Some(filling) = stretch.chain.iter().find(|member: &&Member| !member.whole) else { continue };
            let has = |held: &&Held| held.to == filling.place && set_of(slots).is_within(&held.slots);
            if held.iter().any(|entry| has(&entry)) {
                actions.push(Action::Whole { slots, node: filling.place.node, epoch });
            }
        }
        actions.into_iter().for_each(|action| {
            self.proposals.add(action);
        });
    }

    /// Who would be missed as the next one leaves once whoever comes then has what was acknowledged, which only the first knows.
    fn let_leave(&mut self, core: CoreId, epoch: u64, held: &[Held]) {
        if !self.has_surplus() {
            return;
        }
        let first = InstanceName { node: self.me(), core };
        let surplus = control::plan::trim(self.table());
        for action in surplus {
            let Action::Replace { slots, places, counted: true, .. } = action else { continue };
            let [led_by, next, ..] = places[..] else { continue };
            let is_counted = |held: &&Held| held.to == next && set_of(slots).is_within(&held.counted);
            if led_by == first && held.iter().any(|entry| is_counted(&entry)) {
                self.proposals.add(Action::Replace { slots, epoch, places, counted: true });
            }
        }
    }

    /// Followers that have not what they are said to have are filled anew, once that is agreed.
    fn doubt(&mut self, core: CoreId, epoch: u64, held: &[Held]) {
        let first = InstanceName { node: self.me(), core };
        let mut actions = Vec::new();
        for (slots, stretch) in self.table().stretches().filter(|(_, stretch)| stretch.chain.primary() == Some(first)) {
            let has_suspects = |held: &&Held| !set_of(slots).intersection(&held.suspects).is_empty();
            // Whoever is behind the first one of them is doubted with it.
            let doubted = held.iter().filter(has_suspects).map(|held| held.to);
            let place = |to: &InstanceName| stretch.chain.iter().position(|member| member.place == *to);
            if let Some(to) = doubted.min_by_key(|to| place(to).unwrap_or(usize::MAX)) {
                actions.push(Action::Doubt { slots, node: to.node, epoch });
            }
        }
        actions.into_iter().for_each(|action| {
            self.proposals.add(action);
        });
    }
}

fn set_of(slots: SlotRange) -> SlotSet {
    (slots.first.number()..=slots.last.number()).map(base::Slot::wrapping).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::{founder, leading, work};

    fn told(cores: &mut Cores, now_us: u64, inside: &mut Inside) -> Vec<String> {
        let mut hops = Vec::new();
        cores.tell(now_us, inside, &mut hops);
        let word = |control: Control| match control {
            Control::View { node, view } => format!("view {} of {}", view.version(), node.0),
            Control::Lease { until_us } => format!("lease {}", until_us > 0),
            Control::AskHeld => "ask".to_owned(),
            _ => panic!("managers say nothing else"),
        };
        hops.into_iter()
            .flat_map(|(core, batch)| {
                batch.controls.into_iter().map(move |control| format!("{}: {}", core.0, word(control)))
            })
            .collect()
    }

    #[test]
    fn cores_hear_of_the_table_before_the_lease_and_of_nothing_twice() {
        let mut inside = leading();
        let mut cores = Cores::new(2);
        let view = format!("view {} of 1", inside.table().version());
        let all: Vec<String> =
            (0..2).flat_map(|core| [format!("{core}: {view}"), format!("{core}: lease true")]).collect();
        assert_eq!(told(&mut cores, 2_000_000, &mut inside), all);
        assert!(told(&mut cores, 2_000_000, &mut inside).is_empty());
        work(&mut inside, 2_000_000, 2_150_000);
        assert_eq!(told(&mut cores, 2_150_000, &mut inside), ["0: lease true", "1: lease true"], "a longer one");
        // It was fenced and does not know any table that has what it is now.
        inside.incarnation += 1;
        assert_eq!(told(&mut cores, 2_150_000, &mut inside), ["0: lease false", "1: lease false"]);
    }

    #[test]
    fn who_asks_from_beside_the_cores_is_answered_alone() {
        let mut inside = leading();
        let mut cores = Cores::new(1);
        told(&mut cores, 2_000_000, &mut inside);
        inside.on_order(CoreId(2), 5, shard::order::Order::Status);
        let mut hops = Vec::new();
        cores.tell(2_000_000, &mut inside, &mut hops);
        let [(to, batch)] = &hops[..] else { panic!("nobody else is told anything") };
        assert_eq!((*to, batch.controls.len()), (CoreId(2), 1));
        assert!(matches!(&batch.controls[0], Control::Answer { gather: 5, answer: Answer::Ordered(_) }));
    }

    #[test]
    fn without_a_table_cores_hear_nothing() {
        assert!(told(&mut Cores::new(1), 0, &mut founder()).is_empty());
    }
}
