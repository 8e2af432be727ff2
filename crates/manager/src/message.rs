//! What managers and nodes tell each other, over port P+10000, in the frames of `wire`, once they have proved to each other that they
//! have the token (`wire::trust`).
//!
//! ```text
//!  33 enlist      a Join command, its node 0                                somebody who has the token wants to become a node
//!  34 enlisted    cluster [u8;16] · node u32 · news                         the answer
//!  35 elsewhere   address, text                                             the answer: ask there; empty: nobody is known
//!  36 refused     reason, text                                              the answer: never
//!  37 agreement   bytes of `consensus`
//!  38 renewal     node u32 · incarnation u64 · number u64 · voters u64 · table u64
//!  39 renewed     incarnation u64 · number u64 · denial u8, 0: granted · lease us u64
//!  40 report      count u16 · { node u32 · incarnation u64 · silent us u64 }
//!  41 question    node u32 · incarnation u64
//!  42 answer      node u32 · incarnation u64 · fenced u8 · may run us u64
//!  43 news        leader u32, 0: unknown · voters · table, the rest         voters: version u64 · count u8 · { count u16 · { u32 } }
//!  44 propose     number u64 · command, the rest
//!  45 proposed    number u64 · result u8 · leader u32                       result 3, refused: kind u8 · u64 · u64 behind
//!  46 read        number u64                                                up to where must a table have obeyed to be current?
//!  47 readable    number u64 · index u64
//!  48 suspect     number u64 · node u32                                     a client says that it does not answer: who leads looks
//!  49 look        asker u32 · number u64                                    how are your cores? for who asks
//!  50 looked      asker u32 · number u64 · cores u16 · silent u16           the answer, by way of who leads
//!  51 start       start u64 · life u64 · has come u8 · news                first on every connection, from both ends: which process this is
//!  52 another     acts u8                                                  the answer to a start: another process of that number speaks here
//! ```

use base::NodeId;
use base::limits::{MANAGERS_MAX, NODES_MAX};
use control::code::{Damage, Reader, Writer};
use control::lease::{Answer, Denial, Heard, Question, Renewal, Reply, Report, Voters};
use control::{Command, Refusal};

/// What a node that was not there for a while has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Who leads the managers, as far as the sender knows.
    pub leader: Option<NodeId>,
    /// The voters that are agreed.
    pub voters: Voters,
    /// The table.
    pub table: Vec<u8>,
}

/// Which process of a node speaks, and what it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Which start of its directory this is: an incarnation that was never fenced.
    pub start: u64,
    /// By chance: a process of a copied directory has the same number, and another life.
    pub life: u64,
    /// The managers agreed that this start came.
    pub has_come: bool,
    /// What it knows.
    pub news: News,
}

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposed {
    /// The table obeyed.
    Agreed,
    /// The table refused.
    Refused(Refusal),
    /// Nothing happened here; perhaps there.
    Elsewhere(Option<NodeId>),
    /// Nobody knows, or not now: ask again under the same number.
    Unknown,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the picture above names every part")]
pub enum Message {
    Enlist { command: Command },
    Enlisted { cluster: [u8; 16], node: NodeId, news: News },
    Elsewhere { address: String },
    Refused { reason: String },
    Agreement(Vec<u8>),
    Renewal { renewal: Renewal, table: u64 },
    Renewed(Reply),
    Report(Report),
    Question(Question),
    Answer(Answer),
    News(News),
    Propose { number: u64, command: Command },
    Proposed { number: u64, result: Proposed },
    Read { number: u64 },
    Readable { number: u64, index: u64 },
    Suspect { number: u64, node: NodeId },
    Look { asker: NodeId, number: u64 },
    Looked { asker: NodeId, number: u64, cores: u16, silent: u16 },
    Start(Introduction),
    Another { acts: bool },
}

const DENIALS: [Denial; 5] =
    [Denial::Over, Denial::NotReturned, Denial::Unknown, Denial::NotCurrent, Denial::OldVoters];

impl Message {
    fn kind(&self) -> u8 {
        match self {
            Message::Enlist { .. } => 33,
            Message::Enlisted { .. } => 34,
            Message::Elsewhere { .. } => 35,
            Message::Refused { .. } => 36,
            Message::Agreement(_) => 37,
            Message::Renewal { .. } => 38,
            Message::Renewed(_) => 39,
            Message::Report(_) => 40,
            Message::Question(_) => 41,
            Message::Answer(_) => 42,
            Message::News(_) => 43,
            Message::Propose { .. } => 44,
            Message::Proposed { .. } => 45,
            Message::Read { .. } => 46,
            Message::Readable { .. } => 47,
            Message::Suspect { .. } => 48,
            Message::Look { .. } => 49,
            Message::Looked { .. } => 50,
            Message::Start(_) => 51,
            Message::Another { .. } => 52,
        }
    }

    /// Append the message's frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        wire::frame::seal(self.kind(), out, |out| {
            let mut writer = Writer::default();
            self.write(&mut writer);
            out.extend_from_slice(&writer.0);
        });
    }

    fn write(&self, out: &mut Writer) {
        match self {
            Message::Enlist { command } => {
                out.bytes(&command.encode());
            }
            Message::Enlisted { cluster, node, news } => write_news(out.bytes(cluster).u32(node.0), news),
            Message::Elsewhere { address: text } | Message::Refused { reason: text } => {
                out.text(text);
            }
            Message::Agreement(bytes) => {
                out.bytes(bytes);
            }
            Message::Renewal { renewal: Renewal { node, incarnation, number, voters }, table } => {
                out.u32(node.0).u64(*incarnation).u64(*number).u64(*voters).u64(*table);
            }
            Message::Renewed(Reply { incarnation, number, granted_us }) => {
                let place = |why: &Denial| DENIALS.iter().position(|known| known == why).unwrap_or(0) + 1;
                let denial = granted_us.as_ref().err().map_or(0, place);
                out.u64(*incarnation).u64(*number).u8(denial as u8).u64(granted_us.unwrap_or(0));
            }
            Message::Report(Report { nodes }) => {
                out.count(nodes.len());
                for Heard { node, incarnation, silent_us } in nodes {
                    out.u32(node.0).u64(*incarnation).u64(*silent_us);
                }
            }
            Message::Question(Question { node, incarnation }) => {
                out.u32(node.0).u64(*incarnation);
            }
            Message::Answer(Answer { node, incarnation, fenced, may_run_us }) => {
                out.u32(node.0).u64(*incarnation).flag(*fenced).u64(*may_run_us);
            }
            Message::News(news) => write_news(out, news),
            Message::Propose { number, command } => {
                out.u64(*number).bytes(&command.encode());
            }
            Message::Proposed { number, result } => write_proposed(out.u64(*number), result),
            Message::Read { number } => {
                out.u64(*number);
            }
            Message::Readable { number, index } => {
                out.u64(*number).u64(*index);
            }
            Message::Suspect { number, node } => {
                out.u64(*number).u32(node.0);
            }
            Message::Look { asker, number } => {
                out.u32(asker.0).u64(*number);
            }
            Message::Looked { asker, number, cores, silent } => {
                out.u32(asker.0).u64(*number).u16(*cores).u16(*silent);
            }
            Message::Start(Introduction { start, life, has_come, news }) => {
                write_news(out.u64(*start).u64(*life).flag(*has_come), news);
            }
            Message::Another { acts } => {
                out.flag(*acts);
            }
        }
    }

    /// The message of a frame's kind and body.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(kind: u8, body: &[u8]) -> Result<Message, Damage> {
        let mut from = Reader(body);
        let message = Message::read(kind, &mut from)?;
        from.end()?;
        Ok(message)
    }

    fn read(kind: u8, from: &mut Reader<'_>) -> Result<Message, Damage> {
        Ok(match kind {
            33 => Message::Enlist { command: Command::decode(rest(from))? },
            34 => Message::Enlisted { cluster: from.array()?, node: NodeId(from.u32()?), news: read_news(from)? },
            35 => Message::Elsewhere { address: from.text("an address")? },
            36 => Message::Refused { reason: from.text("a reason")? },
            37 => Message::Agreement(rest(from).to_vec()),
            38 => {
                let (node, incarnation) = (NodeId(from.u32()?), from.u64()?);
                let renewal = Renewal { node, incarnation, number: from.u64()?, voters: from.u64()? };
                Message::Renewal { renewal, table: from.u64()? }
            }
            39 => {
                let (incarnation, number, denial) = (from.u64()?, from.u64()?, usize::from(from.u8()?));
                let lease_us = from.u64()?;
                let granted_us = match denial.checked_sub(1) {
                    None => Ok(lease_us),
                    Some(place) => Err(*DENIALS.get(place).ok_or(Damage::Part("a denial"))?),
                };
                Message::Renewed(Reply { incarnation, number, granted_us })
            }
            40 => {
                let count = from.count(NODES_MAX, 20, "a number of nodes")?;
                let heard = |_| {
                    let node = NodeId(from.u32()?);
                    Ok(Heard { node, incarnation: from.u64()?, silent_us: from.u64()? })
                };
                Message::Report(Report { nodes: (0..count).map(heard).collect::<Result<_, Damage>>()? })
            }
            41 => Message::Question(Question { node: NodeId(from.u32()?), incarnation: from.u64()? }),
            42 => {
                let (node, incarnation) = (NodeId(from.u32()?), from.u64()?);
                Message::Answer(Answer { node, incarnation, fenced: from.flag("a fence")?, may_run_us: from.u64()? })
            }
            43 => Message::News(read_news(from)?),
            44 => Message::Propose { number: from.u64()?, command: Command::decode(rest(from))? },
            45 => {
                let (number, code, leader) = (from.u64()?, from.u8()?, from.u32()?);
                let result = match code {
                    0 => Proposed::Agreed,
                    1 => Proposed::Elsewhere(node(leader)),
                    2 => Proposed::Unknown,
                    3 => {
                        let refusal = Refusal::of(from.u8()?, from.u64()?, from.u64()?);
                        Proposed::Refused(refusal.ok_or(Damage::Part("a refusal"))?)
                    }
                    _ => return Err(Damage::Part("a result")),
                };
                Message::Proposed { number, result }
            }
            46 => Message::Read { number: from.u64()? },
            47 => Message::Readable { number: from.u64()?, index: from.u64()? },
            48 => Message::Suspect { number: from.u64()?, node: NodeId(from.u32()?) },
            49 => Message::Look { asker: NodeId(from.u32()?), number: from.u64()? },
            50 => {
                let (asker, number) = (NodeId(from.u32()?), from.u64()?);
                Message::Looked { asker, number, cores: from.u16()?, silent: from.u16()? }
            }
            51 => Message::Start(Introduction {
                start: from.u64()?,
                life: from.u64()?,
                has_come: from.flag("whether a start is agreed")?,
                news: read_news(from)?,
            }),
            52 => Message::Another { acts: from.flag("whether a process acts")? },
            _ => return Err(Damage::Part("a kind of message")),
        })
    }
}

fn rest<'a>(from: &mut Reader<'a>) -> &'a [u8] {
    std::mem::take(&mut from.0)
}

/// 0 is nobody's number.
fn node(number: u32) -> Option<NodeId> {
    (number != 0).then_some(NodeId(number))
}

/// Append voters: also in the file that says who a node is.
pub(crate) fn write_voters(out: &mut Writer, voters: &Voters) {
    out.u64(voters.version).u8(voters.sets.len() as u8);
    for set in &voters.sets {
        out.count(set.len());
        for voter in set {
            out.u32(voter.0);
        }
    }
}

/// Read them.
pub(crate) fn read_voters(from: &mut Reader<'_>) -> Result<Voters, Damage> {
    let (version, sets) = (from.u64()?, from.u8()?);
    if sets > 2 {
        return Err(Damage::Part("a number of sets of voters"));
    }
    let mut set = || {
        let count = from.count(MANAGERS_MAX, 4, "a number of voters")?;
        (0..count).map(|_| from.u32().map(NodeId)).collect()
    };
    Ok(Voters { version, sets: (0..sets).map(|_| set()).collect::<Result<_, Damage>>()? })
}

fn write_proposed(out: &mut Writer, result: &Proposed) {
    let (code, leader) = match result {
        Proposed::Agreed => (0, None),
        Proposed::Elsewhere(leader) => (1, *leader),
        Proposed::Unknown => (2, None),
        Proposed::Refused(_) => (3, None),
    };
    out.u8(code).u32(leader.map_or(0, |leader| leader.0));
    if let Proposed::Refused(refusal) = result {
        let (kind, one, other) = refusal.words();
        out.u8(kind).u64(one).u64(other);
    }
}

fn write_news(out: &mut Writer, news: &News) {
    out.u32(news.leader.map_or(0, |leader| leader.0));
    write_voters(out, &news.voters);
    out.bytes(&news.table);
}

fn read_news(from: &mut Reader<'_>) -> Result<News, Damage> {
    Ok(News { leader: node(from.u32()?), voters: read_voters(from)?, table: rest(from).to_vec() })
}

#[cfg(test)]
mod tests {
    use control::{Action, RequestId};
    use wire::frame::{Opened, open};

    use super::*;

    fn messages() -> Vec<Message> {
        let voters = Voters { version: 7, sets: vec![vec![NodeId(1), NodeId(2)], vec![NodeId(3)]] };
        let news = News { leader: Some(NodeId(2)), voters, table: b"a table".to_vec() };
        let news_again = news.clone();
        let command = Command { id: RequestId { proposer: 4, number: 5 }, action: Action::Drain { node: NodeId(6) } };
        let renewal = Renewal { node: NodeId(3), incarnation: 4, number: 5, voters: 6 };
        let reply = |granted_us| Message::Renewed(Reply { incarnation: 1, number: 2, granted_us });
        let heard = Heard { node: NodeId(9), incarnation: 2, silent_us: 3 };
        vec![
            Message::Enlist { command: command.clone() },
            Message::Enlisted { cluster: [1; 16], node: NodeId(4), news: news.clone() },
            Message::Elsewhere { address: "10.0.0.1:17000".to_owned() },
            Message::Refused { reason: "no".to_owned() },
            Message::Agreement(b"bytes".to_vec()),
            Message::Renewal { renewal, table: 8 },
            reply(Ok(300_000)),
            reply(Err(Denial::Over)),
            reply(Err(Denial::OldVoters)),
            Message::Report(Report { nodes: vec![heard; 2] }),
            Message::Question(Question { node: NodeId(1), incarnation: 2 }),
            Message::Answer(Answer { node: NodeId(1), incarnation: 2, fenced: true, may_run_us: 3 }),
            Message::News(news),
            Message::Propose { number: 3, command },
            Message::Proposed { number: 3, result: Proposed::Agreed },
            Message::Proposed { number: 3, result: Proposed::Elsewhere(Some(NodeId(1))) },
            Message::Proposed { number: 3, result: Proposed::Elsewhere(None) },
            Message::Proposed { number: 3, result: Proposed::Unknown },
            Message::Proposed { number: 3, result: Proposed::Refused(Refusal::HoldsSlots(NodeId(2), 7)) },
            Message::Read { number: 1 },
            Message::Readable { number: 1, index: 2 },
            Message::Suspect { number: 1, node: NodeId(2) },
            Message::Look { asker: NodeId(3), number: 1 },
            Message::Looked { asker: NodeId(3), number: 1, cores: 4, silent: 1 },
            Message::Start(Introduction { start: 7 << 16, life: 8, has_come: true, news: news_again }),
            Message::Another { acts: true },
        ]
    }

    #[test]
    fn messages_round_trip() {
        for message in messages() {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            let Opened::Whole { kind, body, bytes: length } = open(&bytes, 1 << 20) else { panic!("{message:?}") };
            assert_eq!((Message::decode(kind, body), length), (Ok(message), bytes.len()));
        }
    }

    #[test]
    fn what_is_cut_short_is_no_message_or_another_one_and_never_a_panic() {
        for message in messages() {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            let Opened::Whole { kind, body, .. } = open(&bytes, 1 << 20) else { panic!("{message:?}") };
            for end in 0..body.len() {
                assert_ne!(Message::decode(kind, &body[..end]), Ok(message.clone()));
            }
        }
    }
}
