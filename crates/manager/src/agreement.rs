//! This node as a member of the managers' agreement: its files are the street's, its frames messages.

use base::{Effect, NodeId};
use consensus::{Damage, Image, Member, Options, Proposal, Role, View};
use control::lease::Voters;

use crate::identity::Identity;
use crate::message::Message;
use crate::start::{Entry, Files, Start};

/// Who waits for what becomes of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The judge, about a node.
    Judge(NodeId),
    /// A plan; the next one is made when nobody waits for one.
    Plan,
    /// A node that proposed.
    Node { node: NodeId, number: u64 },
    /// Who wants to become a node.
    Newcomer(base::ConnectionId),
    /// Somebody who wants to know how new a table must be; `None`: this manager.
    Reader { node: Option<NodeId>, number: u64 },
}

/// See the module.
pub(crate) struct Agreement {
    member: Member,
    /// What is to be told in the next tick.
    events: Vec<consensus::Event>,
    askers: Vec<(u64, Asker)>,
    tokens: u64,
    view: Option<View>,
    deadline_us: Option<u64>,
    quiet: Quiet,
    /// Why it has fallen silent.
    failure: Option<String>,
}

/// What a tick of the agreement leaves to be done.
#[derive(Default)]
pub(crate) struct Outgoing {
    pub messages: Vec<(NodeId, Message)>,
    pub answers: Vec<(Asker, Result<consensus::Answer, consensus::Refusal>)>,
    pub has_changed: bool,
}

/// How long the library is left asleep in a node that has no vote, and so neither leads nor stands for election, microseconds.
const LISTENS_US: u64 = 1_000_000;

/// The library looks at its clock every fifth of a heartbeat, whether or not anything can be due. Until then it is left asleep, unless
/// the node is awake anyway: a node that leads sent something a moment ago, one that follows heard from who leads, and one that has no
/// vote waits for nothing.
struct Quiet {
    heartbeat_us: u64,
    /// So long after it heard a leader, and longer, a member does not stand for election.
    patience_us: u64,
    heard_us: u64,
    sent_us: u64,
    ticked_us: u64,
}

impl Quiet {
    fn of(options: &Options) -> Quiet {
        let (heartbeat_us, patience_us) = (options.heartbeat_ms * 1000, options.election_ms_max * 1000);
        Quiet { heartbeat_us, patience_us, heard_us: 0, sent_us: 0, ticked_us: 0 }
    }

    fn note_heard(&mut self, now_us: u64, leader: Option<u64>, events: &[consensus::Event]) {
        self.ticked_us = now_us;
        let is_leaders = |event: &consensus::Event| matches!(event, consensus::Event::Received { from, .. } if Some(*from) == leader);
        if events.iter().any(is_leaders) {
            self.heard_us = now_us;
        }
    }

    fn note_sent(&mut self, now_us: u64, outgoing: &Outgoing) {
        if !outgoing.messages.is_empty() {
            self.sent_us = now_us;
        }
    }

    fn until_us(&self, view: &View) -> u64 {
        match view.role {
            Role::Leader => self.sent_us + self.heartbeat_us,
            Role::Follower => self.heard_us + self.patience_us,
            Role::Listener => self.ticked_us + LISTENS_US,
            Role::Candidate => 0,
        }
    }
}

impl Agreement {
    /// Of a node, on what its files say. Leases that become longer or shorter make it more or less patient at its next start.
    pub fn start(identity: &Identity, start: &Start) -> Result<Agreement, Damage> {
        let (id, files) = (u64::from(identity.node.0), &start.files);
        let lease_ms = match &start.entry {
            Entry::Found { settings, .. } if !identity.table.is_created() => settings.lease_ms,
            _ => identity.table.settings().lease_ms,
        };
        let options = Options::of_lease(lease_ms, id);
        let quiet = Quiet::of(&options);
        let (cluster, seed) = (identity.cluster, start.seed);
        let start = consensus::Start { id, cluster, options, seed, is_witnessed: false };
        let image = Image { log: files.log.as_deref(), snapshot: files.snapshot.as_deref() };
        Ok(Agreement {
            member: Member::start(start, image)?,
            events: Vec::new(),
            askers: Vec::new(),
            tokens: 0,
            view: None,
            deadline_us: Some(0),
            quiet,
            failure: None,
        })
    }

    /// Something happened.
    pub fn tell(&mut self, event: consensus::Event) {
        self.events.push(event);
    }

    /// Somebody wants something; the answer comes with [`Outgoing::answers`].
    pub fn propose(&mut self, asker: Asker, proposal: Proposal) {
        self.tokens += 1;
        self.askers.push((self.tokens, asker));
        self.events.push(consensus::Event::Proposed { token: self.tokens, proposal });
    }

    /// Whether somebody like `asker` waits.
    pub fn is_asked(&self, asker: Asker) -> bool {
        self.askers.iter().any(|(_, known)| *known == asker)
    }

    /// Works until there is nothing to do.
    pub fn tick(&mut self, now_us: u64, effects: &mut Vec<Effect>) -> Outgoing {
        let mut outgoing = Outgoing::default();
        let is_due = self.deadline_us.is_some_and(|at_us| at_us <= now_us);
        if self.events.is_empty() && !is_due {
            return outgoing;
        }
        let leader = self.view.as_ref().and_then(|view| view.leader);
        self.quiet.note_heard(now_us, leader, &self.events);
        let asked = self.member.tick(now_us * 1000, std::mem::take(&mut self.events));
        self.deadline_us = asked.deadline_ns.map(|ns| ns.div_ceil(1000));
        for effect in asked.effects {
            self.perform(effect, effects, &mut outgoing);
        }
        self.quiet.note_sent(now_us, &outgoing);
        outgoing
    }

    fn perform(&mut self, effect: consensus::Effect, effects: &mut Vec<Effect>, outgoing: &mut Outgoing) {
        let (log, snapshot) = (Files::NAMES[1].to_owned(), Files::NAMES[2].to_owned());
        match effect {
            consensus::Effect::Write { ordinal, offset, bytes } => {
                effects.push(Effect::WriteFile { token: ordinal, name: log, offset, bytes });
            }
            consensus::Effect::ReplaceLog { ordinal, bytes } => {
                effects.push(Effect::ReplaceFile { token: ordinal, name: log, bytes });
            }
            consensus::Effect::ReplaceSnapshot { ordinal, bytes } => {
                effects.push(Effect::ReplaceFile { token: ordinal, name: snapshot, bytes });
            }
            consensus::Effect::Send { to, frame } => {
                let to = NodeId(u32::try_from(to).expect("managers have the numbers of nodes"));
                outgoing.messages.push((to, Message::Agreement(frame)));
            }
            consensus::Effect::Answered { token, result } => {
                let number = self.askers.iter().position(|(known, _)| *known == token);
                let (_, asker) = self.askers.swap_remove(number.expect("what is answered was asked"));
                outgoing.answers.push((asker, result));
            }
            consensus::Effect::Changed(view) => {
                self.view = Some(view);
                outgoing.has_changed = true;
            }
            consensus::Effect::Failed { reason } => self.failure = Some(reason),
        }
    }

    /// When it wants to be called again, if nobody calls before.
    pub fn deadline_us(&self) -> Option<u64> {
        if !self.events.is_empty() {
            return Some(0);
        }
        // What is proposed may wait for a timer of the library's.
        let rests = self.view.as_ref().filter(|_| self.askers.is_empty());
        let quiet_until_us = rests.map_or(0, |view| self.quiet.until_us(view));
        self.deadline_us.map(|at_us| at_us.max(quiet_until_us))
    }

    /// Why it has fallen silent, once.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Whether this node was elected; whether it still leads only an answer shows.
    pub fn leads(&self) -> bool {
        self.term_led().is_some()
    }

    /// The term for which this node was elected, while that is the newest one it knows.
    pub fn term_led(&self) -> Option<u64> {
        self.view.as_ref().filter(|view| view.role == Role::Leader).map(|view| view.term)
    }

    /// Who leads, as far as it knows.
    pub fn leader(&self) -> Option<NodeId> {
        self.view.as_ref().and_then(|view| view.leader).and_then(|leader| u32::try_from(leader).ok()).map(NodeId)
    }

    /// The voters in its log, agreed or not.
    pub fn voters(&self) -> Voters {
        self.view.as_ref().map_or_else(Voters::default, |view| voters(view.voters_index, &view.voters))
    }

    /// The voters that are agreed.
    pub fn agreed_voters(&self) -> Voters {
        let (version, sets) = self.member.agreed_voters();
        voters(version, &sets)
    }

    /// The table that it has obeyed.
    pub fn table(&self) -> std::cell::Ref<'_, control::Table> {
        self.member.table()
    }

    /// Index of the last entry that it has obeyed.
    pub fn applied(&self) -> u64 {
        self.member.applied().unwrap_or(0)
    }
}

fn voters(version: u64, sets: &[std::collections::BTreeSet<u64>]) -> Voters {
    let set = |set: &std::collections::BTreeSet<u64>| {
        set.iter().filter_map(|id| u32::try_from(*id).ok()).map(NodeId).collect()
    };
    // The first ones may stand at index 0, and are newer than none.
    Voters { version: version + u64::from(!sets.is_empty()), sets: sets.iter().map(set).collect() }
}
