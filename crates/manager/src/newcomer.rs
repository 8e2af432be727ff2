//! Becoming a node: who asks, and who lets it in.

use std::collections::BTreeSet;

use base::ConnectionId;
use consensus::{Answer, Proposal, Refusal};
use control::{Action, Command, Newcomer, NodeState, Outcome, RequestId};
use wire::trust::Token;

use crate::agreement::Asker;
use crate::inside::Inside;
use crate::message::Message;
use crate::peers::Peers;
use crate::start::Start;

/// How long somebody who was asked has for an answer, and between two bursts of questions, microseconds.
const ASK_US: u64 = 100_000;
/// So many are asked one behind the other where each is in no cluster itself, or not there: sixteen hosts that start at once are gone
/// through in one go, and a thousand do not ask each other all the time.
const BURST: usize = 16;

/// A node that is in no cluster yet.
pub(crate) struct Outside {
    addresses: Vec<String>,
    token: Token,
    proposer: u64,
    number: u64,
    /// Which address is asked next.
    turn: usize,
    /// How many could not say anything of a cluster.
    vain: usize,
    asked: Option<ConnectionId>,
    at_us: u64,
    /// Of who founds if there is no cluster: the others that are in none.
    nobody: Option<BTreeSet<String>>,
}

impl Outside {
    pub fn new(addresses: Vec<String>, token: Token, seed: u64) -> Outside {
        Outside {
            addresses,
            token,
            proposer: seed | 1 << 63,
            number: 0,
            turn: 0,
            vain: 0,
            asked: None,
            at_us: 0,
            nobody: None,
        }
    }

    /// It founds a cluster unless it hears of one.
    pub fn founds(self) -> Outside {
        Outside { nobody: Some(BTreeSet::new()), ..self }
    }

    /// Whether half of the others are there and in no cluster, and each was asked: who is in one says so, whether or not anybody leads.
    pub fn is_alone(&self) -> bool {
        let is_half = |nobody: &BTreeSet<String>| 2 * nobody.len() >= self.addresses.len();
        self.turn >= self.addresses.len() && self.nobody.as_ref().is_some_and(is_half)
    }

    /// Who was dialed there closed the connection before anything was said: so does who is in no cluster. The next one is asked.
    pub fn on_closed(&mut self, id: ConnectionId, address: &str) {
        if let Some(nobody) = &mut self.nobody {
            nobody.insert(address.to_owned());
        }
        if self.asked == Some(id) {
            self.go_on();
        }
    }

    /// Nobody listens at an address. The next one is asked, unless somebody else is answering.
    pub fn on_refused(&mut self) {
        if self.asked.is_none() {
            self.go_on();
        }
    }

    /// The next one is asked at once, or after a pause behind a burst of them. Who may found hears everybody first.
    fn go_on(&mut self) {
        let burst = if self.nobody.is_some() { self.addresses.len().max(1) } else { BURST };
        self.vain += 1;
        if !self.vain.is_multiple_of(burst) {
            self.at_us = 0;
        }
    }

    /// Asks the next one, if it is time.
    pub fn ask(&mut self, now_us: u64, peers: &mut Peers) {
        if now_us < self.at_us {
            return;
        }
        self.at_us = now_us + ASK_US;
        let Some(address) = self.addresses.get(self.turn % self.addresses.len().max(1)) else { return };
        if let Some(at_us) = peers.not_before_us(now_us, address) {
            // Who is named as the one to ask was often asked a moment ago.
            self.at_us = at_us;
            return;
        }
        if let Some(id) = self.asked.take() {
            peers.close(id);
        }
        peers.dial(now_us, address, None);
        self.turn += 1;
    }

    /// Somebody answers the call.
    pub fn on_dialed(&mut self, id: ConnectionId) {
        self.asked = Some(id);
    }

    /// Somebody has the token, too, and is asked.
    pub fn on_greeted(&mut self, id: ConnectionId, start: &Start, peers: &mut Peers) {
        // Nobody is greeted by who is in no cluster.
        self.nobody = None;
        self.number += 1;
        let command = Command {
            id: RequestId { proposer: self.proposer, number: self.number },
            action: Action::Join(start.newcomer.clone()),
        };
        peers.reply(id, &Message::Enlist { command });
    }

    /// It was told to ask somebody else; at once, if it knows whom.
    pub fn go_to(&mut self, address: String) {
        if !address.is_empty() {
            self.addresses.retain(|known| *known != address);
            self.addresses.insert(0, address);
            (self.turn, self.at_us) = (0, 0);
        }
    }

    pub fn token(&self) -> Token {
        self.token
    }

    pub fn deadline_us(&self) -> u64 {
        self.at_us
    }
}

impl Inside {
    /// Somebody who has the token wants to become a node of this cluster.
    pub fn on_enlist(&mut self, connection: ConnectionId, command: Command) {
        let refused = |reason: &str| Message::Refused { reason: reason.to_owned() };
        let Action::Join(mut newcomer) = command.action else {
            return self.enlisted.push((connection, refused("only a join may be asked for")));
        };
        if !self.agreement.leads() || !self.agreement.table().is_created() {
            let leader = self.leader.filter(|leader| *leader != self.me());
            let address = leader.and_then(|leader| self.address(leader)).unwrap_or_default();
            return self.enlisted.push((connection, Message::Elsewhere { address }));
        }
        if let Some(answer) = self.known_newcomer(&newcomer) {
            return self.enlisted.push((connection, answer));
        }
        let next = self.agreement.table().next_node();
        let Some(id) = next else {
            return self.enlisted.push((connection, refused("every number of a node was given away")));
        };
        newcomer.id = id;
        let command = Command { id: command.id, action: Action::Join(newcomer) };
        self.agreement.propose(Asker::Newcomer(connection), Proposal::Agree(command));
    }

    /// The answer to who asked before, and is in: as it asks now, or before it started again and could write down who it is, here or
    /// at another address. That one is down by now, and neither in a chain nor a voter; until it is, it asks again. It is known by its
    /// directory: who comes with another, as behind a lost disk, to the same address has neither the data nor the votes of who was
    /// there; and who was heard by its number has written down who it is, so this is no more than a part of its directory.
    fn known_newcomer(&self, newcomer: &Newcomer) -> Option<Message> {
        let table = self.agreement.table();
        let is_there = |facts: &Newcomer| (&facts.host, facts.port) == (&newcomer.host, newcomer.port);
        let is_it = |node: &&control::Node| {
            let is_told = newcomer.identity != [0; 32];
            (is_told || is_there(&node.facts))
                && node.facts.identity == newcomer.identity
                && node.state != NodeState::Gone
        };
        let known = table.nodes().find(is_it)?;
        let (node, facts) = (known.id(), &known.facts);
        let has_slots = || table.stretches().any(|(_, stretch)| stretch.chain.has(node));
        let votes = || [&self.identity.voters, &self.agreement.voters()].iter().any(|sets| sets.all().contains(&node));
        let is_same = facts.incarnation == newcomer.incarnation && is_there(facts);
        let is_earlier = facts.incarnation < newcomer.incarnation;
        if is_same || (is_earlier && known.state == NodeState::Down && !has_slots() && !votes()) {
            return Some(Message::Enlisted { cluster: self.identity.cluster, node, news: self.news() });
        }
        let is_told = newcomer.identity != [0; 32];
        let is_to_wait = is_told && is_earlier && known.is_reached() && !self.grants.has_asked(node, facts.incarnation);
        is_to_wait.then(|| Message::Elsewhere { address: self.address(self.me()).unwrap_or_default() })
    }

    /// What a newcomer is told: that it is in comes with its next question, which the table answers.
    pub fn answer_newcomer(&self, result: Result<Answer, Refusal>) -> Message {
        match result {
            Ok(Answer::Agreed { outcome: Outcome::Refused(why), .. }) if !is_passing(&why) => {
                Message::Refused { reason: why.to_string() }
            }
            Err(Refusal::Refused(reason)) => Message::Refused { reason },
            _ => Message::Elsewhere { address: self.address(self.me()).unwrap_or_default() },
        }
    }
}

/// Another newcomer got the number first.
fn is_passing(why: &control::Refusal) -> bool {
    matches!(why, control::Refusal::NumberTaken(_))
}

#[cfg(test)]
mod tests {
    use base::NodeId;

    use wire::trust::Party;

    use super::*;
    use crate::rig::{TOKEN, founder, leading, newcomer, work};

    /// A newcomer that is to ask at these addresses.
    fn outside(addresses: &[&str]) -> (Outside, Peers) {
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        let mut peers = Peers::new(&TOKEN, 1);
        peers.set_name([0; 16], Party::newcomer(1));
        (Outside::new(addresses, TOKEN, 1), peers)
    }

    fn ask(inside: &mut Inside, newcomer: Newcomer, number: u64) -> Vec<Message> {
        let id = RequestId { proposer: 1 << 63 | 9, number };
        let connection = ConnectionId { index: 1, generation: 1 };
        inside.on_enlist(connection, Command { id, action: Action::Join(newcomer) });
        work(inside, 2_000_000 + number * 100_000, 2_050_000 + number * 100_000);
        inside.enlisted.drain(..).map(|(_, answer)| answer).collect()
    }

    fn node_of(answers: &[Message]) -> u32 {
        let [Message::Enlisted { cluster, node, .. }] = answers else { panic!("{answers:?}") };
        assert_eq!(*cluster, [1; 16]);
        node.0
    }

    fn take_out(inside: &mut Inside, node: NodeId) {
        let fence = Action::Fence { node, incarnation: 1 };
        let promote = Action::Promote { node, incarnation: 1, replacements: Vec::new() };
        for (number, action) in [(1, fence), (2, promote)] {
            let id = RequestId { proposer: 77, number };
            inside.agreement.propose(Asker::Plan, Proposal::Agree(Command { id, action }));
            work(inside, 2_240_000 + number * 20_000, 2_250_000 + number * 20_000);
        }
    }

    #[test]
    fn who_asks_twice_is_one_node() {
        let mut inside = leading();
        let answers = ask(&mut inside, newcomer("b", 1), 1);
        let here = Message::Elsewhere { address: "a:17000".to_owned() };
        assert_eq!(answers, [here], "that it is in it learns when it asks again");
        assert_eq!(node_of(&ask(&mut inside, newcomer("b", 1), 2)), 2);
        assert_eq!(node_of(&ask(&mut inside, newcomer("b", 1), 3)), 2);
        assert_eq!(inside.table().nodes().count(), 2);
    }

    #[test]
    fn the_address_of_a_node_that_is_up_is_taken() {
        let mut inside = leading();
        ask(&mut inside, newcomer("b", 1), 1);
        let answers = ask(&mut inside, newcomer("b", 2), 2);
        assert!(matches!(&answers[..], [Message::Refused { reason }] if reason.contains("address")), "{answers:?}");
    }

    /// It was killed before it could write down who it is.
    #[test]
    fn a_node_that_is_down_without_slots_gets_its_number_back() {
        let mut inside = leading();
        ask(&mut inside, newcomer("b", 1), 1);
        let node = NodeId(2);
        take_out(&mut inside, node);
        assert_eq!(inside.table().node(node).map(|known| known.state), Some(NodeState::Down));
        assert_eq!(node_of(&ask(&mut inside, newcomer("b", 2), 3)), 2);
    }

    /// As above, and its supervisor starts it somewhere else: its directory says that it is the same one.
    #[test]
    fn a_newcomer_that_starts_again_elsewhere_is_one_node() {
        let mut inside = leading();
        let start = |host, incarnation| Newcomer { identity: [7; 32], ..newcomer(host, incarnation) };
        ask(&mut inside, start("b", 1), 1);
        let here = Message::Elsewhere { address: "a:17000".to_owned() };
        assert_eq!(ask(&mut inside, start("c", 2), 2), [here], "nobody knows yet that it does not run there");
        take_out(&mut inside, NodeId(2));
        assert_eq!(node_of(&ask(&mut inside, start("c", 2), 4)), 2);
        assert_eq!(inside.table().nodes().count(), 2);
        let other = Newcomer { identity: [8; 32], ..newcomer("c", 2) };
        ask(&mut inside, other.clone(), 5);
        assert_eq!(node_of(&ask(&mut inside, other, 6)), 3);
    }

    /// Part of a directory was copied, or lost.
    #[test]
    fn who_was_heard_as_a_node_is_not_let_in_as_a_newcomer() {
        let mut inside = leading();
        let start = |host, incarnation| Newcomer { identity: [7; 32], ..newcomer(host, incarnation) };
        ask(&mut inside, start("b", 1), 1);
        let renewal = control::lease::Renewal { node: NodeId(2), incarnation: 1, number: 1, voters: 9 };
        inside.heed(2_190_000, NodeId(2), Message::Renewal { renewal, table: 0 });
        let answers = ask(&mut inside, start("c", 2), 2);
        assert!(
            matches!(&answers[..], [Message::Refused { reason }] if reason.contains("this directory")),
            "{answers:?}"
        );
    }

    /// Its disk was lost: a first start as the one before, on the same machine, by another directory.
    #[test]
    fn another_directory_at_the_same_address_is_another_node() {
        let mut inside = leading();
        let of_directory = |identity| Newcomer { identity: [identity; 32], ..newcomer("b", 1) };
        ask(&mut inside, of_directory(1), 1);
        assert_eq!(node_of(&ask(&mut inside, of_directory(1), 2)), 2);
        let answers = ask(&mut inside, of_directory(2), 3);
        assert!(matches!(&answers[..], [Message::Refused { reason }] if reason.contains("remove 2")), "{answers:?}");
    }

    /// Whom it dials by `now_us`; each of them hangs up.
    fn dialed(outside: &mut Outside, peers: &mut Peers, now_us: u64) -> Vec<String> {
        let (mut all, mut effects) = (Vec::new(), Vec::new());
        while outside.deadline_us() <= now_us {
            outside.ask(now_us, peers);
            peers.flush(&mut effects);
            for effect in effects.drain(..) {
                let base::Effect::Dial { token, address } = effect else { continue };
                let id = ConnectionId { index: token as u32, generation: 1 };
                peers.on_dialed(now_us, token, Some(id));
                outside.on_dialed(id);
                outside.on_closed(id, &address);
                peers.on_closed(id);
                all.push(address);
            }
        }
        all
    }

    #[test]
    fn who_is_in_no_cluster_keeps_a_newcomer_waiting_once_in_a_burst() {
        let addresses: Vec<String> = (1..=40).map(|port| format!("b:{port}")).collect();
        let (mut outside, mut peers) = outside(&addresses.iter().map(String::as_str).collect::<Vec<_>>());
        let round = |number: u64, outside: &mut Outside, peers: &mut Peers| dialed(outside, peers, number * ASK_US);
        assert_eq!(round(1, &mut outside, &mut peers), addresses[..BURST]);
        assert_eq!(round(2, &mut outside, &mut peers), addresses[BURST..2 * BURST]);
        assert_eq!(dialed(&mut outside, &mut peers, 3 * ASK_US - 1), [""; 0]);
    }

    #[test]
    fn who_is_named_is_asked_next_even_if_it_was_a_moment_ago() {
        let (mut outside, mut peers) = outside(&["b:1", "b:2"]);
        assert_eq!(dialed(&mut outside, &mut peers, ASK_US), ["b:1", "b:2"]);
        outside.go_to("b:2".to_owned());
        assert_eq!(dialed(&mut outside, &mut peers, ASK_US + 1), [""; 0]);
        let at_us = outside.deadline_us();
        assert!(at_us < 2 * ASK_US);
        assert_eq!(dialed(&mut outside, &mut peers, at_us)[..1], ["b:2"]);
    }

    /// A connection that hung says nothing of who is asked now.
    #[test]
    fn who_hangs_up_late_does_not_break_off_who_is_answering() {
        let (mut outside, mut peers) = outside(&["b:1", "b:2"]);
        let [late, now] = [1, 2].map(|index| ConnectionId { index, generation: 1 });
        outside.ask(1, &mut peers);
        outside.on_dialed(late);
        outside.ask(ASK_US + 1, &mut peers);
        outside.on_dialed(now);
        let due_us = outside.deadline_us();
        outside.on_closed(late, "b:1");
        outside.on_refused();
        assert_eq!(outside.deadline_us(), due_us);
        outside.on_closed(now, "b:2");
        assert!(outside.deadline_us() < due_us);
    }

    #[test]
    fn who_would_found_does_so_only_beside_nodes_that_are_in_no_cluster() {
        let (outside, mut peers) = outside(&["b:1", "c:1", "d:1"]);
        let mut outside = outside.founds();
        for round in 1..=3 {
            assert!(!outside.is_alone(), "not all were asked");
            outside.ask(round * ASK_US, &mut peers);
            outside.on_closed(ConnectionId { index: 1, generation: 1 }, "b:1");
        }
        assert!(!outside.is_alone(), "the others may be in one");
        outside.on_closed(ConnectionId { index: 1, generation: 1 }, "d:1");
        assert!(outside.is_alone());
        outside.on_greeted(ConnectionId { index: 1, generation: 1 }, &founder().start, &mut peers);
        outside.on_closed(ConnectionId { index: 1, generation: 1 }, "c:1");
        assert!(!outside.is_alone(), "somebody is");
    }

    #[test]
    fn who_does_not_lead_names_who_does() {
        let mut inside = founder();
        let nobody = Message::Elsewhere { address: String::new() };
        assert_eq!(ask(&mut inside, newcomer("b", 1), 1)[..1], [nobody]);
    }
}
