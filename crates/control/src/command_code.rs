//! A command as bytes: what managers propose, agree on and keep in their log.
//!
//! ```text
//! command   format:u8 = 2  proposer:u64  number:u64  kind:u8  body
//!  1 create    cluster:[u8;16]  settings  relaxed:u8  id:u32  facts        settings: lease ms:u32  chain length:u8
//!  2 join      id:u32  facts                                              facts, text, place: as in the table
//!  3 returned  node:u32  incarnation:u64  host:text  port:u16  cores:u16     read only: who is down keeps its address
//!  4 fence     node:u32  incarnation:u64
//!  5 promote   node:u32  incarnation:u64  count:u16 ( slots  place ) …     slots: first:u16  last:u16
//!  6 whole     slots  node:u32  epoch:u64
//!  7 replace   slots  epoch:u64  count:u16 place …  counted:u8
//!  8 begin     slots  epoch:u64  from: place  to: place
//!  9 hand over id:u64  epoch:u64          10 end  id:u64          11 cancel  id:u64
//! 12 drain     node:u32                   13 remove  node:u32  abandon:u8
//! 14 weigh     node:u32  weight:u16       15 configure  settings
//! 16 doubt     slots  node:u32  epoch:u64
//! 17 share     node:u32  takes:u8         18 keep  node:u32
//! 19 returned  as 3: who is down and has the address is not there any more
//! 20 detach    as 5
//! ```

use base::limits::{CHAIN_MEMBERS_MAX, REPLACEMENTS_MAX};

use crate::code::{Damage, Reader, Writer};
use crate::command::{Action, Comeback, Command, Founding, Replacement, RequestId, Settings};
use crate::table_code::{read_facts, read_place, read_slots, write_facts, write_place, write_slots};
use base::NodeId;

/// The format that is written, and the only one that is read so far.
const FORMAT: u8 = 2;

impl Command {
    /// Its bytes. Lists and texts that no table accepts are cut, but stay too long to be accepted.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(FORMAT).u64(self.id.proposer).u64(self.id.number);
        write_action(&mut writer, &self.action);
        writer.0
    }

    /// The command that these bytes mean; whether it can be obeyed is for the table to say.
    ///
    /// # Errors
    /// [`Damage`] when they mean none.
    pub fn decode(bytes: &[u8]) -> Result<Command, Damage> {
        let mut reader = Reader(bytes);
        match reader.u8()? {
            FORMAT => {}
            other => return Err(Damage::Format(u32::from(other))),
        }
        let id = RequestId { proposer: reader.u64()?, number: reader.u64()? };
        let action = read_action(&mut reader)?;
        reader.end()?;
        Ok(Command { id, action })
    }
}

fn write_action(writer: &mut Writer, action: &Action) {
    match action {
        Action::Create(founding) => {
            writer.u8(1).bytes(&founding.cluster);
            write_settings(writer, founding.settings);
            writer.flag(founding.relaxed).u32(founding.node.id.0);
            write_facts(writer, &founding.node);
        }
        Action::Join(newcomer) => {
            writer.u8(2).u32(newcomer.id.0);
            write_facts(writer, newcomer);
        }
        Action::Returned(comeback) => {
            let kind = if comeback.takes_address { 19 } else { 3 };
            writer.u8(kind).u32(comeback.node.0).u64(comeback.incarnation).text(&comeback.host);
            writer.u16(comeback.port).u16(comeback.cores);
        }
        Action::Fence { node, incarnation } => {
            writer.u8(4).u32(node.0).u64(*incarnation);
        }
        Action::Promote { node, incarnation, replacements } => {
            writer.u8(5).u32(node.0).u64(*incarnation);
            write_replacements(writer, replacements);
        }
        Action::Detach { node, incarnation, replacements } => {
            writer.u8(20).u32(node.0).u64(*incarnation);
            write_replacements(writer, replacements);
        }
        Action::Drain { node } => {
            writer.u8(12).u32(node.0);
        }
        Action::Share { node, takes } => {
            writer.u8(17).u32(node.0).flag(*takes);
        }
        Action::Keep { node } => {
            writer.u8(18).u32(node.0);
        }
        Action::Remove { node, abandon } => {
            writer.u8(13).u32(node.0).flag(*abandon);
        }
        Action::Weigh { node, weight } => {
            writer.u8(14).u32(node.0).u16(*weight);
        }
        Action::Configure(settings) => write_settings(writer.u8(15), *settings),
        _ => write_change(writer, action),
    }
}

/// The commands about chains and moves.
fn write_change(writer: &mut Writer, action: &Action) {
    match action {
        Action::Whole { slots, node, epoch } => {
            write_slots(writer.u8(6), *slots);
            writer.u32(node.0).u64(*epoch);
        }
        Action::Doubt { slots, node, epoch } => {
            write_slots(writer.u8(16), *slots);
            writer.u32(node.0).u64(*epoch);
        }
        Action::Replace { slots, epoch, places, counted } => {
            write_slots(writer.u8(7), *slots);
            let written = &places[..places.len().min(CHAIN_MEMBERS_MAX + 1)];
            writer.u64(*epoch).count(written.len());
            written.iter().for_each(|place| write_place(writer, *place));
            writer.flag(*counted);
        }
        Action::MoveBegin { slots, epoch, from, to } => {
            write_slots(writer.u8(8), *slots);
            writer.u64(*epoch);
            write_place(writer, *from);
            write_place(writer, *to);
        }
        Action::HandOver { id, epoch } => {
            writer.u8(9).u64(*id).u64(*epoch);
        }
        Action::MoveEnd { id } => {
            writer.u8(10).u64(*id);
        }
        Action::MoveCancel { id } => {
            writer.u8(11).u64(*id);
        }
        _ => unreachable!("every other command is written by who calls"),
    }
}

fn write_replacements(writer: &mut Writer, replacements: &[Replacement]) {
    let written = &replacements[..replacements.len().min(REPLACEMENTS_MAX + 1)];
    writer.count(written.len());
    for replacement in written {
        write_slots(writer, replacement.slots);
        write_place(writer, replacement.place);
    }
}

fn read_action(reader: &mut Reader<'_>) -> Result<Action, Damage> {
    Ok(match reader.u8()? {
        1 => read_founding(reader)?,
        2 => {
            let id = NodeId(reader.u32()?);
            Action::Join(read_facts(reader, id)?)
        }
        kind @ (3 | 19) => Action::Returned(Comeback {
            node: NodeId(reader.u32()?),
            incarnation: reader.u64()?,
            host: reader.text("a host")?,
            port: reader.u16()?,
            cores: reader.u16()?,
            takes_address: kind == 19,
        }),
        4 => Action::Fence { node: NodeId(reader.u32()?), incarnation: reader.u64()? },
        5 => Action::Promote {
            node: NodeId(reader.u32()?),
            incarnation: reader.u64()?,
            replacements: read_replacements(reader)?,
        },
        6 => Action::Whole { slots: read_slots(reader)?, node: NodeId(reader.u32()?), epoch: reader.u64()? },
        7 => read_replacement(reader)?,
        8 => Action::MoveBegin {
            slots: read_slots(reader)?,
            epoch: reader.u64()?,
            from: read_place(reader)?,
            to: read_place(reader)?,
        },
        9 => Action::HandOver { id: reader.u64()?, epoch: reader.u64()? },
        10 => Action::MoveEnd { id: reader.u64()? },
        11 => Action::MoveCancel { id: reader.u64()? },
        12 => Action::Drain { node: NodeId(reader.u32()?) },
        13 => Action::Remove { node: NodeId(reader.u32()?), abandon: reader.flag("abandon")? },
        14 => Action::Weigh { node: NodeId(reader.u32()?), weight: reader.u16()? },
        15 => Action::Configure(read_settings(reader)?),
        16 => Action::Doubt { slots: read_slots(reader)?, node: NodeId(reader.u32()?), epoch: reader.u64()? },
        17 => Action::Share { node: NodeId(reader.u32()?), takes: reader.flag("whether a node takes its share")? },
        18 => Action::Keep { node: NodeId(reader.u32()?) },
        20 => Action::Detach {
            node: NodeId(reader.u32()?),
            incarnation: reader.u64()?,
            replacements: read_replacements(reader)?,
        },
        _ => return Err(Damage::Part("the kind of a command")),
    })
}

fn read_founding(reader: &mut Reader<'_>) -> Result<Action, Damage> {
    let (cluster, settings) = (reader.array()?, read_settings(reader)?);
    let (relaxed, id) = (reader.flag("relaxed")?, NodeId(reader.u32()?));
    Ok(Action::Create(Founding { cluster, settings, relaxed, node: read_facts(reader, id)? }))
}

fn read_replacements(reader: &mut Reader<'_>) -> Result<Vec<Replacement>, Damage> {
    let count = reader.count(REPLACEMENTS_MAX + 1, 10, "the number of replacements")?;
    (0..count).map(|_| Ok(Replacement { slots: read_slots(reader)?, place: read_place(reader)? })).collect()
}

fn read_replacement(reader: &mut Reader<'_>) -> Result<Action, Damage> {
    let (slots, epoch) = (read_slots(reader)?, reader.u64()?);
    let count = reader.count(CHAIN_MEMBERS_MAX + 1, 6, "the number of members")?;
    let places: Result<Vec<_>, _> = (0..count).map(|_| read_place(reader)).collect();
    Ok(Action::Replace { slots, epoch, places: places?, counted: reader.flag("counted")? })
}

fn write_settings(writer: &mut Writer, settings: Settings) {
    writer.u32(settings.lease_ms).u8(settings.chain_length);
}

fn read_settings(reader: &mut Reader<'_>) -> Result<Settings, Damage> {
    Ok(Settings { lease_ms: reader.u32()?, chain_length: reader.u8()? })
}
