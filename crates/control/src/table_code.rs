//! The table as bytes: a snapshot, and what managers push to nodes. Equal tables are equal bytes, and only tables whose
//! invariants hold are read.
//!
//! ```text
//! table    format:u32 = 3  version:u64  cluster:[u8;16]  created:u8  relaxed:u8  lease ms:u32  longest lease ms:u32
//!          chain length:u8  node floor:u32  count:u16 node …  count:u16 stretch …  count:u16 move …  count:u16 proposer …
//! node     id:u32  state:u8  facts  takes share:u8
//! facts    incarnation:u64  host:text  port:u16  cores:u16  weight:u16  zone:text  machine:text  identity:[u8;32]
//! text     length:u16  UTF-8
//! stretch  first slot:u16  epoch:u64  count:u8  member …
//! member   node:u32  core:u16  1 whole | 0 filling:u8
//! move     id:u64  first slot:u16  last slot:u16  from  to  1 wanted | 2 handing over:u8      places: node:u32  core:u16
//! proposer id:u64  floor:u64  count:u16  answer: number:u64  index:u64  refusal: 0 | kind:u8 two words:u64
//! ```

use base::limits::{CHAIN_MEMBERS_MAX, MOVES_MAX, NODES_MAX, PROPOSERS_MAX, REQUESTS_PER_PROPOSER_MAX};
use base::{CoreId, InstanceName, NodeId, SLOT_COUNT, Slot};
use placement::{Epoch, SlotRange};

use crate::chain::{Chain, Member};
use crate::code::{Damage, Reader, Writer};
use crate::command::Settings;
use crate::moves::{Move, MoveState};
use crate::node::{Newcomer, Node, NodeState};
use crate::refusal::Refusal;
use crate::requests::{Answer, Proposer, Requests};
use crate::stretch::{Stretch, Stretches, range};
use crate::table::Table;

/// The format that is written, and the only one that is read so far.
const FORMAT: u32 = 3;

impl Table {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u32(FORMAT).u64(self.version).bytes(&self.cluster).flag(self.is_created).flag(self.is_relaxed);
        writer.u32(self.settings.lease_ms).u32(self.lease_ms_longest).u8(self.settings.chain_length);
        writer.u32(self.node_floor).count(self.nodes.len());
        self.nodes.values().for_each(|node| write_node(&mut writer, node));
        writer.count(self.stretches.list().len());
        self.stretches.list().iter().for_each(|stretch| write_stretch(&mut writer, stretch));
        writer.count(self.moves.len());
        for one in &self.moves {
            writer.u64(one.id);
            write_slots(&mut writer, one.slots);
            write_place(&mut writer, one.from);
            write_place(&mut writer, one.to);
            writer.u8(one.state as u8);
        }
        write_requests(&mut writer, &self.requests);
        writer.0
    }

    /// The table that these bytes mean.
    ///
    /// # Errors
    /// [`Damage`] when they mean none, or one that breaks an invariant.
    pub fn decode(bytes: &[u8]) -> Result<Table, Damage> {
        let mut reader = Reader(bytes);
        match reader.u32()? {
            FORMAT => {}
            other => return Err(Damage::Format(other)),
        }
        let version = reader.u64()?;
        let cluster = reader.array()?;
        let (is_created, is_relaxed) = (reader.flag("created")?, reader.flag("relaxed")?);
        let (lease_ms, lease_ms_longest) = (reader.u32()?, reader.u32()?);
        let settings = Settings { lease_ms, chain_length: reader.u8()? };
        let node_floor = reader.u32()?;
        let mut table =
            Table { version, cluster, is_created, is_relaxed, settings, lease_ms_longest, node_floor, ..Table::new() };
        for _ in 0..reader.count(NODES_MAX, 60, "the number of nodes")? {
            let node = read_node(&mut reader)?;
            let is_ascending = table.nodes.last_key_value().is_none_or(|(last, _)| *last < node.id());
            if !is_ascending {
                return Err(Damage::Part("the order of nodes"));
            }
            table.nodes.insert(node.id(), node);
        }
        let stretches: Result<Vec<_>, _> = (0..reader.count(usize::from(SLOT_COUNT), 11, "the number of stretches")?)
            .map(|_| read_stretch(&mut reader))
            .collect();
        table.stretches = Stretches::of(stretches?).ok_or(Damage::Part("the order of stretches"))?;
        for _ in 0..reader.count(MOVES_MAX, 25, "the number of moves")? {
            table.moves.push(read_move(&mut reader)?);
        }
        table.requests = read_requests(&mut reader)?;
        reader.end()?;
        table.check().map_err(Damage::Broken)?;
        Ok(table)
    }
}

fn write_node(writer: &mut Writer, node: &Node) {
    writer.u32(node.id().0).u8(node.state as u8);
    write_facts(writer, &node.facts);
    writer.flag(node.takes_share);
}

fn read_node(reader: &mut Reader<'_>) -> Result<Node, Damage> {
    let id = NodeId(reader.u32()?);
    let state = NodeState::of(reader.u8()?).ok_or(Damage::Part("the state of a node"))?;
    let facts = read_facts(reader, id)?;
    let takes_share = reader.flag("whether a node takes its share")?;
    Ok(Node { facts, state, takes_share })
}

/// All that a node says of itself but its number.
pub(crate) fn write_facts(writer: &mut Writer, facts: &Newcomer) {
    writer.u64(facts.incarnation).text(&facts.host).u16(facts.port).u16(facts.cores).u16(facts.weight);
    writer.text(&facts.zone).text(&facts.machine).bytes(&facts.identity);
}

pub(crate) fn read_facts(reader: &mut Reader<'_>, id: NodeId) -> Result<Newcomer, Damage> {
    let (incarnation, host) = (reader.u64()?, reader.text("a host")?);
    let (port, cores, weight) = (reader.u16()?, reader.u16()?, reader.u16()?);
    let (zone, machine, identity) = (reader.text("a zone")?, reader.text("a machine")?, reader.array()?);
    Ok(Newcomer { id, incarnation, host, port, cores, weight, zone, machine, identity })
}

pub(crate) fn write_place(writer: &mut Writer, place: InstanceName) {
    writer.u32(place.node.0).u16(place.core.0);
}

pub(crate) fn read_place(reader: &mut Reader<'_>) -> Result<InstanceName, Damage> {
    Ok(InstanceName { node: NodeId(reader.u32()?), core: CoreId(reader.u16()?) })
}

pub(crate) fn write_slots(writer: &mut Writer, slots: SlotRange) {
    writer.u16(slots.first.number()).u16(slots.last.number());
}

pub(crate) fn read_slots(reader: &mut Reader<'_>) -> Result<SlotRange, Damage> {
    range(reader.u16()?, reader.u16()?).ok_or(Damage::Part("a range of slots"))
}

fn write_stretch(writer: &mut Writer, stretch: &Stretch) {
    writer.u16(stretch.first.number()).u64(stretch.epoch.0).u8(stretch.chain.len() as u8);
    for member in stretch.chain.iter() {
        write_place(writer, member.place);
        writer.flag(member.whole);
    }
}

fn read_stretch(reader: &mut Reader<'_>) -> Result<Stretch, Damage> {
    let first = Slot::new(reader.u16()?).ok_or(Damage::Part("the first slot of a stretch"))?;
    let epoch = Epoch(reader.u64()?);
    let count = usize::from(reader.u8()?);
    if count > CHAIN_MEMBERS_MAX {
        return Err(Damage::Part("the length of a chain"));
    }
    let mut chain = Chain::EMPTY;
    for _ in 0..count {
        chain.push(Member { place: read_place(reader)?, whole: reader.flag("whole or filling")? });
    }
    Ok(Stretch { first, epoch, chain })
}

fn read_move(reader: &mut Reader<'_>) -> Result<Move, Damage> {
    let (id, slots) = (reader.u64()?, read_slots(reader)?);
    let (from, to) = (read_place(reader)?, read_place(reader)?);
    let state = match reader.u8()? {
        1 => MoveState::Wanted,
        2 => MoveState::HandingOver,
        _ => return Err(Damage::Part("the state of a move")),
    };
    Ok(Move { id, slots, from, to, state })
}

fn write_requests(writer: &mut Writer, requests: &Requests) {
    writer.count(requests.0.len());
    for (id, proposer) in &requests.0 {
        writer.u64(*id).u64(proposer.floor).count(proposer.answers.len());
        for (number, answer) in &proposer.answers {
            writer.u64(*number).u64(answer.index);
            match answer.refusal.map(|refusal| refusal.words()) {
                None => writer.u8(0),
                Some((kind, one, other)) => writer.u8(kind).u64(one).u64(other),
            };
        }
    }
}

fn read_requests(reader: &mut Reader<'_>) -> Result<Requests, Damage> {
    let mut requests = Requests::default();
    for _ in 0..reader.count(PROPOSERS_MAX, 18, "the number of proposers")? {
        let (id, floor) = (reader.u64()?, reader.u64()?);
        let mut proposer = Proposer { floor, ..Proposer::default() };
        for _ in 0..reader.count(REQUESTS_PER_PROPOSER_MAX, 17, "the number of answers")? {
            let (number, answer) = read_answer(reader)?;
            if proposer.answers.last_key_value().is_some_and(|(last, _)| *last >= number) {
                return Err(Damage::Part("the order of answers"));
            }
            proposer.answers.insert(number, answer);
        }
        if requests.0.last_key_value().is_some_and(|(last, _)| *last >= id) {
            return Err(Damage::Part("the order of proposers"));
        }
        requests.0.insert(id, proposer);
    }
    Ok(requests)
}

fn read_answer(reader: &mut Reader<'_>) -> Result<(u64, Answer), Damage> {
    let (number, index) = (reader.u64()?, reader.u64()?);
    let refusal = match reader.u8()? {
        0 => None,
        kind => {
            let (one, other) = (reader.u64()?, reader.u64()?);
            Some(Refusal::of(kind, one, other).ok_or(Damage::Part("a refusal"))?)
        }
    };
    Ok((number, Answer { index, refusal }))
}
