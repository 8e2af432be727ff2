//! One end of a connection between nodes: a handshake, then frames, sealed. Bytes in, bytes out.
//!
//! ```text
//!  dials:    hello ─► Dialed ── answer that proves ─► Proven          what is not as it must be: Over, for ever
//!  accepts:  Accepting ── hello ─► Answered ── proof ─► Proven
//! ```

use base::InstanceName;
use base::rng::Rng;

use super::distrust::Distrust;
use super::handshake::{Answer, BEGUN_BYTES, HELLO_BYTES, Hello, MANAGER, Party, Purpose, Word};
use super::key::{Keys, MARK_BYTES, Role, Token, Way};

/// Who speaks from here, and with which key.
pub struct Speaker {
    keys: Keys,
    rng: Rng,
    known: Option<([u8; 16], Party)>,
}

impl Speaker {
    /// With the key of `token`; all chance is the seed's.
    pub fn new(token: &Token, seed: u64) -> Speaker {
        Speaker { keys: Keys::of(token), rng: Rng::new(seed), known: None }
    }

    /// As this one of this cluster it speaks from now on; before, it answers nobody.
    pub fn set_name(&mut self, cluster: [u8; 16], me: Party) {
        self.known = Some((cluster, me));
    }

    /// Sixteen bytes that were never there before.
    fn chance(&mut self, me: Party) -> [u8; 16] {
        let [one, two] = [self.rng.next_u64().to_le_bytes(), self.rng.next_u64().to_le_bytes()];
        self.keys.chance(&[&one[..], &two, &me.bytes()].concat())
    }
}

/// Who the other end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeted {
    /// What the connection is for.
    pub purpose: Purpose,
    /// Who has proved that it has the key.
    pub from: Party,
}

/// What became of what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing is to be done before more comes.
    Wait,
    /// So many bytes were read.
    Went(usize),
    /// So many bytes were read, and both ends have proved themselves.
    Proven(usize, Greeted),
    /// The connection is of no use any more.
    Broken(Distrust),
}

/// What the beginning of the received bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Not all of it is here.
    Wait,
    /// A frame of so many bytes, which the other end said next. Its mark is behind it.
    Right(usize),
    /// The connection is of no use any more.
    Broken(Distrust),
}

/// Both ways, each with its keys.
struct Ways {
    send: Way,
    receive: Way,
}

enum State {
    Accepting { purposes: &'static [Purpose] },
    Answered { hello: Hello, begun: [u8; BEGUN_BYTES] },
    Dialed { hello: Hello },
    Proven(Box<Ways>),
    Over,
}

/// See the module.
pub struct Conversation(State);

impl Conversation {
    /// Somebody connected, which may be for one of these.
    pub fn accept(purposes: &'static [Purpose]) -> Conversation {
        Conversation(State::Accepting { purposes })
    }

    /// Somebody was dialed, who is believed to be `to`.
    ///
    /// # Panics
    /// The speaker does not know who it is.
    pub fn dial(speaker: &mut Speaker, purpose: Purpose, to: InstanceName, out: &mut Vec<u8>) -> Conversation {
        let (cluster, from) = speaker.known.expect("who dials knows who it is");
        let hello = Hello { purpose, cluster, from, to, chance: speaker.chance(from) };
        Word::Hello(hello).encode(out);
        Conversation(State::Dialed { hello })
    }

    /// Whether the other end has proved itself.
    pub fn is_proven(&self) -> bool {
        matches!(self.0, State::Proven(_))
    }

    /// Does the next word of the handshake; what is to be answered is appended to `out`.
    pub fn greet(&mut self, speaker: &mut Speaker, bytes: &[u8], out: &mut Vec<u8>) -> Step {
        let step = match (&self.0, Word::parse(bytes)) {
            (State::Proven(_), _) | (_, Ok(None)) => return Step::Wait,
            (State::Over, _) | (_, Err(())) => Err(Distrust::Stranger),
            (State::Accepting { purposes }, Ok(Some((Word::Hello(hello), length)))) => {
                let purposes = *purposes;
                let Some((cluster, me)) = speaker.known else { return Step::Wait };
                is_for(&hello, purposes, cluster, me).map(|()| self.answer(speaker, hello, (cluster, me), out, length))
            }
            (State::Dialed { hello }, Ok(Some((Word::Answer(answer, proof), length)))) => {
                let hello = *hello;
                is_of(&hello, &answer)
                    .and_then(|()| self.prove(&speaker.keys, (&hello, &answer, &proof), out))
                    .map(|greeted| Step::Proven(length, greeted))
            }
            (State::Answered { hello, begun }, Ok(Some((Word::Proof(proof), length)))) => {
                let (greeted, begun) = (Greeted { purpose: hello.purpose, from: hello.from }, *begun);
                match speaker.keys.proof(Role::Dials, &begun) == proof {
                    true => {
                        let [receive, send] = speaker.keys.ways(&begun);
                        self.0 = State::Proven(Box::new(Ways { send, receive }));
                        Ok(Step::Proven(length, greeted))
                    }
                    false => Err(Distrust::NoProof),
                }
            }
            _ => Err(Distrust::Stranger),
        };
        step.unwrap_or_else(|why| {
            self.0 = State::Over;
            Step::Broken(why)
        })
    }

    fn answer(
        &mut self,
        speaker: &mut Speaker,
        hello: Hello,
        (cluster, from): ([u8; 16], Party),
        out: &mut Vec<u8>,
        length: usize,
    ) -> Step {
        let answer = Answer { cluster, from, chance: speaker.chance(from) };
        let begun = begun(&hello, &answer);
        Word::Answer(answer, *speaker.keys.proof(Role::Accepts, &begun).as_bytes()).encode(out);
        self.0 = State::Answered { hello, begun };
        Step::Went(length)
    }

    fn prove(
        &mut self,
        keys: &Keys,
        (hello, answer, proof): (&Hello, &Answer, &[u8; 32]),
        out: &mut Vec<u8>,
    ) -> Result<Greeted, Distrust> {
        let begun = begun(hello, answer);
        if keys.proof(Role::Accepts, &begun) != *proof {
            return Err(Distrust::NoProof);
        }
        Word::Proof(*keys.proof(Role::Dials, &begun).as_bytes()).encode(out);
        let [send, receive] = keys.ways(&begun);
        self.0 = State::Proven(Box::new(Ways { send, receive }));
        Ok(Greeted { purpose: hello.purpose, from: answer.from })
    }

    /// Seals the one frame that was appended to `out` from `start` on, and appends its mark.
    ///
    /// # Panics
    /// The other end has not proved itself: nothing is said to it.
    pub fn seal(&mut self, out: &mut Vec<u8>, start: usize) {
        let State::Proven(ways) = &mut self.0 else { panic!("who has not proved itself is told nothing") };
        let mark = ways.send.seal(&mut out[start..]);
        out.extend_from_slice(&mark);
        ways.send.step();
    }

    /// Whether the next frame, of at most `bytes_max` bytes, stands at the start of `bytes`; if so, it can be read there from now on.
    /// Nothing of it but its length is looked at before its mark is right.
    pub fn open(&self, bytes: &mut [u8], bytes_max: usize) -> Checked {
        let State::Proven(ways) = &self.0 else { return Checked::Wait };
        let length = match crate::frame::length(bytes, bytes_max) {
            Ok(Some(length)) => length,
            Ok(None) => return Checked::Wait,
            Err(_) => return Checked::Broken(Distrust::Frame),
        };
        let Some(frame) = bytes.get_mut(..length + MARK_BYTES) else { return Checked::Wait };
        match ways.receive.open(frame) {
            true => Checked::Right(length),
            false => Checked::Broken(Distrust::Frame),
        }
    }

    /// The frame that was checked last is done.
    pub fn step(&mut self) {
        if let State::Proven(ways) = &mut self.0 {
            ways.receive.step();
        }
    }

    /// Nothing that comes is believed any more.
    pub fn end(&mut self) {
        self.0 = State::Over;
    }
}

/// Whether a hello is meant for `me`, and may be answered.
fn is_for(hello: &Hello, purposes: &[Purpose], cluster: [u8; 16], me: Party) -> Result<(), Distrust> {
    let Hello { purpose, from, to, .. } = hello;
    if !purposes.contains(purpose) {
        return Err(Distrust::OtherEnd);
    }
    let (is_newcomer, is_manager) = (from.name.node.0 == 0, from.name.core == MANAGER);
    if *purpose == Purpose::Enlist {
        let anybody = InstanceName { core: MANAGER, ..from.name };
        return if is_newcomer && *to == anybody { Ok(()) } else { Err(Distrust::OtherEnd) };
    }
    if hello.cluster != cluster {
        return Err(Distrust::OtherCluster);
    }
    let is_right = !is_newcomer && is_manager == (*purpose == Purpose::Managers);
    match is_right && *to == me.name && from.name.node != me.name.node {
        true => Ok(()),
        false => Err(Distrust::OtherEnd),
    }
}

/// Whether who answers is who was dialed.
fn is_of(hello: &Hello, answer: &Answer) -> Result<(), Distrust> {
    if hello.purpose == Purpose::Enlist {
        return Ok(());
    }
    if answer.cluster != hello.cluster {
        return Err(Distrust::OtherCluster);
    }
    if answer.from.name == hello.to { Ok(()) } else { Err(Distrust::OtherEnd) }
}

fn begun(hello: &Hello, answer: &Answer) -> [u8; BEGUN_BYTES] {
    let mut begun = [0; BEGUN_BYTES];
    begun[..HELLO_BYTES].copy_from_slice(&hello.body());
    begun[HELLO_BYTES..].copy_from_slice(&answer.body());
    begun
}
