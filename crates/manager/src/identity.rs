//! The file `cluster`: who this node is, and what it last knew of the others.
//!
//! ```text
//!  0          8       12      16             32            48    52
//!  "zerohopC" 1 u32   crc32c  cluster [u8;16] token [u8;16] node  voters …  table …       little endian; the checksum covers
//!                                                                                          all behind it
//! ```
//!
//! What it says of others is an address book: nobody serves by it before a majority of managers has granted a lease.

use base::NodeId;
use control::Table;
use control::code::{Reader, Writer};
use control::lease::Voters;
use wire::trust::Token;

use crate::message::{read_voters, write_voters};

/// The file's name in the data directory.
pub const FILE_NAME: &str = "cluster";

const MAGIC: [u8; 8] = *b"zerohopC";
const FORMAT: u32 = 1;
/// Bytes that the checksum does not cover.
const HEAD_BYTES: usize = 16;

/// The node of a directory that was found to be an older copy.
pub(crate) const NOBODY: NodeId = NodeId(0);

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the cluster, by chance.
    pub cluster: [u8; 16],
    /// What its nodes prove to each other that they have.
    pub token: Token,
    /// This node's number.
    pub node: NodeId,
    /// The voters that were agreed.
    pub voters: Voters,
    /// The table.
    pub table: Table,
}

impl Identity {
    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.bytes(&MAGIC).u32(FORMAT).u32(0).bytes(&self.cluster).bytes(self.token.bytes()).u32(self.node.0);
        write_voters(&mut out, &self.voters);
        out.bytes(&self.table.encode());
        let crc = base::checksum::crc32c(&out.0[HEAD_BYTES..]);
        out.0[12..16].copy_from_slice(&crc.to_le_bytes());
        out.0
    }

    /// What the file says.
    ///
    /// # Errors
    /// A sentence for whoever reads why the node does not start.
    pub fn decode(bytes: &[u8]) -> Result<Identity, String> {
        let damaged = |what: &str| format!("{FILE_NAME}: {what}; restore it from a copy, or let the node join anew");
        let mut from = Reader(bytes);
        let magic = from.array::<8>().map_err(|_| damaged("it is too short"))?;
        if magic != MAGIC {
            return Err(damaged("it does not begin as such a file does"));
        }
        let mut number = || from.u32().map_err(|_| damaged("it is too short"));
        let (format, crc) = (number()?, number()?);
        if format != FORMAT {
            return Err(format!("{FILE_NAME}: its format is {format}; this version reads {FORMAT}"));
        }
        if crc != base::checksum::crc32c(from.0) {
            return Err(damaged("its checksum is wrong"));
        }
        let mut read = || {
            let (cluster, token, node) = (from.array()?, Token::new(from.array()?), NodeId(from.u32()?));
            let voters = read_voters(&mut from)?;
            let table = Table::decode(from.0)?;
            Ok::<_, control::Damage>(Identity { cluster, token, node, voters, table })
        };
        read().map_err(|damage| damaged(&damage.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_round_trips_and_no_flipped_bit_passes() {
        let voters = Voters { version: 3, sets: vec![vec![NodeId(1)]] };
        let identity =
            Identity { cluster: [1; 16], token: Token::new([2; 16]), node: NodeId(3), voters, table: Table::new() };
        let bytes = identity.encode();
        assert_eq!(Identity::decode(&bytes), Ok(identity));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Identity::decode(&damaged).is_err(), "bit {bit}");
        }
        assert!((0..bytes.len()).all(|end| Identity::decode(&bytes[..end]).is_err()));
    }
}
