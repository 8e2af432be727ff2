//! The manifest: which store this is, how often it was opened, where every earlier log ended and where its runs stood.
//!
//! ```text
//!  0 magic "ZHMANIF1" · 8 format u16 · 10 cores u16 · 12 serving u8 · 13 zero [u8;3] · 16 store id [u8;16]
//!  32 incarnation u64 · 40 chains u32 · 44 cuts u32
//!  48 { incarnation u64 · core u16 · cores u16 · zero u32 · last ordinal u64 }*
//!     { incarnation u64 · begin u64 }* · crc32c u32 of all before
//! ```
//!
//! It is replaced atomically at every start, before anything is acknowledged. Without it the end of a log that nobody
//! continued could rot away unnoticed, and a lost file would look like one that never was. Runs that are made later are
//! not in it: a newer one counts, and one that is older than the manifest says is damage.

use base::{LogOrdinal, SLOT_GROUP_COUNT};

use super::format::{FORMAT_VERSION, FORMATS_READ, u16_at, u32_at, u64_at};
use crate::run::format::Cut;

/// The manifest's file name.
pub const MANIFEST_FILE_NAME: &str = "MANIFEST";
const MAGIC: &[u8; 8] = b"ZHMANIF1";
const HEAD_BYTES: usize = 48;
const CHAIN_BYTES: usize = 24;
const CUT_BYTES: usize = 16;

/// One core's log of one incarnation, closed for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedChain {
    /// Which opening of the store wrote it.
    pub incarnation: u64,
    /// Which core.
    pub core: u16,
    /// Of how many.
    pub cores: u16,
    /// Its last group that counts; 0 when it has none.
    pub last_ordinal: LogOrdinal,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Random identity of the store.
    pub store_id: [u8; 16],
    /// The incarnation that wrote this manifest.
    pub incarnation: u64,
    /// Its number of cores.
    pub cores: u16,
    /// Whether its segments exist: from then on a missing file is damage.
    pub serving: bool,
    /// The logs of earlier incarnations that some slot group still needs.
    pub closed: Vec<ClosedChain>,
    /// Where the runs of the slot groups stood when it was written, by group; empty while there are none.
    pub cuts: Vec<Cut>,
}

/// Why a manifest is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestError {
    /// Not a manifest, or damaged.
    Damaged,
    /// A format this version does not read.
    Format(u16),
}

impl Manifest {
    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let lists_bytes = self.closed.len() * CHAIN_BYTES + self.cuts.len() * CUT_BYTES;
        let mut bytes = Vec::with_capacity(HEAD_BYTES + lists_bytes + 4);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.cores.to_le_bytes());
        bytes.extend_from_slice(&[u8::from(self.serving), 0, 0, 0]);
        bytes.extend_from_slice(&self.store_id);
        bytes.extend_from_slice(&self.incarnation.to_le_bytes());
        bytes.extend_from_slice(&(self.closed.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(self.cuts.len() as u32).to_le_bytes());
        for chain in &self.closed {
            bytes.extend_from_slice(&chain.incarnation.to_le_bytes());
            bytes.extend_from_slice(&chain.core.to_le_bytes());
            bytes.extend_from_slice(&chain.cores.to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&chain.last_ordinal.0.to_le_bytes());
        }
        for cut in &self.cuts {
            bytes.extend_from_slice(&cut.incarnation.to_le_bytes());
            bytes.extend_from_slice(&cut.begin.0.to_le_bytes());
        }
        let crc = base::checksum::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Read the file's bytes.
    pub fn decode(file: &[u8]) -> Result<Manifest, ManifestError> {
        let (bytes, crc) = file.split_last_chunk::<4>().ok_or(ManifestError::Damaged)?;
        let intact = bytes.len() >= HEAD_BYTES
            && &bytes[..8] == MAGIC
            && base::checksum::crc32c(bytes) == u32::from_le_bytes(*crc);
        if !intact {
            return Err(ManifestError::Damaged);
        }
        if !FORMATS_READ.contains(&u16_at(bytes, 8)) {
            return Err(ManifestError::Format(u16_at(bytes, 8)));
        }
        let (chains, cuts) = (u32_at(bytes, 40) as usize, u32_at(bytes, 44) as usize);
        if bytes.len() != HEAD_BYTES + chains * CHAIN_BYTES + cuts * CUT_BYTES || cuts > usize::from(SLOT_GROUP_COUNT) {
            return Err(ManifestError::Damaged);
        }
        let (chains, cuts) = bytes[HEAD_BYTES..].split_at(chains * CHAIN_BYTES);
        let cut = |cut: &[u8]| Cut { incarnation: u64_at(cut, 0), begin: LogOrdinal(u64_at(cut, 8)) };
        let closed = chains.chunks_exact(CHAIN_BYTES).map(|chain| ClosedChain {
            incarnation: u64_at(chain, 0),
            core: u16_at(chain, 8),
            cores: u16_at(chain, 10),
            last_ordinal: LogOrdinal(u64_at(chain, 16)),
        });
        Ok(Manifest {
            store_id: bytes[16..32].try_into().expect("sixteen bytes"),
            incarnation: u64_at(bytes, 32),
            cores: u16_at(bytes, 10),
            serving: bytes[12] == 1,
            closed: closed.collect(),
            cuts: cuts.chunks_exact(CUT_BYTES).map(cut).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_notices_every_flipped_bit() {
        let manifest = Manifest {
            store_id: [9; 16],
            incarnation: 2,
            cores: 4,
            serving: true,
            closed: vec![ClosedChain { incarnation: 1, core: 0, cores: 1, last_ordinal: LogOrdinal(77) }],
            cuts: vec![Cut { incarnation: 1, begin: LogOrdinal(5) }, Cut::default()],
        };
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&damaged).is_err(), "bit {bit}");
        }
        (0..bytes.len()).for_each(|length| assert!(Manifest::decode(&bytes[..length]).is_err()));
    }
}
