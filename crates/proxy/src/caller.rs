//! One client of the proxy.

use crate::classes::ClassNumber;
use crate::identify::is_name;
use crate::identity::Identity;
use crate::label;
use crate::leave::Leaving;
use crate::line::TURN_REQUESTS;
use crate::order::Order;
use crate::qos::Promises;
use crate::relay::Relay;
use base::ConnectionId;
use base::limits::{CALLER_REQUESTS_MAX, OUTPUT_PAUSE_BYTES, RECEIVE_BYTES};
use base::planted::{Bug, is_planted};
use base::street::Effect;
use client::{Hold, Qos};
use session::acl::User;
use session::{Input, Output};
use std::sync::Arc;
use wire::Arguments;

/// Where a caller came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whence {
    /// Its address.
    pub peer: String,
    /// That at which it came.
    pub local: String,
    /// Which listener that is.
    pub listener: u16,
    /// When.
    pub since_us: u64,
}

/// `CLIENT SETINFO`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Library {
    pub name: Vec<u8>,
    pub version: Vec<u8>,
}

impl Library {
    /// What is said of it counts from now on.
    pub fn change(&mut self, name: Option<Vec<u8>>, version: Option<Vec<u8>>) {
        if let Some(name) = name {
            self.name = name;
        }
        if let Some(version) = version {
            self.version = version;
        }
    }
}

/// `CLIENT INFO` or `CLIENT LIST`, on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// Its number.
    pub number: u64,
    pub is_list: bool,
    /// How long its caller had been there, and what it had said of itself; later requests of a pipeline may change that.
    pub age_s: u64,
    pub name: Vec<u8>,
    pub library: Library,
    /// Who it is, where that is not for the store to say.
    pub user: Option<Vec<u8>>,
}

/// What keeps requests of a caller on a connection of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Between `MULTI` and `EXEC`.
    pub transaction: bool,
    /// Keys are watched.
    pub watch: bool,
    /// It knows the number of that connection.
    pub named: bool,
    /// Something of the transaction was refused before it had a connection: it is not carried out.
    pub doomed: bool,
}

/// Where the requests that were sent last are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On lanes.
    Lanes,
    /// On the caller's own connection.
    Own,
}

/// What a caller whose requests are not looked at waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// All its replies.
    Answers,
    /// Fewer requests on their way, or fewer bytes that it does not read.
    Room,
    /// A seat that is being opened, or that is full.
    Seat(usize),
}

/// One client.
pub(crate) struct Caller {
    pub id: ConnectionId,
    pub input: Input,
    pub output: Output,
    pub order: Order,
    pub identity: Identity,
    /// The proxy decides what it may do.
    pub is_guarded: bool,
    /// Who it is there; `None`: it has to log in.
    pub user: Option<Arc<User>>,
    /// The group of lanes that it shares; right as long as its identity and its hurry stay.
    pub group: Option<usize>,
    /// Among what it is owed may be requests that wait for others' commits.
    pub has_collapsed: bool,
    /// The version of the routing table by which its requests on their way were sent.
    pub table_version: u64,
    /// Of a transaction that no key says where to begin, what came so far.
    pub queued: Vec<Vec<u8>>,
    /// How often it found nobody where requests without keys went, so that they go elsewhere.
    pub detours: usize,
    /// The seat of its own connection.
    pub own: Option<usize>,
    /// The seat of a connection that shows whether it is who it says it is.
    pub proof: Option<usize>,
    pub held: Held,
    pub place: Place,
    pub wait: Option<Wait>,
    /// The seat in whose line it stands.
    pub line: Option<usize>,
    /// Seats for which the request that comes next has stood in line already.
    pub stood_for: Vec<usize>,
    /// Requests that are left of its turn at a lane that takes few.
    pub turn_left: u32,
    /// Where it came from, and through which listener.
    pub whence: Whence,
    /// Its class.
    pub class: ClassNumber,
    /// By when it wants its replies.
    pub qos: Qos,
    /// It said so itself.
    pub named_qos: bool,
    /// The version of the classes by which that was found; 0: not yet.
    pub classes_version: u64,
    /// How that was kept.
    pub promises: Promises,
    /// What it called itself.
    pub name: Vec<u8>,
    /// What it said of the library that it speaks by.
    pub library: Library,
    /// The request on its own connection whose reply describes that.
    pub described: Option<Box<Described>>,
    /// What it calls itself if its transaction is carried out: the number of its `EXEC`, once that is on its way.
    pub name_to_be: Option<(Option<u64>, Vec<u8>)>,
    /// Its own connection and this one are one: bytes go to and fro unread.
    pub relay: Option<Relay>,
    /// A request that was in blocks and has to wait.
    pub long_request: Option<Vec<u8>>,
    /// Its way to the process that takes over.
    pub leaving: Option<Leaving>,
    /// What it sends is ciphertext, which this process alone can read.
    pub is_sealed: bool,
    /// As long as what it asked before this number is not answered, it may be waiting for an element or for copies.
    pub waits_before: u64,
    /// Its client sends no more: it is closing once its requests have been looked at.
    pub has_hung_up: bool,
    /// Once its replies have left it is closed, and no more is read.
    pub is_closing: bool,
    /// It is being closed whatever it is owed.
    pub is_abandoned: bool,
    is_paused: bool,
    is_dirty: bool,
}

impl Caller {
    /// One that has just come.
    pub fn new(id: ConnectionId, whence: Whence, is_sealed: bool) -> Caller {
        Caller {
            id,
            input: Input::default(),
            output: Output::default(),
            order: Order::default(),
            identity: Identity::NOBODY,
            is_guarded: false,
            user: None,
            group: None,
            has_collapsed: false,
            table_version: 0,
            queued: Vec::new(),
            detours: 0,
            own: None,
            proof: None,
            held: Held::default(),
            place: Place::Lanes,
            wait: None,
            line: None,
            stood_for: Vec::new(),
            turn_left: TURN_REQUESTS,
            whence,
            class: ClassNumber::DEFAULT,
            qos: Qos::Batch,
            named_qos: false,
            classes_version: 0,
            promises: Promises::default(),
            name: Vec::new(),
            library: Library::default(),
            described: None,
            name_to_be: None,
            relay: None,
            long_request: None,
            leaving: None,
            is_sealed,
            waits_before: 0,
            has_hung_up: false,
            is_closing: false,
            is_abandoned: false,
            is_paused: false,
            is_dirty: false,
        }
    }

    /// The reply to the request of that number. Whether this is the first change since the last flush.
    #[inline]
    pub fn answer(&mut self, number: u64, reply: &[u8]) -> bool {
        if self.name_to_be.is_some() {
            self.note_exec(number, reply);
        }
        let described = self.described.take_if(|described| described.number == number);
        let described = described.and_then(|described| label::as_direct(&self.whence, &described, reply));
        let reply = described.as_deref().unwrap_or(reply);
        let protocol = self.identity.reply_protocol();
        let output = &mut self.output;
        self.order.answer(number, reply, |reply| output.reply(protocol).raw(reply));
        !std::mem::replace(&mut self.is_dirty, true)
    }

    /// Whether what it waits for is there, as far as it alone can tell.
    #[inline]
    pub fn may_go_on(&self) -> bool {
        match self.wait {
            None | Some(Wait::Seat(_)) => false,
            Some(Wait::Answers) => self.order.owed() == 0,
            Some(Wait::Room) => self.has_room() && !is_planted(Bug::M72RoomUnnoticed),
        }
    }

    /// Whether another request may be on its way.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.order.owed() < CALLER_REQUESTS_MAX
            && self.output.pending_bytes() + self.order.early_bytes() <= OUTPUT_PAUSE_BYTES
    }

    /// Stops reading from it while it waits and has more than one receive of requests lying here, and reads again afterwards.
    pub fn pace(&mut self, effects: &mut Vec<Effect>) {
        if self.leaving.is_some() {
            // It is still, and stays so until it is known where it goes on.
            return;
        }
        let has_much = self.input.len() > 4 * RECEIVE_BYTES && !is_planted(Bug::M71CallersReadOn);
        let should_pause = self.wait.is_some() && has_much;
        if should_pause != self.is_paused {
            self.is_paused = should_pause;
            effects.push(match should_pause {
                true => Effect::PauseReceive { connection: self.id },
                false => Effect::ResumeReceive { connection: self.id },
            });
        }
    }

    /// It does not leave now: it is read as before.
    pub fn stay(&mut self, effects: &mut Vec<Effect>) {
        if self.leaving.take().is_some() && !self.is_paused {
            effects.push(Effect::ResumeReceive { connection: self.id });
        }
        if self.relay.is_none() {
            self.pace(effects);
        }
    }

    /// Ends what hung up: behind the requests that it has sent, or at once where bytes go to and fro unread. Whether the last
    /// of its replies may have left already.
    pub fn end_if_hung_up(&mut self, effects: &mut Vec<Effect>) -> bool {
        if !self.has_hung_up {
            return false;
        }
        if self.relay.is_some() {
            effects.push(Effect::Close { connection: self.id });
        }
        self.is_closing |= self.relay.is_some() || self.wait.is_none();
        self.is_closing && self.relay.is_none()
    }

    /// Hands over what may leave, and closes the connection if that was the last of it. Whether something waits for the street to
    /// have sent what it was handed.
    #[inline]
    pub fn flush(&mut self, spare: impl FnOnce() -> Vec<u8>, effects: &mut Vec<Effect>) -> bool {
        self.is_dirty = false;
        if let Some(buffer) = self.output.take_sendable(&mut usize::MAX.clone(), spare) {
            effects.push(Effect::Send { connection: self.id, buffer });
        }
        if self.is_closing && self.output.is_empty() && !self.output.is_sending() && self.order.owed() == 0 {
            effects.push(Effect::Close { connection: self.id });
        }
        let is_relay_behind = self.relay.as_ref().is_some_and(Relay::awaits_sent);
        is_relay_behind || (self.output.is_sending() && (self.is_closing || !self.output.is_empty()))
    }

    /// Bytes that are nobody's reply in particular. Whether this is the first change since the last flush.
    pub fn say(&mut self, bytes: &[u8]) -> bool {
        self.output.reply(self.identity.reply_protocol()).raw(bytes);
        !std::mem::replace(&mut self.is_dirty, true)
    }

    /// A request that holds its own connection, or lets go of it, is on its way.
    pub fn note(&mut self, hold: Hold) {
        let Held { transaction, watch, named, doomed } = &mut self.held;
        match hold {
            Hold::Begin => *transaction = true,
            Hold::Watch => *watch = true,
            // Without a transaction both are refused, and what is watched stays watched.
            Hold::End if *transaction => (*transaction, *watch, *doomed) = (false, false, false),
            Hold::Unwatch if !*transaction => *watch = false,
            Hold::Named => *named = true,
            Hold::End | Hold::Unwatch | Hold::Wait | Hold::Described => {}
        }
    }

    /// A long request that had to wait is the first one again.
    pub fn put_back_long(&mut self) {
        if let Some(request) = self.long_request.take() {
            self.input.put_back(&request);
        }
    }

    /// A request of its transaction may give it a name: `CLIENT SETNAME`, `HELLO … SETNAME`.
    pub fn note_name(&mut self, arguments: Arguments<'_>) {
        let is = |index: usize, word: &str| arguments[index].eq_ignore_ascii_case(word.as_bytes());
        let at = match arguments.len() {
            3 if is(0, "client") && is(1, "setname") => Some(1),
            4.. if is(0, "hello") => (2..arguments.len() - 1).find(|&index| is(index, "setname")),
            _ => None,
        };
        if let Some(at) = at.filter(|at| is_name(&arguments[at + 1])) {
            self.name_to_be = Some((None, arguments[at + 1].to_vec()));
        }
    }

    /// Its transaction is over: `EXEC`, the last request that was sent, or nothing carries it out.
    pub fn end_transaction(&mut self, is_exec: bool) {
        match &mut self.name_to_be {
            Some((number, _)) if is_exec => *number = Some(self.order.next() - 1),
            _ => self.name_to_be = None,
        }
        self.note(Hold::End);
    }

    /// `EXEC` with arguments: any node gives up the transaction and what is watched, if there is either.
    pub fn abort_transaction(&mut self) {
        self.end_transaction(false);
        self.held.watch = false;
    }

    /// The reply to `EXEC` may say that it has a name.
    fn note_exec(&mut self, number: u64, reply: &[u8]) {
        if let Some((_, name)) = self.name_to_be.take_if(|(exec, _)| *exec == Some(number))
            && reply[0] == b'*'
            && !reply.starts_with(b"*-1")
        {
            self.name = name;
        }
    }

    /// Whether it began a transaction that is on no node yet.
    pub fn is_nowhere(&self) -> bool {
        self.held.transaction && !self.held.watch && self.own.is_none()
    }

    /// Whether its next request would be one of a transaction.
    pub fn is_in_transaction(&self) -> bool {
        match self.relay.as_ref().and_then(|relay| relay.guard.as_ref()) {
            Some(guard) => guard.is_in_transaction,
            None => self.held.transaction,
        }
    }

    /// Whether its requests have to go to its own connection.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.held.transaction || self.held.watch
    }
}
