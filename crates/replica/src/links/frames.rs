//! What frames of links say, done one after the other.

use std::sync::Arc;

use base::limits::FRAME_BYTES_MAX;
use base::{ConnectionId, InstanceName, LogOrdinal};
use placement::{ClusterView, SlotSet};
use storage::Store;
use wire::frame::{Frame, Opened};
use wire::trust::Distrust;

use super::{Contact, Links};
use crate::follow::{Follow, Taken};
use crate::lead::COMPARED_KEY_BYTES;
use crate::peer::{Peer, Side};

/// What a tick takes of the fills of one connection, bytes of records, and one frame more at the most. All that may be on its way comes at once
/// where this core had no processor for a while, and whoever waited for that would wait for the whole of it besides.
const FILLED_BYTES_MAX: usize = 32 << 10;
/// What an empty slot costs, as such bytes: taking a frame is less work than making one.
const TAKEN_FRAME_BYTES: usize = 64;
/// A key that goes costs about as much as one of so many bytes that comes.
const GONE_KEY_BYTES: usize = 64;

/// What a frame of a fill is to the tick that takes it, as bytes of records.
fn filled_bytes(frame: &Frame<'_>, store: &Store) -> usize {
    match *frame {
        Frame::Fill { slot, is_anew, records, .. } => {
            let gone = if is_anew { store.slot_len(slot) as usize } else { 0 };
            TAKEN_FRAME_BYTES + records.len() + gone * GONE_KEY_BYTES
        }
        Frame::Compare { slot } => TAKEN_FRAME_BYTES + store.slot_len(slot) as usize * COMPARED_KEY_BYTES,
        Frame::Match { gone, .. } => TAKEN_FRAME_BYTES + gone.len() * GONE_KEY_BYTES,
        _ => 0,
    }
}

impl Links {
    /// Does what whole frames say, in log group `next`. Those that change the store wait while its log buffer has `log_bytes_max` and more, and
    /// those of a connection once it filled enough for a tick; whether there may be such.
    pub fn take_frames(&mut self, (store, next): (&mut Store, LogOrdinal), log_bytes_max: usize) -> bool {
        let mut has_more = false;
        for number in 0..self.peers.len() {
            let is_full = |peer: &Peer, store: &Store, filled_bytes: usize| {
                let is_enough = store.log_bytes() >= log_bytes_max || filled_bytes >= FILLED_BYTES_MAX;
                is_enough && peer.side.changes_store()
            };
            let mut all_filled_bytes = 0;
            while !is_full(&self.peers[number], store, all_filled_bytes)
                && let Some((bytes, filled_bytes)) = self.take_frame(number, (store, next))
            {
                self.peers[number].line.skip(bytes);
                all_filled_bytes += filled_bytes;
            }
            has_more |= is_full(&self.peers[number], store, all_filled_bytes);
        }
        self.follows.iter_mut().for_each(|follow| store.let_go_of_arrived(&mut follow.arriving));
        has_more
    }

    /// Does the next frame of a connection; its bytes, and what it was of a fill. `None`: nothing can be done now.
    fn take_frame(&mut self, number: usize, (store, next): (&mut Store, LogOrdinal)) -> Option<(usize, usize)> {
        let view = Arc::clone(self.view.as_ref()?);
        let Peer { side, from, line } = &mut self.peers[number];
        let (id, side, from) = (line.id(), *side, *from);
        let (frame, bytes) = match line.frame(FRAME_BYTES_MAX) {
            Opened::Incomplete => return None,
            Opened::Whole { kind, body, bytes } => (Frame::of(kind, body), bytes),
            Opened::Malformed(_) => (None, 0),
        };
        let Some(frame) = frame else {
            line.end(Distrust::Frame);
            return None;
        };
        match side {
            Side::Lead(lead) => self.leads[lead].0.heard_us = self.now_us,
            Side::Follow(follow) => self.follows[follow].heard_us = Some(self.now_us),
            Side::Unknown => {}
        }
        let filled_bytes = if let Side::Follow(_) = side { filled_bytes(&frame, store) } else { 0 };
        match (side, frame) {
            (Side::Follow(follow), Frame::Confirm { .. }) => self.follows[follow].on_confirm(&frame),
            (Side::Follow(follow), Frame::Align { stage, skip }) => {
                self.follows[follow].arriving.align(stage, skip as usize);
            }
            (Side::Follow(follow), Frame::Compare { slot }) => {
                let answer = self.follows[follow].answer(slot, (self.me, &view), store);
                self.peers[number].answer(slot, &answer);
            }
            (Side::Follow(follow), _) => {
                let first = self.follows[follow].from();
                let taken = match self.forgotten.is_counted_on(&frame, first, view.version()) {
                    true => Taken::Broken("it counts on what was swept".to_owned()),
                    false => self.follows[follow].take(&frame, (self.me, &view), (store, next)),
                };
                return self.heed(number, taken).then_some((bytes, filled_bytes));
            }
            (Side::Unknown, Frame::Hello { life, .. }) if from.is_some() => {
                let kept = store.slots_with_keys().collect();
                self.welcome(number, (from.expect("it was just looked"), life), &view, &kept);
            }
            (Side::Lead(lead), Frame::Welcome { life, taken, incarnation, .. })
                if view.incarnation(self.leads[lead].0.to().node) == Some(incarnation) =>
            {
                self.on_welcome(lead, id, (life, taken));
            }
            (Side::Lead(lead), Frame::Persisted { sequence }) => {
                self.news += 1;
                self.leads[lead].0.on_persisted(sequence);
            }
            (Side::Lead(lead), Frame::Kept { slots }) => self.leads[lead].0.on_kept(SlotSet::from_words(slots)),
            (Side::Lead(lead), Frame::Marks { slot, is_end, last, marks })
                if self.leads[lead].0.on_marks(slot, (is_end, last), marks) => {}
            (Side::Lead(lead), Frame::Room { is_full }) => self.leads[lead].0.is_full = is_full,
            (Side::Lead(lead), Frame::Ask { stamp }) => self.leads[lead].0.asked = Some(stamp),
            (Side::Lead(lead), Frame::Synced { sequence }) => {
                self.news += 1;
                self.leads[lead].0.on_synced(sequence);
            }
            // A newer table will come here, too.
            _ => self.break_off(number),
        }
        Some((bytes, filled_bytes))
    }

    /// What a follower does after a frame; whether it is done with.
    fn heed(&mut self, number: usize, taken: Taken) -> bool {
        match taken {
            Taken::Done => return true,
            Taken::Later => return false,
            Taken::Refused => {
                let table = self.view.as_ref().map_or(0, |view| view.version());
                self.peers[number].send(&Frame::Refused { table });
            }
            Taken::Broken(_) => {
                if let Side::Follow(follow) = self.peers[number].side {
                    self.follows[follow].void();
                }
            }
        }
        self.break_off(number);
        false
    }

    fn welcome(&mut self, number: usize, (from, life): (InstanceName, u64), view: &ClusterView, kept: &SlotSet) {
        let follow = self.follows.iter().position(|follow| follow.from() == from).unwrap_or_else(|| {
            self.follows.push(Follow::new(from));
            self.follows.len() - 1
        });
        // An older connection of the same link may still bring what was sent before this one.
        for peer in self.peers.iter_mut().filter(|peer| peer.side == Side::Follow(follow)) {
            peer.line.close();
            self.closing.push(peer.id());
        }
        let taken = self.follows[follow].greet(life);
        let peer = &mut self.peers[number];
        peer.side = Side::Follow(follow);
        let incarnation = view.incarnation(self.me.node).unwrap_or(0);
        let life = self.follows[follow].life();
        peer.send(&Frame::Welcome { life, taken, table: view.version(), incarnation });
        peer.send(&Frame::Kept { slots: &kept.words() });
    }

    fn on_welcome(&mut self, number: usize, id: ConnectionId, (life, taken): (u64, u64)) {
        let (lead, contact) = &mut self.leads[number];
        if !lead.can_go_on(life, taken) {
            // The next connection begins the new life.
            return self.begin_life(number);
        }
        lead.go_on_from(taken);
        *contact = Contact::Going { connection: id };
    }

    fn break_off(&mut self, number: usize) {
        self.peers[number].line.close();
        self.closing.push(self.peers[number].id());
    }
}
