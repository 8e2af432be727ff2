//! One connection between nodes on which nobody is believed who has not proved itself: a pipe, and a conversation over it.

use base::limits::{HANDSHAKE_FRAME_BYTES_MAX, UNPROVEN_CONNECTIONS_MAX, UNPROVEN_MS_MAX};
use base::{ConnectionId, Effect, InstanceName};

use crate::frame::{FRAME_HEAD_BYTES, Opened, open};
use crate::pipe::Pipe;
use crate::trust::conversation::Checked;
use crate::trust::{Conversation, Distrust, Greeted, MARK_BYTES, Purpose, Speaker, Step};

/// See the module.
pub struct Line {
    pipe: Pipe,
    talk: Conversation,
    /// Printable address of the other end.
    address: String,
    /// Whether the other end made it.
    came_in: bool,
    since_us: u64,
    /// The frame at the front bears its mark, and can be read.
    is_checked: bool,
    /// Why it is closed, if that is the other end's fault.
    distrust: Option<Distrust>,
}

impl Line {
    /// Somebody connected from `address`, for one of these purposes.
    pub fn accepted(now_us: u64, id: ConnectionId, address: String, purposes: &'static [Purpose]) -> Line {
        Line {
            pipe: Pipe::new(id),
            talk: Conversation::accept(purposes),
            address,
            came_in: true,
            since_us: now_us,
            is_checked: false,
            distrust: None,
        }
    }

    /// `to` was dialed at `address`, and is greeted.
    ///
    /// # Panics
    /// The speaker does not know who it is.
    pub fn dialed(
        now_us: u64,
        (id, address): (ConnectionId, String),
        speaker: &mut Speaker,
        (purpose, to): (Purpose, InstanceName),
    ) -> Line {
        let mut pipe = Pipe::new(id);
        let talk = Conversation::dial(speaker, purpose, to, pipe.output());
        Line { pipe, talk, address, came_in: false, since_us: now_us, is_checked: false, distrust: None }
    }

    /// Which connection it is.
    #[inline]
    pub fn id(&self) -> ConnectionId {
        self.pipe.id()
    }

    /// Where the other end is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether the other end made it.
    pub fn came_in(&self) -> bool {
        self.came_in
    }

    /// Whether both ends have proved themselves.
    #[inline]
    pub fn is_proven(&self) -> bool {
        self.talk.is_proven()
    }

    /// Whether it waits for the other end's proof.
    pub fn awaits_proof(&self) -> bool {
        !self.is_proven() && !self.is_closing()
    }

    /// Bytes came.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.pipe.receive(bytes);
    }

    /// Goes on with the handshake; who the other end is, once that is proved.
    pub fn greet(&mut self, now_us: u64, speaker: &mut Speaker) -> Option<Greeted> {
        while self.awaits_proof() {
            let mut answer = Vec::new();
            let step = self.talk.greet(speaker, self.pipe.unread(), &mut answer);
            self.pipe.output().extend_from_slice(&answer);
            match step {
                Step::Wait => break,
                Step::Went(bytes) => self.pipe.skip(bytes),
                Step::Proven(bytes, greeted) => {
                    self.pipe.skip(bytes);
                    return Some(greeted);
                }
                Step::Broken(why) => self.end(why),
            }
        }
        if self.awaits_proof() && self.pipe.unread().len() > HANDSHAKE_FRAME_BYTES_MAX {
            self.end(Distrust::Stranger);
        }
        if self.awaits_proof() && now_us >= self.proof_deadline_us() {
            self.end(Distrust::Late);
        }
        None
    }

    /// When it has to have proved itself, microseconds.
    pub fn proof_deadline_us(&self) -> u64 {
        self.since_us + UNPROVEN_MS_MAX * 1000
    }

    /// The other end is not believed any more.
    pub fn end(&mut self, why: Distrust) {
        self.distrust = self.distrust.or(Some(why));
        self.close();
    }

    /// Why it was ended, once.
    pub fn take_distrust(&mut self) -> Option<Distrust> {
        self.distrust.take()
    }

    /// The next frame, if it is here whole and the other end said it; `bytes` are those to be skipped. What is no such frame ends
    /// the line.
    pub fn frame(&mut self, bytes_max: usize) -> Opened<'_> {
        if !self.is_checked && !self.is_closing() {
            match self.talk.open(self.pipe.unread_mut(), bytes_max) {
                Checked::Wait => return Opened::Incomplete,
                Checked::Right(_) => self.is_checked = true,
                Checked::Broken(why) => {
                    self.end(why);
                    return Opened::Malformed("the other end did not say this next");
                }
            }
        }
        match open(self.pipe.unread(), bytes_max) {
            Opened::Whole { kind, body, bytes } => Opened::Whole { kind, body, bytes: bytes + MARK_BYTES },
            opened => opened,
        }
    }

    /// The frame was read.
    pub fn skip(&mut self, bytes: usize) {
        debug_assert!(self.is_checked && bytes >= FRAME_HEAD_BYTES + MARK_BYTES, "the frame that was checked");
        self.is_checked = false;
        self.talk.step();
        self.pipe.skip(bytes);
    }

    /// Sends the one frame that `write` appends.
    ///
    /// # Panics
    /// The other end has not proved itself.
    pub fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_closing() {
            return;
        }
        let out = self.pipe.output();
        let start = out.len();
        write(out);
        self.talk.seal(out, start);
    }

    /// Bytes that wait for the street to take what it sends now.
    pub fn waiting_bytes(&self) -> usize {
        self.pipe.waiting_bytes()
    }

    /// The street took what it was given.
    pub fn on_sent(&mut self) {
        self.pipe.on_sent();
    }

    /// Nothing that comes is looked at any more.
    pub fn close(&mut self) {
        self.pipe.close();
        self.talk.end();
    }

    /// Whether it was told to close.
    pub fn is_closing(&self) -> bool {
        self.pipe.is_closing()
    }

    /// Gives the street what is to be sent, unless it still sends.
    pub fn flush(&mut self, effects: &mut Vec<Effect>) {
        self.pipe.flush(effects);
    }
}

/// Ends the oldest of those that came in and proved nothing yet, if there are more than may be.
pub fn bound_unproven<'a>(lines: impl Iterator<Item = &'a mut Line>) {
    let unproven: Vec<&mut Line> = lines.filter(|line| line.came_in && line.awaits_proof()).collect();
    let surplus = unproven.len().saturating_sub(UNPROVEN_CONNECTIONS_MAX);
    // They stand in the order in which they came.
    unproven.into_iter().take(surplus).for_each(|line| line.end(Distrust::Late));
}

#[cfg(test)]
mod tests;
