//! A request whose keys are of several slots of a cluster: a part for each slot, asked of its holder beside all others.
//!
//! ```text
//!  MGET a b c ─► slots of a, c │ of b ─► their holders' links, all before anybody waits
//!                                            │ MOVED, ASK: that part goes on, as any request does
//!                                            └─► the last answer ─► put together ─► whoever asked is told
//! ```
//!
//! Parts are carried out when they arrive, not at one moment. Nobody sits at a link for them: the background thread reads their answers, so
//! that a thread, a task and an inbox wait for the whole in the same way. That this is needed is known from the table; before there is one, from
//! a node that refuses the whole (`CROSSSLOT`, or `MOVED` for one of its keys), which is then asked for the table.

use super::background::{Core, is_in_hurry};
use super::cluster::{SentOn, Way};
use super::error::Error;
use super::gathered::{Answered, put_together};
use super::seat::{Answer, Seat};
use client::Qos;
use client::desk::{Ask, Place};
use client::spread::{Gathering, Part, Spread, split};
use io::clock::monotonic_us;
use io::sleepers::Beds;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use wire::{Arguments, ParseLimits, Parsed, parse};

/// The longest name of a command that is spread, bytes.
const NAME_BYTES_MAX: usize = 8;

/// How often there is a key in a command of that name, and how its replies are put together, if its keys may be of several slots each for
/// itself.
pub(super) fn apart(name: &[u8]) -> Option<(usize, Gathering)> {
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    match Spread::of(std::str::from_utf8(lower).ok()?) {
        Spread::Apart { step, gathering } => Some((step, gathering)),
        _ => None,
    }
}

/// See the module.
pub(crate) struct Parts {
    gathering: Gathering,
    caller: u64,
    qos: Qos,
    is_read: bool,
    deadline_us: u64,
    timeout: Duration,
    /// Of who waits for the whole.
    seat: Seat,
    inside: Mutex<Inside>,
}

struct Inside {
    parts: Vec<Asked>,
    /// Parts without an answer.
    owed: usize,
}

/// One part.
struct Asked {
    part: Part,
    /// At which link it is on its way.
    at: Option<(usize, Place)>,
    times_sent_on: u8,
    answer: Option<Answer>,
}

impl Parts {
    /// Those of a request, if it is one that a single node could not carry out. `seat` is told the whole.
    pub fn of(ask: &Ask<'_>, timeout: Duration, seat: Seat) -> Option<Arc<Parts>> {
        let mut spans = Vec::new();
        let Parsed::Request { .. } = parse(ask.request, 0, &mut spans, &ParseLimits::AUTHENTICATED) else {
            return None;
        };
        let arguments = Arguments::new(ask.request, &spans);
        let (step, gathering) = apart(arguments.get(0)?)?;
        let parts: Vec<Asked> = split(arguments, step)?
            .into_iter()
            .map(|part| Asked { part, at: None, times_sent_on: 0, answer: None })
            .collect();
        let Ask { caller, qos, is_read, deadline_us, .. } = *ask;
        let inside = Mutex::new(Inside { owed: parts.len(), parts });
        Some(Arc::new(Parts { gathering, caller, qos, is_read, deadline_us, timeout, seat, inside }))
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of one; who waits for the whole is told by [`Parts::tell`], when no lock is held.
    pub fn put(&self, number: u32, answer: Answer) {
        let answer = answer.map_err(|error| match error {
            Error::TimedOut { address, .. } => Error::TimedOut { address, after: self.timeout },
            other => other,
        });
        self.lock().put(number, answer);
    }

    /// If all are answered, whoever waits for the whole hears of it: once.
    pub fn tell(&self) {
        let Some(answered) = self.lock().take_all() else { return };
        self.seat.put(put_together(self.gathering, answered));
        self.seat.wake(&mut Beds::default());
    }

    /// A part was sent on; how often it was before.
    pub fn sent_on(&self, number: u32) -> u8 {
        let mut inside = self.lock();
        let Some(asked) = inside.parts.get_mut(number as usize) else { return 0 };
        asked.at = None;
        asked.times_sent_on = asked.times_sent_on.saturating_add(1);
        asked.times_sent_on - 1
    }

    /// Nobody waits any more: what comes is dropped.
    pub fn give_up(&self, core: &Core) {
        let mut inside = self.lock();
        inside.owed = 0;
        let parts = std::mem::take(&mut inside.parts);
        drop(inside);
        parts.into_iter().filter_map(|asked| asked.at).for_each(|(link, place)| core.give_up(link, place));
    }

    fn slots_of_all(&self) -> Vec<(u32, base::Slot)> {
        let slots = |inside: &Inside| inside.parts.iter().map(|asked| asked.part.slot).collect::<Vec<_>>();
        (0..).zip(slots(&self.lock())).collect()
    }
}

impl Inside {
    fn put(&mut self, number: u32, answer: Answer) {
        let Some(asked) = self.parts.get_mut(number as usize) else { return };
        if asked.answer.is_none() {
            // The request is not needed any more.
            (asked.at, asked.part.request, asked.answer) = (None, Vec::new(), Some(answer));
            self.owed -= 1;
        }
    }

    fn take_all(&mut self) -> Option<Vec<Answered>> {
        if self.owed > 0 || self.parts.is_empty() {
            return None;
        }
        let answered = |asked: Asked| Some(Answered { places: asked.part.places, answer: asked.answer? });
        std::mem::take(&mut self.parts).into_iter().map(answered).collect()
    }
}

/// A part that a node sent on.
#[derive(Clone)]
pub(super) struct SentPart {
    pub parts: Arc<Parts>,
    pub number: u32,
    pub sent_on: SentOn,
}

/// A link takes nothing more at present: its number.
pub(super) struct FullAt(pub usize);

impl FullAt {
    /// In words for the caller.
    pub fn error(&self, core: &Core) -> Error {
        Error::Full { address: core.link(self.0).settings.address.clone() }
    }
}

impl Core {
    /// Whether a node refuses a request, if it has parts, because of what it does not have: some say so of the slots, others send the
    /// whole to where one of them is. Nodes of a cluster have one database.
    pub(super) fn is_refused_whole(&self, answer: &Answer) -> bool {
        let is_refusal = |code: &str| matches!(code, "CROSSSLOT" | "MOVED" | "ASK");
        matches!(answer, Err(Error::Server(error)) if is_refusal(error.code())) && self.settings.is_first_database()
    }

    /// Asks all parts of the holders of their slots, or none.
    pub(super) fn ask_parts(self: &Arc<Core>, parts: &Arc<Parts>) -> Result<(), FullAt> {
        let hurry = usize::from(is_in_hurry(parts.qos));
        let mut ways: Vec<(u32, Way)> =
            parts.slots_of_all().into_iter().map(|(number, slot)| (number, self.way_to(slot, hurry))).collect();
        ways.sort_by_key(|(_, way)| way.link);
        for of_link in ways.chunk_by(|(_, one), (_, other)| one.link == other.link) {
            let (_, Way { link, .. }) = of_link[0];
            if !self.link(link).lock().desk.has_room(parts.qos) {
                return Err(FullAt(link));
            }
        }
        self.push_parts(parts, &ways);
        Ok(())
    }

    /// The same when the node of that link refused the whole and there may be no table: on a thread, because that is to be asked for first.
    pub(super) fn ask_parts_when_learnt(self: &Arc<Core>, parts: Arc<Parts>, link: usize) -> Result<(), Error> {
        let core = Arc::clone(self);
        let ask = move || {
            core.learn_at(link, 0);
            if let Err(full) = core.ask_parts(&parts) {
                core.fail(&parts, || full.error(&core));
            }
        };
        let begun = Builder::new().name("zerohop-table".to_owned()).spawn(ask);
        begun.map(drop).map_err(|error| Error::System(error.to_string()))
    }

    /// Parts by their links, those of one link beside each other: they leave in one write.
    fn push_parts(self: &Arc<Core>, parts: &Arc<Parts>, ways: &[(u32, Way)]) {
        match self.start() {
            Ok(()) => ways
                .chunk_by(|(_, one), (_, other)| one.link == other.link)
                .for_each(|of_link| self.push_on_link(parts, of_link)),
            Err(error) => ways.iter().for_each(|(number, _)| parts.put(*number, Err(error.clone()))),
        }
        // Some may have failed at once.
        parts.tell();
    }

    fn push_on_link(self: &Arc<Core>, parts: &Arc<Parts>, ways: &[(u32, Way)]) {
        let (_, Way { link: at, .. }) = ways[0];
        let (link, mut count) = (self.link(at), 0);
        let (mut state, now_us) = (link.lock(), monotonic_us());
        let mut inside = parts.lock();
        for &(number, Way { is_ask, slot, .. }) in ways {
            // Nobody may wait for it any more, and its request be gone.
            let Some(asked) = inside.parts.get_mut(number as usize).filter(|asked| asked.answer.is_none()) else {
                continue;
            };
            let Parts { caller, qos, is_read, deadline_us, .. } = **parts;
            let request = &asked.part.request;
            let ask = Ask { caller, qos, is_read, deadline_us, is_asking: is_ask, slot, request };
            let taken = match state.is_closed {
                true => Err(Error::Closed),
                false => state
                    .desk
                    .ask_in_any_case(now_us, ask, Seat::Part(Arc::clone(parts), number))
                    .map_err(|why| link.refusal(&state, why)),
            };
            match taken {
                Ok(place) => (asked.at, count) = (Some((at, place)), count + 1),
                Err(error) => inside.put(number, Err(error)),
            }
        }
        drop(inside);
        self.mind_silence();
        state.driven += count;
        link.asked.fetch_add(count as u64, std::sync::atomic::Ordering::Relaxed);
        self.drive(link, state, now_us);
    }

    /// Who waits for the whole does so no longer: what was not answered by now is late.
    pub(super) fn time_out(&self, parts: &Parts) {
        let places: Vec<(usize, Place)> = parts.lock().parts.iter().filter_map(|asked| asked.at).collect();
        let address = &self.settings.address;
        self.fail(parts, || Error::TimedOut { address: address.clone(), after: parts.timeout });
        places.into_iter().for_each(|(link, place)| self.give_up(link, place));
    }

    fn fail(&self, parts: &Parts, error: impl Fn() -> Error) {
        parts.slots_of_all().into_iter().for_each(|(number, _)| parts.put(number, Err(error())));
        parts.tell();
    }

    /// Parts that nodes sent on go where these said, together if that is known; on a thread where it is to be found out who the nodes are.
    pub(super) fn send_parts_on(self: &Arc<Core>, sent: Vec<SentPart>) {
        let (known, others): (Vec<_>, Vec<_>) = sent.into_iter().partition(|one| self.is_known(&one.sent_on));
        self.follow_with_parts(known);
        if others.is_empty() {
            return;
        }
        let (core, waiting) = (Arc::clone(self), others.clone());
        let begun = Builder::new().name("zerohop-table".to_owned()).spawn(move || core.follow_with_parts(waiting));
        if let Err(error) = begun {
            for SentPart { parts, number, .. } in others {
                parts.put(number, Err(Error::System(error.to_string())));
                parts.tell();
            }
        }
    }

    fn follow_with_parts(self: &Arc<Core>, sent: Vec<SentPart>) {
        for of_one in sent.chunk_by(|one, other| Arc::ptr_eq(&one.parts, &other.parts)) {
            let parts = &of_one[0].parts;
            let mut ways = Vec::new();
            for SentPart { number, sent_on, .. } in of_one {
                match self.follow(sent_on) {
                    Ok(way) => ways.push((*number, way)),
                    Err(error) => parts.put(*number, Err(error)),
                }
            }
            ways.sort_by_key(|(_, way): &(u32, Way)| way.link);
            self.push_parts(parts, &ways);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::request::Request;
    use crate::client::seat::TaskSeat;
    use crate::client::{Client, Reply};
    use std::sync::atomic::Ordering;

    #[test]
    fn a_part_that_has_an_answer_is_not_asked() {
        let client = Client::open("127.0.0.1:1").unwrap();
        let core = &client.inner.core;
        let mut request = Request::new().word("DEL").word("a").word("b").word("c");
        let ask = Ask {
            caller: 0,
            qos: Qos::Batch,
            is_read: false,
            deadline_us: u64::MAX,
            is_asking: false,
            slot: None,
            request: request.finish().unwrap(),
        };
        let seat = Seat::Task(Arc::new(TaskSeat::default()));
        let parts = Parts::of(&ask, Duration::from_secs(1), seat).unwrap();
        // Its time was over while somebody found out where it goes.
        parts.put(1, Ok(Reply::Int(1)));
        assert!(core.ask_parts(&parts).is_ok());
        assert_eq!(core.link(0).asked.load(Ordering::Relaxed), 2);
    }
}
