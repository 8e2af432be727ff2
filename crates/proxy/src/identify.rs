//! The commands that say who a caller is: answered here, by what the upstream says to the connection that they ask for.

use crate::ask::Verdict;
use crate::caller::{Caller, Held, Wait};
use crate::identity::Identity;
use crate::machine::ProxyMachine;
use crate::qos;
use crate::seat::Hurry;
use base::street::{Effect, Now};
use client::Qos;
use client::cluster::NodeNumber;
use wire::number::parse_integer;
use wire::request::encode;
use wire::{Arguments, Reply};

/// What such a command asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    /// To be somebody else from now on.
    Become {
        identity: Identity,
        /// To be called so.
        name: Option<Vec<u8>>,
        /// By a password.
        proves: bool,
        reply: ReplyOf,
    },
    /// To be called so.
    Name(Vec<u8>),
    /// To hear how it is called.
    TellName,
    /// To be known as speaking by this library, or this version of it.
    Library { name: Option<Vec<u8>>, version: Option<Vec<u8>> },
    /// Something that nodes of a cluster are told, and that the proxy sees to there.
    OfNodes,
    /// That its requests are answered within so long, or whenever.
    Within(Qos),
    /// How that was kept.
    TellQos,
    /// To be as after connecting.
    Reset,
    /// To be gone.
    Quit,
    /// Something that nobody understands.
    Unclear,
    /// Something that the upstream will refuse, or answer without remembering it.
    Other,
}

/// What the reply to a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyOf {
    Ok,
    /// The first one of the connection's greeting: `HELLO 3`.
    Greeting,
    /// The upstream's own: `HELLO 2`, which a greeting does not say.
    Upstream,
}

impl Wish {
    fn of(caller: &Caller, arguments: Arguments<'_>) -> Wish {
        let words: Vec<&[u8]> = arguments.iter().collect();
        let is = |index: usize, word: &str| words[index].eq_ignore_ascii_case(word.as_bytes());
        let become_ = |identity, proves| Wish::Become { identity, name: None, proves, reply: ReplyOf::Ok };
        match words.len() {
            2 if is(0, "auth") => become_(caller.identity.logged_in(None, words[1]), true),
            3 if is(0, "auth") => become_(caller.identity.logged_in(Some(words[1]), words[2]), true),
            2 if is(0, "select") => match parse_integer(words[1]).map(u32::try_from) {
                Some(Ok(database)) => become_(Identity { database, ..caller.identity.clone() }, false),
                _ => Wish::Other,
            },
            1 if is(0, "reset") => Wish::Reset,
            _ if is(0, "quit") => Wish::Quit,
            1 if is(0, "readonly") || is(0, "readwrite") || is(0, "asking") => Wish::OfNodes,
            1 if is(0, "zh.qos") => Wish::TellQos,
            2 if is(0, "zh.qos") => qos::read(words[1]).map_or(Wish::Unclear, Wish::Within),
            _ if is(0, "zh.qos") => Wish::Unclear,
            2.. if is(0, "hello") => Wish::of_hello(caller, &words),
            3 if is(0, "client") && is(1, "setname") && is_name(words[2]) => Wish::Name(words[2].to_vec()),
            2 if is(0, "client") && is(1, "getname") => Wish::TellName,
            4 if is(0, "client") && is(1, "setinfo") && is_name(words[3]) => {
                let told = |word: &str| is(2, word).then(|| words[3].to_vec());
                match (told("lib-name"), told("lib-ver")) {
                    (None, None) => Wish::Other,
                    (name, version) => Wish::Library { name, version },
                }
            }
            _ => Wish::Other,
        }
    }

    fn of_hello(caller: &Caller, words: &[&[u8]]) -> Wish {
        let (protocol, reply) = match words[1] {
            b"2" => (2, ReplyOf::Upstream),
            b"3" => (3, ReplyOf::Greeting),
            _ => return Wish::Other,
        };
        let (mut identity, mut name, mut proves) = (Identity { protocol, ..caller.identity.clone() }, None, false);
        let mut rest = &words[2..];
        loop {
            rest = match rest {
                [] => return Wish::Become { identity, name, proves, reply },
                [word, user, password, rest @ ..] if word.eq_ignore_ascii_case(b"auth") => {
                    (identity, proves) = (identity.logged_in(Some(user), password), true);
                    rest
                }
                [word, new, rest @ ..] if word.eq_ignore_ascii_case(b"setname") && is_name(new) => {
                    name = Some(new.to_vec());
                    rest
                }
                _ => return Wish::Other,
            };
        }
    }
}

/// Whether Redis takes it as a client's name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

impl ProxyMachine {
    /// The same of a caller that holds something on a connection of its own.
    pub(crate) fn ask_caller_held(
        &mut self,
        now: Now,
        caller: &mut Caller,
        node: NodeNumber,
        arguments: Arguments<'_>,
        request: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        let is = |words: &[&str]| words.iter().any(|word| arguments[0].eq_ignore_ascii_case(word.as_bytes()));
        match caller.held.transaction {
            // Behind a reset the store would not know it any more.
            _ if caller.is_guarded && is(&["reset"]) => self.ask_caller(now, caller, arguments, request, effects),
            // They are queued, and change who the connection is when it runs.
            _ if !self.routes.table.is_cluster() => self.ask_relay(now, caller, node, request, effects),
            // Queued there, where it holds for this transaction; nobody else gets that connection.
            true if !is(&["reset", "quit"]) => {
                if let Some(own) = caller.own {
                    self.seats.get(own).is_spoiled = true;
                }
                caller.note_name(arguments);
                self.ask_own(now, caller, node, request)
            }
            _ => self.ask_caller(now, caller, arguments, request, effects),
        }
    }

    pub(crate) fn ask_caller(
        &mut self,
        now: Now,
        caller: &mut Caller,
        arguments: Arguments<'_>,
        request: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        match Wish::of(caller, arguments) {
            Wish::Become { .. } | Wish::Reset | Wish::Within(_) if caller.order.owed() > 0 => {
                Verdict::Wait(Wait::Answers)
            }
            // A transaction on its way may give it another one.
            Wish::Name(_) | Wish::TellName if caller.name_to_be.is_some() && caller.order.owed() > 0 => {
                Verdict::Wait(Wait::Answers)
            }
            Wish::Become { identity, name, proves, reply } => {
                self.become_somebody(now, caller, (identity, name, proves), (reply, request), effects)
            }
            Wish::Name(name) => {
                caller.name = name;
                match caller.held.named {
                    true => self.ask_any(now, caller, request),
                    false => self.answer_ok(caller),
                }
            }
            Wish::TellName => self.tell_name(caller),
            Wish::Library { name, version } => {
                caller.library.change(name, version);
                self.answer_ok(caller)
            }
            Wish::OfNodes if self.routes.table.is_cluster() => self.answer_ok(caller),
            Wish::OfNodes => self.ask_any(now, caller, request),
            Wish::Within(qos) => {
                self.leave_group(caller);
                (caller.qos, caller.named_qos) = (qos, true);
                self.answer_ok(caller)
            }
            Wish::TellQos => {
                let mut reply = Vec::new();
                qos::tell(caller.qos, caller.promises, &mut Reply::new(&mut reply, caller.identity.reply_protocol()));
                self.answer_now(caller, &reply);
                Verdict::Done
            }
            Wish::Unclear => {
                self.answer_now(caller, qos::UNCLEAR);
                Verdict::Done
            }
            Wish::Reset => {
                self.forget(now, caller, self.nobody(), effects);
                self.welcome(caller);
                (caller.name, caller.held) = (Vec::new(), Held::default());
                (caller.named_qos, caller.classes_version) = (false, 0);
                (caller.name_to_be, caller.queued) = (None, Vec::new());
                self.answer_now(caller, wire::reply::RESET);
                Verdict::Done
            }
            Wish::Quit => {
                self.answer_ok(caller);
                caller.is_closing = true;
                Verdict::Done
            }
            Wish::Other => self.ask_any(now, caller, request),
        }
    }

    /// A request about the caller for its own connection, wherever that leads.
    fn ask_any(&mut self, now: Now, caller: &mut Caller, request: &[u8]) -> Verdict {
        let node = match caller.own {
            Some(own) => self.seats.get(own).node,
            None => self.routes.any(caller),
        };
        self.ask_own(now, caller, node, request)
    }

    fn tell_name(&mut self, caller: &mut Caller) -> Verdict {
        let mut reply = Vec::new();
        let mut writer = Reply::new(&mut reply, caller.identity.reply_protocol());
        match caller.name.is_empty() {
            true => writer.null(),
            false => writer.bulk(&caller.name),
        }
        self.answer_now(caller, &reply);
        Verdict::Done
    }

    fn answer_ok(&mut self, caller: &mut Caller) -> Verdict {
        self.answer_now(caller, wire::reply::OK);
        Verdict::Done
    }

    /// A caller becomes somebody whose lane is open, or hears why it cannot.
    fn become_somebody(
        &mut self,
        now: Now,
        caller: &mut Caller,
        (identity, name, proves): (Identity, Option<Vec<u8>>, bool),
        (reply, request): (ReplyOf, &[u8]),
        effects: &mut Vec<Effect>,
    ) -> Verdict {
        let (asks, node) = (!self.knows_store(), self.routes.node(self.routes.any(caller)));
        let number = match (proves, caller.proof) {
            (false, _) => {
                let group = self.seats.group(&identity, Hurry::of(caller.qos));
                self.seats.shared(now.monotonic_us, group, node, asks)
            }
            // A connection that somebody opened with this password earlier says nothing of what the store thinks of it now.
            (true, None) => *caller.proof.insert(self.seats.proof(now.monotonic_us, node, &identity, caller.id, asks)),
            (true, Some(number)) => number,
        };
        let seat = self.seats.get(number);
        if seat.refusal.is_none() && !seat.lane.is_open() && !seat.lane.is_down(now.monotonic_us) {
            self.seats.touch(number);
            return Verdict::Wait(self.wait_at(caller, number));
        }
        let greeting = seat.lane.greeted().get(identity.hello_reply()).cloned().unwrap_or_default();
        let (refusal, is_open) = (seat.refusal.clone(), seat.lane.is_open());
        let refusal = refusal.or_else(|| (!is_open).then(|| self.down_error(number)));
        if let Some(number) = caller.proof.take() {
            self.give_up_own(now, number, effects);
        }
        if let Some(error) = refusal {
            self.answer_now(caller, &error);
            return Verdict::Done;
        }
        let is_other = identity != caller.identity;
        if is_other && caller.held.watch {
            // What is watched stays so on its connection.
            let node = self.routes.any(caller);
            return self.ask_relay(now, caller, node, request, effects);
        }
        if is_other {
            self.forget(now, caller, identity, effects);
            caller.held = Held::default();
        }
        caller.name = name.unwrap_or_else(|| std::mem::take(&mut caller.name));
        match reply {
            ReplyOf::Ok => self.answer_ok(caller),
            ReplyOf::Greeting => {
                self.answer_now(caller, &greeting);
                Verdict::Done
            }
            ReplyOf::Upstream => {
                let mut request = Vec::new();
                encode([b"HELLO".as_slice(), b"2"], &mut request);
                self.ask_any(now, caller, &request)
            }
        }
    }

    /// A caller's connections are another identity's from now on.
    fn forget(&mut self, now: Now, caller: &mut Caller, identity: Identity, effects: &mut Vec<Effect>) {
        self.leave_group(caller);
        (caller.identity, caller.classes_version) = (identity, 0);
        if let Some(number) = caller.own.take() {
            self.seats.get(number).is_spoiled |= caller.held != Held::default();
            self.give_up_own(now, number, effects);
        }
    }
}
