//! The desk of a lane: where the threads and tasks of a program ask, each with a place of its own, and are told what became of it.
//!
//! ```text
//!   ask(seat) ──► place ──► lane ──► node
//!                   │                 │ reply │ lost: reads are asked again, as far as the budget goes
//!   tell(seat, outcome) ◄─────────────┴───────┤
//!                   │                         └ silent, and another node has the slot: to be asked there
//!                   └── given up: the place stays taken until its reply came, and the reply is dropped
//! ```
//!
//! A place is the number under which a request is on its way. Whoever gives up leaves it empty: the reply that comes late finds
//! nobody, and no other request can have its place meanwhile.

mod places;

pub use places::Place;

use crate::batch::Qos;
use crate::cluster::Silence;
use crate::heard::Heard;
use crate::lane::Lane;
use crate::retry::RetryBudget;
use base::street::Effect;
use base::{ConnectionId, Slot};
use places::Places;

/// The request `ASKING`.
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// A request on its way to the desk.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Requests of one caller are sent in its order.
    pub caller: u64,
    /// How long it may wait for others.
    pub qos: Qos,
    /// Sent twice it does no harm.
    pub is_read: bool,
    /// When its caller stops to wait, microseconds.
    pub deadline_us: u64,
    /// It goes behind `ASKING`: another node sent it here, this once.
    pub is_asking: bool,
    /// By whose holder this desk was chosen: when that is another node's, and this one silent, it may be asked there. `None`: it stays.
    pub slot: Option<Slot>,
    /// Its bytes.
    pub request: &'a [u8],
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// Too much waits, or is not answered.
    Full,
    /// Nobody answered a moment ago.
    Unreachable,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The reply's bytes.
    Reply(&'a [u8]),
    /// Nobody answered the dial. It never left.
    Unreachable,
    /// The node refused the greeting, with this error reply. It never left.
    Refused(&'a [u8]),
    /// A read; the connection ended before its reply came.
    Lost,
    /// The connection ended before its reply came: it may have been carried out, and may still be.
    Unknown,
    /// Its caller's time is over: as [`Outcome::Unknown`].
    Late,
    /// The node is silent and the slot another one's: it is to be asked there, once more. It only reads, or never left.
    Elsewhere(Slot),
}

/// What is to be done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Nothing.
    Keep,
    /// It is of no use: end it, and call [`Desk::closed`].
    End,
}

/// What a desk's lane keeps of a request.
#[derive(Clone, Copy, Debug)]
pub struct Owed {
    place: u32,
    /// [`NO_SLOT`]: none.
    slot: u16,
    is_read: bool,
}

/// Above all numbers of slots.
const NO_SLOT: u16 = u16::MAX;
const _: () = assert!(base::SLOT_COUNT < NO_SLOT);

impl Owed {
    fn slot(self) -> Option<Slot> {
        Slot::new(self.slot)
    }
}

/// See the module. `S` is where a caller waits.
pub struct Desk<S> {
    lane: Lane<Owed>,
    places: Places<S>,
    retries: RetryBudget,
    /// When the node said something last, or was connected.
    heard_us: u64,
    /// Who waited for so long without a word from the node stops believing that it is there.
    silence_us_max: u64,
}

impl<S> Desk<S> {
    /// A desk that nobody has asked. After `silence_us_max` without a word a connection on which somebody waits is given up.
    pub fn new(lane: Lane<Owed>, now_us: u64, silence_us_max: u64) -> Desk<S> {
        let (places, retries) = (Places::default(), RetryBudget::default());
        Desk { lane, silence_us_max, places, retries, heard_us: now_us }
    }

    /// Where it leads.
    pub fn address(&self) -> &str {
        self.lane.address()
    }

    /// Its connection, if it has one.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.lane.connection()
    }

    /// Places that are taken, those of callers who gave up among them.
    pub fn owed(&self) -> usize {
        self.places.taken()
    }

    /// Whether something waits for the street to have sent what it was handed.
    #[inline]
    pub fn awaits_sent(&self) -> bool {
        self.lane.awaits_sent()
    }

    /// Takes a request; its place, until `seat` was told the outcome or the caller [gave up](Desk::give_up).
    ///
    /// # Errors
    /// [`NotAsked`]; nothing was kept.
    pub fn ask(&mut self, now_us: u64, ask: Ask<'_>, seat: S) -> Result<Place, NotAsked> {
        self.take(now_us, ask, seat, false)
    }

    /// As [`Desk::ask`], however much waits: for one of several that belong together, for the first of which there
    /// [was room](Desk::has_room).
    ///
    /// # Errors
    /// [`NotAsked::Unreachable`], or [`NotAsked::Full`] when all places are taken; nothing was kept.
    pub fn ask_in_any_case(&mut self, now_us: u64, ask: Ask<'_>, seat: S) -> Result<Place, NotAsked> {
        self.take(now_us, ask, seat, true)
    }

    /// Whether another request of that class would be taken.
    pub fn has_room(&self, qos: Qos) -> bool {
        self.lane.has_room(qos)
    }

    fn take(&mut self, now_us: u64, ask: Ask<'_>, seat: S, in_any_case: bool) -> Result<Place, NotAsked> {
        if self.lane.is_down(now_us) {
            return Err(NotAsked::Unreachable);
        }
        let place = self.places.take(now_us, ask.deadline_us, seat).ok_or(NotAsked::Full)?;
        // Who was sent here by another node is not here by the table.
        let slot = ask.slot.filter(|_| !ask.is_asking).map_or(NO_SLOT, Slot::number);
        let owed = Owed { place: place.index, slot, is_read: ask.is_read };
        let is_taken = match ask.is_asking {
            true => self.push_behind_asking(now_us, &ask, owed),
            false if in_any_case => {
                self.lane.push_again(now_us, ask.caller, ask.qos, owed, ask.request);
                true
            }
            false => self.lane.push(now_us, ask.caller, ask.qos, owed, ask.request).is_ok(),
        };
        if !is_taken {
            self.places.leave(place.index);
            return Err(NotAsked::Full);
        }
        self.retries.earn();
        Ok(place)
    }

    /// Both at once, so that nothing comes between them.
    fn push_behind_asking(&mut self, now_us: u64, ask: &Ask<'_>, owed: Owed) -> bool {
        let Some(place) = self.places.take_for_nobody(now_us) else { return false };
        let nobody = Owed { place: place.index, slot: NO_SLOT, is_read: false };
        self.lane.push_again(now_us, ask.caller, Qos::Batch, nobody, ASKING);
        self.lane.push_again(now_us, ask.caller, Qos::Batch, owed, ask.request);
        true
    }

    /// Its caller waits no longer: the reply will be dropped.
    pub fn give_up(&mut self, place: Place) -> Option<S> {
        self.places.empty(place)
    }

    /// Dials if somebody waits, with `token` as the dial's number, or hands over what is due.
    pub fn act(&mut self, now_us: u64, token: u64, effects: &mut Vec<Effect>) {
        if self.lane.wants_dial(now_us, false) {
            self.lane.dial(token, effects);
        }
        self.lane.send_due(now_us, effects);
    }

    /// The dial is over.
    pub fn dialed(
        &mut self,
        now_us: u64,
        connection: Option<ConnectionId>,
        effects: &mut Vec<Effect>,
        mut tell: impl FnMut(S, Outcome<'_>),
    ) {
        self.heard_us = now_us;
        for owed in self.lane.dialed(now_us, connection, effects) {
            self.places.leave(owed.place).into_iter().for_each(|seat| tell(seat, Outcome::Unreachable));
        }
    }

    /// What the lane handed over last was sent.
    pub fn send_done(&mut self, buffer: Vec<u8>, effects: &mut Vec<Effect>) {
        self.lane.send_done(buffer, effects);
    }

    /// Takes what the node sent.
    pub fn received(&mut self, now_us: u64, bytes: &[u8], mut tell: impl FnMut(S, Outcome<'_>)) -> Verdict {
        self.heard_us = now_us;
        let (places, mut verdict, mut refusal) = (&mut self.places, Verdict::Keep, None);
        self.lane.received(now_us, bytes, |heard| match heard {
            Heard::Reply { item, reply, .. } => {
                places.leave(item.place).into_iter().for_each(|seat| tell(seat, Outcome::Reply(reply)));
            }
            Heard::Greeted(_) => {}
            Heard::Refused(error) => (verdict, refusal) = (Verdict::End, Some(error.to_vec())),
            Heard::Nonsense => verdict = Verdict::End,
        });
        if let Some(error) = refusal {
            for owed in self.lane.take_waiting(now_us) {
                self.places.leave(owed.place).into_iter().for_each(|seat| tell(seat, Outcome::Refused(&error)));
            }
        }
        verdict
    }

    /// The connection is gone. What had not left goes with the next one; reads that were out are asked again, before it.
    pub fn closed(&mut self, now_us: u64, mut tell: impl FnMut(S, Outcome<'_>)) {
        let mut asked_again = Vec::new();
        for (owed, request) in self.lane.closed(now_us) {
            let is_wanted = owed.is_read && self.places.has_seat(owed.place);
            if let Some(request) = request.filter(|_| is_wanted && self.retries.spend()) {
                asked_again.push((0, owed, request));
                continue;
            }
            let outcome = if owed.is_read { Outcome::Lost } else { Outcome::Unknown };
            self.places.leave(owed.place).into_iter().for_each(|seat| tell(seat, outcome));
        }
        if !asked_again.is_empty() {
            self.lane.push_first(now_us, asked_again, |_| 0);
        }
    }

    /// How long the node has owed a reply.
    pub fn silence(&self) -> &Silence {
        self.lane.silence()
    }

    /// The node is silent, and the slots that `is_left` names are another one's by now. Who asked something of these waits no longer: what
    /// never left, and reads that did as far as the budget goes, are [to be asked there](Outcome::Elsewhere). Of a write that left
    /// nobody knows whether it was carried out, or will be when the node goes on: that is what its caller hears, and it is never sent
    /// again. [`Verdict::End`]: nobody waits on this connection any more.
    pub fn desert(
        &mut self,
        now_us: u64,
        is_left: impl Fn(Slot) -> bool,
        mut tell: impl FnMut(S, Outcome<'_>),
    ) -> Verdict {
        let left_slot = |owed: &Owed| owed.slot().filter(|&slot| is_left(slot));
        let (mut waits, mut has_left) = (false, false);
        let (places, retries) = (&mut self.places, &mut self.retries);
        for owed in self.lane.items_out() {
            let Some(slot) = left_slot(owed) else {
                waits |= places.has_seat(owed.place);
                continue;
            };
            // Its place stays taken until a reply came, or the connection is gone.
            let Some(seat) = places.empty_at(owed.place) else { continue };
            has_left = true;
            let may_again = owed.is_read && retries.spend();
            let outcome = match owed.is_read {
                true if may_again => Outcome::Elsewhere(slot),
                true => Outcome::Lost,
                false => Outcome::Unknown,
            };
            tell(seat, outcome);
        }
        let leaves = |owed: &Owed| left_slot(owed).is_some();
        let has_leaving = self.lane.items_waiting().any(leaves);
        let leaving = match has_leaving {
            true => self.lane.take_some_waiting(now_us, |owed, _| leaves(owed), |_| 0),
            false => Vec::new(),
        };
        for (owed, _) in leaving {
            let slot = owed.slot().expect("who leaves has a slot");
            let Some(seat) = self.places.leave(owed.place) else { continue };
            has_left = true;
            tell(seat, Outcome::Elsewhere(slot));
        }
        let is_deserted = has_left && !waits && self.lane.connection().is_some();
        if is_deserted { Verdict::End } else { Verdict::Keep }
    }

    /// The desk is closed for good: tells those whose requests wait that they never left.
    pub fn dismiss(&mut self, now_us: u64, mut tell: impl FnMut(S)) {
        for owed in self.lane.take_waiting(now_us) {
            self.places.leave(owed.place).into_iter().for_each(&mut tell);
        }
    }

    /// Tells those whose time is over. A node that has not said a word since one of them asked, long ago, is not there any more.
    pub fn expire(&mut self, now_us: u64, mut tell: impl FnMut(S, Outcome<'_>)) -> Verdict {
        let mut is_silent = false;
        self.places.expire(now_us, |seat, asked_us| {
            is_silent |= asked_us > self.heard_us && now_us - asked_us >= self.silence_us_max;
            tell(seat, Outcome::Late);
        });
        if is_silent && self.lane.connection().is_some() { Verdict::End } else { Verdict::Keep }
    }

    /// When [`act`](Desk::act) has something to do if nothing happens before.
    pub fn deadline_us(&self, now_us: u64) -> Option<u64> {
        self.lane.deadline_us(now_us)
    }

    /// When [`expire`](Desk::expire) is to look; somebody may have been answered meanwhile.
    pub fn expiry_us(&self) -> Option<u64> {
        self.places.expiry_us()
    }
}
