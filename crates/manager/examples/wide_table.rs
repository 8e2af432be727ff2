//! Gives the directory of a stopped node, which founded a cluster and is alone in it, a table of many nodes: every one up, with its share of
//! the slots and with copies of another one's, the founder down. `cargo x bench table` starts the node on it.
//!
//! `cargo run --release -p manager --example wide_table -- DIRECTORY NODES`
//!
//! All of it is agreed on: the managers' own log takes each command and answers it, on a clock of its own that nobody waits for.
#![allow(clippy::disallowed_methods)] // It is a program: it has arguments and files.

use std::path::PathBuf;
use std::process::ExitCode;

use base::{CoreId, InstanceName, NodeId, SLOT_COUNT, Slot};
use consensus::{Answer, Effect, Event, Image, Member, Options, Proposal};
use control::{Action, Command, Newcomer, Outcome, RequestId};
use manager::Files;
use manager::identity::Identity;
use placement::SlotRange;

const FOUNDER: NodeId = NodeId(1);
/// Nobody else proposes under it.
const PROPOSER: u64 = u64::MAX;
/// A member that answers nothing for so many ticks never will.
const TICKS_MAX: usize = 100_000;
const SECOND_NS: u64 = 1_000_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, nodes] = &arguments[..] else {
        eprintln!("wide_table DIRECTORY NODES");
        return ExitCode::FAILURE;
    };
    let nodes = nodes.parse().map_err(|_| format!("{nodes} is no number of nodes"));
    match nodes.and_then(|nodes| widen(&PathBuf::from(directory), nodes)) {
        Ok(sentence) => {
            println!("{sentence}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("wide_table: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn widen(directory: &std::path::Path, nodes: u32) -> Result<String, String> {
    let [known, log, snapshot] = Files::NAMES.map(|name| directory.join(name));
    let identity = std::fs::read(&known).map_err(|error| format!("{}: {error}", known.display()))?;
    let mut identity = Identity::decode(&identity)?;
    if identity.node != FOUNDER || !identity.table.is_created() {
        return Err("this node did not found a cluster".to_owned());
    }
    let mut manager = Manager::start(&identity, std::fs::read(&log).ok(), std::fs::read(&snapshot).ok())?;
    manager.settle()?;
    for node in FOUNDER.0 + 1..=nodes {
        manager.agree(Action::Join(newcomer(node)))?;
    }
    for node in FOUNDER.0 + 1..=nodes {
        manager.give(share(node, nodes), NodeId(node), NodeId(if node == nodes { FOUNDER.0 + 1 } else { node + 1 }))?;
    }
    let incarnation = manager.member.table().node(FOUNDER).map_or(0, |node| node.facts.incarnation);
    manager.agree(Action::Fence { node: FOUNDER, incarnation })?;
    manager.agree(Action::Promote { node: FOUNDER, incarnation, replacements: Vec::new() })?;
    identity.table = manager.member.table().clone();
    let write = |path: &PathBuf, bytes: &[u8]| {
        std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    };
    write(&known, &identity.encode())?;
    write(&log, &manager.log)?;
    manager.snapshot.iter().try_for_each(|bytes| write(&snapshot, bytes))?;
    let (table, stretches) = (&identity.table, identity.table.stretches().count());
    Ok(format!("{} nodes, {stretches} stretches, {} bytes", table.nodes().count(), table.encode().len()))
}

/// A node that nobody will ever hear of.
fn newcomer(node: u32) -> Newcomer {
    let mut identity = [0; 32];
    identity[..4].copy_from_slice(&node.to_le_bytes());
    Newcomer {
        id: NodeId(node),
        incarnation: 1 << 16,
        // Of this machine, where nobody listens: whoever dials them is refused at once.
        host: format!("127.1.{}.{}", node / 250, 1 + node % 250),
        port: 6379,
        cores: 1,
        weight: 0,
        zone: String::new(),
        machine: format!("machine-{node}"),
        identity,
    }
}

/// The slots of a node's share.
fn share(node: u32, nodes: u32) -> SlotRange {
    let bound = |node: u32| u16::try_from(u32::from(SLOT_COUNT) * node / nodes).expect("it is below their number");
    SlotRange { first: Slot::wrapping(bound(node - 1)), last: Slot::wrapping(bound(node) - 1) }
}

/// The founder's manager, alone, on files in memory.
struct Manager {
    member: Member,
    log: Vec<u8>,
    snapshot: Option<Vec<u8>>,
    now_ns: u64,
    number: u64,
    /// What is to be told in the next tick.
    events: Vec<Event>,
    answer: Option<Result<Answer, consensus::Refusal>>,
}

impl Manager {
    fn start(identity: &Identity, log: Option<Vec<u8>>, snapshot: Option<Vec<u8>>) -> Result<Manager, String> {
        let id = u64::from(identity.node.0);
        let options = Options::of_lease(identity.table.settings().lease_ms, id);
        let start = consensus::Start { id, cluster: identity.cluster, options, seed: 1, is_witnessed: false };
        let image = Image { log: log.as_deref(), snapshot: snapshot.as_deref() };
        let member = Member::start(start, image).map_err(|damage| format!("{damage:?}"))?;
        let log = log.unwrap_or_default();
        Ok(Manager { member, log, snapshot, now_ns: 0, number: 0, events: Vec::new(), answer: None })
    }

    /// Until it leads, and has read all that was agreed on.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..TICKS_MAX {
            if let Ok(Answer::Readable { .. }) = self.propose(Proposal::Read)? {
                return Ok(());
            }
            self.now_ns += SECOND_NS;
            self.tick()?;
        }
        Err("it does not come to lead".to_owned())
    }

    /// `slots` go to `node`, with a copy at `second`.
    fn give(&mut self, slots: SlotRange, node: NodeId, second: NodeId) -> Result<(), String> {
        let place = |node| InstanceName { node, core: CoreId(0) };
        let epoch = self.member.table().version();
        self.agree(Action::MoveBegin { slots, epoch, from: place(FOUNDER), to: place(node) })?;
        let (id, places) = (self.member.table().version(), [FOUNDER, node, second].map(place).to_vec());
        self.agree(Action::Replace { slots, epoch: id, places, counted: false })?;
        for member in [node, second] {
            let epoch = self.member.table().version();
            self.agree(Action::Whole { slots, node: member, epoch })?;
        }
        let epoch = self.member.table().version();
        self.agree(Action::HandOver { id, epoch })?;
        self.agree(Action::MoveEnd { id })
    }

    fn agree(&mut self, action: Action) -> Result<(), String> {
        self.number += 1;
        let id = RequestId { proposer: PROPOSER, number: self.number };
        match self.propose(Proposal::Agree(Command { id, action: action.clone() }))? {
            Ok(Answer::Agreed { outcome: Outcome::Changed { .. }, .. }) => Ok(()),
            other => Err(format!("{action:?} is answered with {other:?}")),
        }
    }

    fn propose(&mut self, proposal: Proposal) -> Result<Result<Answer, consensus::Refusal>, String> {
        self.events.push(Event::Proposed { token: 1, proposal });
        for _ in 0..TICKS_MAX {
            self.tick()?;
            if let Some(answer) = self.answer.take() {
                return Ok(answer);
            }
        }
        Err("a proposal is never answered".to_owned())
    }

    /// One tick; what it writes is durable in the next one.
    fn tick(&mut self) -> Result<(), String> {
        self.now_ns += 1000;
        for effect in self.member.tick(self.now_ns, std::mem::take(&mut self.events)).effects {
            match effect {
                Effect::Write { ordinal, offset, bytes } => {
                    let offset = usize::try_from(offset).expect("a log fits into memory");
                    self.log.resize(self.log.len().max(offset + bytes.len()), 0);
                    self.log[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    self.events.push(Event::Durable { ordinal });
                }
                Effect::ReplaceLog { ordinal, bytes } => {
                    self.log = bytes;
                    self.events.push(Event::Durable { ordinal });
                }
                Effect::ReplaceSnapshot { ordinal, bytes } => {
                    self.snapshot = Some(bytes);
                    self.events.push(Event::Durable { ordinal });
                }
                Effect::Answered { result, .. } => self.answer = Some(result),
                Effect::Failed { reason } => return Err(reason),
                // It is alone.
                Effect::Send { .. } | Effect::Changed(_) => {}
            }
        }
        Ok(())
    }
}
