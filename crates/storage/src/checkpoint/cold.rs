//! Cold: a walk waits for what it has to read of its group's old run (`docs/internals/tiering.md`).

use base::Effect;

use super::{Asked, Checkpoints, State, View};
use crate::run::format::run_file_name;

/// Numbers of a walk's reads begin with this bit; the others are the caller's.
pub const READ_OF_RUN: u64 = 1 << 63;
/// Stretches of one slice: fewer than records of the shortest cold values in the longest slice.
const STRETCH_BITS: u32 = 24;

impl Checkpoints {
    /// Asks for what the slice under way needs, as far as more reads may be under way.
    pub(super) fn read_cold(&mut self, view: &mut View<'_>) {
        let State::Walking { making, writing } = &mut self.state else { return };
        let group = making.writer.header().group;
        let run = self.runs.iter().find(|run| run.group == group).expect("only own groups get runs");
        let name = run_file_name(group, run.cut);
        for stretch in making.writer.next_reads() {
            let token = READ_OF_RUN | self.begun << STRETCH_BITS | stretch.number as u64;
            let (name, offset, bytes) = (name.clone(), stretch.offset, stretch.bytes as u64);
            view.effects.push(Effect::ReadRun { token, name, offset, bytes });
        }
        *writing = true;
    }

    /// A stretch of the old run was read, or could not be.
    pub fn on_run_read(&mut self, token: u64, read: Result<Vec<u8>, String>, view: &mut View<'_>) -> Asked {
        let (begun, number) = ((token & !READ_OF_RUN) >> STRETCH_BITS, token & ((1 << STRETCH_BITS) - 1));
        let State::Walking { making, .. } = &mut self.state else { return Asked::Nothing };
        if begun != self.begun {
            return Asked::Nothing; // Of a walk that failed meanwhile.
        }
        let group = making.writer.header().group;
        let slice = read.and_then(|bytes| {
            making.writer.take_read(number as usize, &bytes).map_err(|offset| {
                format!("slot group {} at offset {offset} of its run: a record is damaged", group.number())
            })
        });
        match slice {
            Ok(None) => self.read_cold(view),
            Ok(Some(bytes)) => self.write_slice(bytes, view),
            Err(reason) => {
                self.note_failure(reason, view.now);
                return self.drop_run(view);
            }
        }
        Asked::Nothing
    }
}
