//! The manager of a node as a machine: its tick is the list of its stages.

mod doors;
mod receive;

use base::{ConnectionId, CoreId, Effect, Machine, NodeId, TickInput, TickOutput};
use control::Table;
use doors::{greet_inside, heed_inside};
use shard::{Control, HopBatch};

use wire::trust::Party;

use crate::book::Book;
use crate::cores::Cores;
use crate::identity::{Identity, NOBODY};
use crate::inside::Inside;
use crate::message::{Message, News};
use crate::newcomer::Outside;
use crate::peers::Peers;
use crate::start::{Entry, Start};
use crate::starts::TWO;
use crate::writes::Writes;

/// Rounds in which a node talks to itself within one tick.
const ROUNDS_MAX: usize = 32;
/// Why a node that was removed does not run.
const REMOVED: &str =
    "this node was removed from its cluster for ever: to join again, start it with an empty directory and --join";
/// Why one does not run that was found to be older than what the cluster knows.
const COPY: &str = "this directory is an older copy of a node's, and what was acknowledged since is not in it: start the node on its newest \
                    directory, or take it out of the cluster (cluster remove N --abandon) and join with an empty one";
/// How long a node sleeps that waits for nothing but its file, microseconds.
const WRITTEN_US: u64 = 1_000_000;

/// See the crate.
pub struct Manager {
    start: Start,
    outside: Outside,
    inside: Option<Inside>,
    peers: Peers,
    cores: Cores,
    /// What those hear who want something while no cluster has let the node in.
    refusals: Vec<(CoreId, HopBatch)>,
    book: Book,
    /// Version of the table that others were told.
    told: u64,
    effects: Vec<Effect>,
    writes: Writes,
    has_begun: bool,
    stopping: bool,
    failure: Option<String>,
}

impl Manager {
    /// Of a node with `cores` cores.
    ///
    /// # Errors
    /// A sentence that names the file: it cannot be what a manager wrote, or is another cluster's.
    pub fn new(start: Start, cores: u16) -> Result<Manager, String> {
        let known = start.files.identity.as_deref().map(Identity::decode).transpose()?;
        let identity = match (known, &start.entry) {
            (Some(known), _) => Some(known),
            (None, Entry::Found { others, .. }) if others.is_empty() => founder(&start.entry),
            (None, Entry::Found { .. } | Entry::Join { .. }) => None,
            (None, Entry::Resume) => {
                return Err("this directory is no cluster node's: found a cluster, or join one".to_owned());
            }
        };
        if identity.as_ref().is_some_and(|known| known.node == NOBODY) {
            return Err(COPY.to_owned());
        }
        let is_removed =
            |known: &Identity| known.table.is_gone(known.node) && !known.voters.all().contains(&known.node);
        if identity.as_ref().is_some_and(is_removed) {
            return Err(REMOVED.to_owned());
        }
        // The clock is not known yet: the first tick begins.
        let inside = identity.map(|identity| Inside::new(0, identity, &start)).transpose();
        let inside = inside.map_err(|damage| damage.to_string())?;
        let (addresses, token) = match (&inside, &start.entry) {
            (None, Entry::Join { addresses, token }) => (addresses.clone(), *token),
            (None, Entry::Found { others, token, .. }) => (others.clone(), *token),
            (Some(inside), _) => (Vec::new(), inside.identity.token),
            (None, Entry::Resume) => unreachable!("who does not ask to be let in knows who it is"),
        };
        let mut peers = Peers::new(&token, start.seed);
        peers.set_name([0; 16], Party::newcomer(start.newcomer.incarnation));
        let outside = Outside::new(addresses, token, start.seed);
        let outside = if matches!(start.entry, Entry::Found { .. }) { outside.founds() } else { outside };
        Ok(Manager {
            start,
            outside,
            inside,
            peers,
            cores: Cores::new(cores),
            refusals: Vec::new(),
            book: Book::default(),
            told: 0,
            effects: Vec::new(),
            writes: Writes::default(),
            has_begun: false,
            stopping: false,
            failure: None,
        })
    }

    /// Who it is and what it knows of the others, which its file may not say yet; `None` while no cluster has let it in.
    pub fn known(&self) -> Option<&Identity> {
        self.inside.as_ref().map(|inside| &inside.identity)
    }

    /// The term in which it leads the managers, if it does.
    pub fn leads(&self) -> Option<u64> {
        self.inside.as_ref().and_then(|inside| inside.agreement.term_led())
    }

    /// Why it stopped, if it was not asked to.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    // --- stages of the tick ---

    /// With the first tick the clock is known.
    fn begin(&mut self, now_us: u64) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        if let Some(inside) = &mut self.inside {
            inside.begin(now_us);
            if self.start.files.identity.is_none() {
                // Before the log, which bears the name that only this file knows.
                inside.keep(&mut self.effects);
            }
        }
    }

    /// Who speaks, and what they say.
    fn heed(&mut self, now_us: u64) {
        for (id, greeted) in self.peers.greetings(now_us) {
            match &self.inside {
                Some(inside) => greet_inside(inside, &mut self.peers, (id, greeted)),
                None => self.outside.on_greeted(id, &self.start, &mut self.peers),
            }
        }
        for (id, message) in self.peers.messages() {
            match &mut self.inside {
                Some(inside) => heed_inside(now_us, inside, &mut self.peers, (id, message)),
                None => self.heed_outside(now_us, id, message),
            }
        }
        for node in self.peers.take_refusing() {
            self.inside.iter_mut().for_each(|inside| inside.on_refused(now_us, node));
        }
        if self.peers.end_distrusted() && self.inside.is_none() {
            let reason =
                "the token is not this cluster's; each of its nodes prints the line to join with when it starts";
            self.fail(format!("the cluster does not let this node in: {reason}"));
        }
        if let Some(text) = self.peers.poll_distrusted(now_us) {
            eprintln!("zerohop: {text}");
        }
    }

    fn heed_outside(&mut self, now_us: u64, id: ConnectionId, message: Message) {
        match message {
            Message::Elsewhere { address } => self.outside.go_to(address),
            Message::Refused { reason } => self.fail(format!("the cluster does not let this node in: {reason}")),
            Message::Enlisted { cluster, node, news } => self.enter(now_us, cluster, node, &news),
            _ => {}
        }
        self.peers.close(id);
    }

    /// The cluster let this node in.
    fn enter(&mut self, now_us: u64, cluster: [u8; 16], node: NodeId, news: &News) {
        let Ok(table) = Table::decode(&news.table) else { return };
        let (token, voters) = (self.outside.token(), news.voters.clone());
        let identity = Identity { cluster, token, node, voters, table };
        match Inside::new(now_us, identity, &self.start) {
            Ok(inside) => {
                inside.keep(&mut self.effects);
                self.inside = Some(inside);
            }
            Err(damage) => self.fail(damage.to_string()),
        }
    }

    /// Nobody who was asked is in a cluster: this node founds one.
    fn found(&mut self, now_us: u64) {
        if self.inside.is_some() || !self.outside.is_alone() {
            return;
        }
        let Some(identity) = founder(&self.start.entry) else { return };
        match Inside::new(now_us, identity, &self.start) {
            Ok(inside) => {
                // Before the log, which bears the name that only this file knows.
                inside.keep(&mut self.effects);
                self.inside = Some(inside);
            }
            Err(damage) => self.fail(damage.to_string()),
        }
    }

    fn fail(&mut self, reason: String) {
        self.failure = self.failure.take().or(Some(reason));
        self.stopping = true;
    }

    /// The node talks with itself until nothing is left to say, and what others are to hear is on its way.
    fn agree(&mut self, now_us: u64) {
        let Some(inside) = &mut self.inside else { return };
        for _ in 0..ROUNDS_MAX {
            inside.succeed(now_us);
            inside.agree(now_us, &mut self.effects);
            inside.refresh(now_us);
            inside.renew(now_us);
            inside.judge(now_us);
            inside.wish(now_us);
            inside.watch(now_us);
            inside.plan(now_us);
            inside.hand_over(now_us);
            inside.carry_out();
            inside.send_proposals(now_us);
            let me = inside.me();
            let mut is_heeded = false;
            for (to, message) in std::mem::take(&mut inside.outbox) {
                is_heeded |= to == me;
                match to == me {
                    true => inside.heed(now_us, me, message),
                    false => self.peers.send(to, &message),
                }
            }
            if !is_heeded
                && inside.outbox.is_empty()
                && inside.agreement_deadline_us().is_none_or(|at_us| at_us > now_us)
            {
                break;
            }
        }
        for (id, answer) in std::mem::take(&mut inside.enlisted) {
            self.peers.reply(id, &answer);
        }
        if let Some(reason) = inside.agreement.take_failure() {
            eprintln!("zerohop: this node is a silent manager from now on: {reason}");
        }
    }

    /// A node that was removed ends, once nobody counts on its vote; and one that somebody else is by now ends at once.
    fn leave(&mut self) {
        let Some(inside) = &mut self.inside else { return };
        if inside.is_copy {
            return;
        }
        if let Some(why) = inside.imposture() {
            inside.is_copy = !inside.has_come;
            eprintln!("zerohop: {why}");
            match inside.is_copy {
                true => inside.keep(&mut self.effects),
                false => self.fail(why),
            }
            return;
        }
        match inside.rival() {
            Some(true) => {
                // The other one has more than this directory by now.
                inside.is_copy = true;
                return inside.keep(&mut self.effects);
            }
            Some(false) => return self.fail(TWO.to_owned()),
            None => {}
        }
        let is_needed = inside.agreement.leads() || inside.identity.voters.all().contains(&inside.me());
        if inside.table().is_gone(inside.me()) && !is_needed {
            self.fail(REMOVED.to_owned());
        }
    }

    /// Connections to whom this node talks first: the managers, or whoever lets it in.
    fn connect(&mut self, now_us: u64) {
        self.peers.close_silent(now_us);
        let Some(inside) = &mut self.inside else { return self.outside.ask(now_us, &mut self.peers) };
        let searched = inside.searched(now_us, |node| self.peers.has(node));
        let lost = self.peers.lost();
        let mut managers = inside.identity.voters.all();
        managers.extend(inside.agreement.voters().all());
        managers.extend(inside.leader);
        managers.extend(searched);
        managers.extend(lost.into_iter().filter(|node| inside.grants_to(*node)));
        managers.retain(|node| *node != inside.me() && !self.peers.has(*node));
        for (node, address) in managers.into_iter().filter_map(|node| Some((node, inside.address(node)?))) {
            self.peers.dial(now_us, &address, Some(node));
        }
    }

    /// What is newer goes to the file, to the cores, and, from who leads, to everybody: voters would hear of it with the next
    /// heartbeat, and slots that were handed over wait for that.
    fn tell(&mut self, now_us: u64, hops: &mut Vec<(CoreId, HopBatch)>) {
        hops.append(&mut self.refusals);
        let Some(inside) = &mut self.inside else { return };
        if self.book.note(now_us, &inside.identity) {
            let gone = self.peers.nodes().into_iter().filter(|node| inside.is_dismissed(*node));
            let news = Message::News(inside.news_of_table());
            gone.for_each(|node| self.peers.dismiss(node, &news));
        }
        if self.book.take_due(now_us) {
            inside.keep(&mut self.effects);
        }
        self.cores.tell(now_us, inside, hops);
        let version = inside.agreement.table().version();
        if inside.agreement.leads() && self.told < version {
            self.told = version;
            let news = Message::News(inside.news());
            self.peers.nodes().into_iter().for_each(|node| self.peers.send(node, &news));
        }
    }

    fn deadline_us(&self, now_us: u64) -> u64 {
        let Some(inside) = &self.inside else { return self.outside.deadline_us() };
        // What waits for an answer has no deadline of its own.
        let asking = (inside.asks_cores() && inside.proposals.is_empty()).then_some(inside.held_us);
        let all = [
            inside.agreement_deadline_us(),
            inside.succession_deadline_us(),
            inside.lease_deadline_us(now_us),
            inside.proposals.deadline_us().filter(|_| inside.acts()),
            inside.return_deadline_us(now_us),
            inside.search_deadline_us(),
            inside.read_deadline_us(),
            self.peers.deadline_us(now_us),
            asking,
            inside.moving.deadline_us(now_us),
            inside.report_deadline_us(),
            inside.wish_deadline_us(),
            inside.watch_deadline_us(),
            self.book.deadline_us(),
            inside.plan_deadline_us(),
        ];
        all.into_iter().flatten().min().unwrap_or(now_us + WRITTEN_US)
    }
}

impl Machine for Manager {
    type Message = HopBatch;

    fn tick(&mut self, mut input: TickInput<'_, HopBatch>, output: &mut TickOutput<HopBatch>) {
        let now_us = input.now.monotonic_us;
        self.begin(now_us);
        self.receive(&mut input);
        self.heed(now_us);
        self.found(now_us);
        self.agree(now_us);
        self.leave();
        self.connect(now_us);
        self.tell(now_us, &mut output.hops);
        self.peers.flush(&mut self.effects);
        self.writes.pace(&mut self.effects);
        output.effects.append(&mut self.effects);
        output.deadline_us = Some(self.deadline_us(now_us).max(now_us + 1));
        if self.stopping {
            self.stop(output);
        }
    }
}

impl Manager {
    fn stop(&mut self, output: &mut TickOutput<HopBatch>) {
        if self.failure.is_some() {
            for core in self.cores.all() {
                let mut batch = HopBatch::default();
                batch.controls.push(Control::Shutdown);
                output.hops.retain(|(to, _)| *to != core);
                output.hops.push((core, batch));
            }
        }
        output.effects.push(Effect::Stop);
    }
}

/// Who the first node of a cluster is.
fn founder(entry: &Entry) -> Option<Identity> {
    let Entry::Found { cluster, token, .. } = entry else { return None };
    let (cluster, token, node) = (*cluster, *token, NodeId(1));
    Some(Identity { cluster, token, node, voters: Default::default(), table: Table::new() })
}

#[cfg(test)]
mod tests;
