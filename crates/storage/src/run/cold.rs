//! Values of a walk that are not in memory: their records are read from the group's old run, and what they say goes into the new one.

use base::limits::WALK_READS_MAX;
use base::{Database, Slot, Version};

use crate::key::Key;
use crate::log::buffer::LogBuffer;
use crate::log::record::RecordForm;
use crate::tiering::cold::record_of;

/// What lies between two wanted records is read along if it is shorter, bytes.
const GAP_BYTES_MAX: u64 = 16 << 10;
/// Most bytes that one read brings.
const READ_BYTES_MAX: u64 = 256 << 10;

/// A value that the walk came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub position: u32,
    pub slot: Slot,
    pub version: Version,
    pub offset: u64,
    pub bytes: usize,
    pub form: RecordForm,
}

/// A stretch of the old run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its number, for [`super::RunWriter::take_read`].
    pub number: usize,
    /// First byte.
    pub offset: u64,
    /// How many.
    pub bytes: usize,
}

/// A slice of a run that waits for reads.
#[derive(Debug)]
pub(super) struct ColdSlice {
    pub buffer: LogBuffer,
    /// In order of offset.
    wanted: Vec<Wanted>,
    /// Each with the first of its wanted records.
    stretches: Vec<(Stretch, usize)>,
    asked: usize,
    read: usize,
}

impl ColdSlice {
    pub fn new(buffer: LogBuffer, mut wanted: Vec<Wanted>) -> ColdSlice {
        wanted.sort_unstable_by_key(|wanted| wanted.offset);
        let mut stretches: Vec<(Stretch, usize)> = Vec::new();
        for (index, next) in wanted.iter().enumerate() {
            let end = next.offset + next.bytes as u64;
            match stretches.last_mut() {
                Some((last, _))
                    if next.offset <= last.offset + last.bytes as u64 + GAP_BYTES_MAX
                        && end - last.offset <= READ_BYTES_MAX =>
                {
                    last.bytes = last.bytes.max((end - last.offset) as usize);
                }
                _ => {
                    let number = stretches.len();
                    stretches.push((Stretch { number, offset: next.offset, bytes: next.bytes }, index));
                }
            }
        }
        ColdSlice { buffer, wanted, stretches, asked: 0, read: 0 }
    }

    /// What is to be read next, as far as more may be under way.
    pub fn next_reads(&mut self) -> impl Iterator<Item = Stretch> + '_ {
        let from = self.asked;
        self.asked = self.stretches.len().min(self.read + WALK_READS_MAX);
        self.stretches[from..self.asked].iter().map(|(stretch, _)| *stretch)
    }

    /// A stretch was read: its records go into the slice, and `copied` is told where each lies among its records.
    ///
    /// # Errors
    /// The offset in the old run of what is not the record that it should be.
    pub fn take(&mut self, number: usize, bytes: &[u8], mut copied: impl FnMut(&Wanted, usize)) -> Result<(), u64> {
        let (stretch, first) = self.stretches[number];
        let end = self.stretches.get(number + 1).map_or(self.wanted.len(), |(_, next)| *next);
        for wanted in &self.wanted[first..end] {
            let start = (wanted.offset - stretch.offset) as usize;
            let record = bytes.get(start..start + wanted.bytes).unwrap_or_default();
            let Some(record) = record_of((record, wanted.form), wanted.slot, wanted.version) else {
                return Err(wanted.offset);
            };
            copied(wanted, self.buffer.record_bytes());
            let key = Key { bytes: record.key, database: Database(record.database), slot: wanted.slot, hash: 0 };
            self.buffer.append_sealed(&key, record.version, record.tag, &[record.body]);
        }
        self.read += 1;
        Ok(())
    }

    pub fn is_whole(&self) -> bool {
        self.read == self.stretches.len()
    }
}
