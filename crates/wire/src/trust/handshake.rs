//! The three frames of a handshake.
//!
//! ```text
//! 16 hello    purpose:u8  zero:u8×3  cluster:[u8;16]  from: party  to: instance  chance:[u8;16]
//! 17 answer   cluster:[u8;16]  from: party  chance:[u8;16]  proof:[u8;32]
//! 18 proof    proof:[u8;32]
//! party       node:u32  core:u16  zero:u16  incarnation:u64                         little endian
//! instance    node:u32  core:u16  zero:u16
//! ```

use base::limits::HANDSHAKE_FRAME_BYTES_MAX;
use base::{CoreId, InstanceName, NodeId};

use crate::frame::{FRAME_HEAD_BYTES, Opened, open, seal};

/// The manager of a node, where a core would stand.
pub const MANAGER: CoreId = CoreId(u16::MAX);

/// Bytes of a hello's body; it is part of every proof.
pub(crate) const HELLO_BYTES: usize = 60;
/// Bytes of an answer's body in front of the proof; they are part of every proof.
pub(crate) const ANSWER_BYTES: usize = 48;
/// What a conversation began with.
pub(crate) const BEGUN_BYTES: usize = HELLO_BYTES + ANSWER_BYTES;
pub(crate) const PROOF_BYTES: usize = 32;

const _: () = assert!(FRAME_HEAD_BYTES + ANSWER_BYTES + PROOF_BYTES <= HANDSHAKE_FRAME_BYTES_MAX);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Two managers.
    Managers = 1,
    /// Two cores.
    Link = 2,
    /// A newcomer, and whoever lets it in.
    Enlist = 3,
}

/// One end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// Which node, and which core of it or [`MANAGER`].
    pub name: InstanceName,
    /// Which start of the node.
    pub incarnation: u64,
}

impl Party {
    /// Who wants to become a node.
    pub fn newcomer(incarnation: u64) -> Party {
        Party { name: InstanceName { node: NodeId(0), core: MANAGER }, incarnation }
    }

    /// The manager of a node.
    pub fn manager(node: NodeId, incarnation: u64) -> Party {
        Party { name: InstanceName { node, core: MANAGER }, incarnation }
    }

    pub(crate) fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&instance_bytes(self.name));
        bytes[8..].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes
    }
}

fn instance_bytes(name: InstanceName) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&name.node.0.to_le_bytes());
    bytes[4..6].copy_from_slice(&name.core.0.to_le_bytes());
    bytes
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub purpose: Purpose,
    pub cluster: [u8; 16],
    pub from: Party,
    pub to: InstanceName,
    pub chance: [u8; 16],
}

impl Hello {
    pub fn body(&self) -> [u8; HELLO_BYTES] {
        let mut body = [0; HELLO_BYTES];
        body[0] = self.purpose as u8;
        body[4..20].copy_from_slice(&self.cluster);
        body[20..36].copy_from_slice(&self.from.bytes());
        body[36..44].copy_from_slice(&instance_bytes(self.to));
        body[44..].copy_from_slice(&self.chance);
        body
    }

    fn read(body: &[u8; HELLO_BYTES]) -> Option<Hello> {
        let purpose = [Purpose::Managers, Purpose::Link, Purpose::Enlist];
        let mut rest = Rest(body);
        let [number, 0, 0, 0] = *rest.take()? else { return None };
        Some(Hello {
            purpose: purpose.into_iter().find(|one| *one as u8 == number)?,
            cluster: *rest.take()?,
            from: rest.party()?,
            to: rest.instance()?,
            chance: *rest.take()?,
        })
    }
}

/// What an answer says, without its proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub cluster: [u8; 16],
    pub from: Party,
    pub chance: [u8; 16],
}

impl Answer {
    pub fn body(&self) -> [u8; ANSWER_BYTES] {
        let mut body = [0; ANSWER_BYTES];
        body[..16].copy_from_slice(&self.cluster);
        body[16..32].copy_from_slice(&self.from.bytes());
        body[32..].copy_from_slice(&self.chance);
        body
    }

    fn read(body: &[u8; ANSWER_BYTES]) -> Option<Answer> {
        let mut rest = Rest(body);
        Some(Answer { cluster: *rest.take()?, from: rest.party()?, chance: *rest.take()? })
    }
}

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Hello(Hello),
    Answer(Answer, [u8; PROOF_BYTES]),
    Proof([u8; PROOF_BYTES]),
}

impl Word {
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Word::Hello(hello) => seal(16, out, |out| out.extend_from_slice(&hello.body())),
            Word::Answer(answer, proof) => seal(17, out, |out| {
                out.extend_from_slice(&answer.body());
                out.extend_from_slice(proof);
            }),
            Word::Proof(proof) => seal(18, out, |out| out.extend_from_slice(proof)),
        }
    }

    /// The word at the start of `bytes`, and its length; `Ok(None)`: not all of it is here; `Err`: it is none.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Word, usize)>, ()> {
        match open(bytes, HANDSHAKE_FRAME_BYTES_MAX) {
            Opened::Incomplete => Ok(None),
            Opened::Malformed(_) => Err(()),
            Opened::Whole { kind, body, bytes } => Word::read(kind, body).map(|word| Some((word, bytes))).ok_or(()),
        }
    }

    fn read(kind: u8, body: &[u8]) -> Option<Word> {
        match kind {
            16 => Hello::read(body.try_into().ok()?).map(Word::Hello),
            17 => {
                let (answer, proof) = body.split_first_chunk()?;
                Some(Word::Answer(Answer::read(answer)?, proof.try_into().ok()?))
            }
            18 => body.try_into().ok().map(Word::Proof),
            _ => None,
        }
    }
}

/// What is left of a body.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const COUNT: usize>(&mut self) -> Option<&'a [u8; COUNT]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn instance(&mut self) -> Option<InstanceName> {
        let (node, core) = (u32::from_le_bytes(*self.take()?), u16::from_le_bytes(*self.take()?));
        (*self.take()? == [0; 2]).then_some(InstanceName { node: NodeId(node), core: CoreId(core) })
    }

    fn party(&mut self) -> Option<Party> {
        Some(Party { name: self.instance()?, incarnation: u64::from_le_bytes(*self.take()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> [Word; 3] {
        let party = |node, core, incarnation| Party {
            name: InstanceName { node: NodeId(node), core: CoreId(core) },
            incarnation,
        };
        let (cluster, chance) = (std::array::from_fn(|i| i as u8), std::array::from_fn(|i| 0xF0 + i as u8));
        let (from, to) = (party(0x0102_0304, 0x0506, 0x0708_090A_0B0C_0D0E), party(9, 8, 7).name);
        [
            Word::Hello(Hello { purpose: Purpose::Link, cluster, from, to, chance }),
            Word::Answer(Answer { cluster, from, chance }, [3; PROOF_BYTES]),
            Word::Proof([4; PROOF_BYTES]),
        ]
    }

    #[test]
    fn words_round_trip_and_are_within_their_bound() {
        for word in words() {
            let mut bytes = Vec::new();
            word.encode(&mut bytes);
            assert!(bytes.len() <= HANDSHAKE_FRAME_BYTES_MAX);
            assert_eq!(Word::parse(&bytes), Ok(Some((word, bytes.len()))));
            (0..bytes.len()).for_each(|end| assert_eq!(Word::parse(&bytes[..end]), Ok(None), "{end}"));
        }
    }

    #[test]
    fn what_is_no_word_is_refused_and_nothing_long_is_waited_for() {
        for (kind, length) in [(16, HELLO_BYTES - 1), (16, HELLO_BYTES), (17, ANSWER_BYTES), (18, 0), (18, 33), (1, 44)]
        {
            let mut bytes = Vec::new();
            seal(kind, &mut bytes, |out| out.resize(out.len() + length, 0));
            assert_eq!(Word::parse(&bytes), Err(()), "kind {kind}, {length} bytes");
        }
        let long = (HANDSHAKE_FRAME_BYTES_MAX as u32 + 1).to_le_bytes();
        assert_eq!(Word::parse(&[&long[..], &[0; 8]].concat()), Err(()));
    }
}
