//! One request, or a transaction, with long values: what of them the log lacks, and how a part of a value lies in its blocks.
//!
//! ```text
//!   missing   [ block ][ block ][ bl…        what the log lacks, from the front on
//!   then      ··········[ck ][ block ][ bl…  laid out as it will lie in the value that it goes into
//! ```

use std::ops::Range;

use base::{BLOCK_BYTES, Blocks, ConnectionId, Database, Slot};
use commands::ToStage;
use wire::Protocol;

use crate::exec::Exec;
use crate::forward::ParkedHop;
use crate::hop::Origin;
use crate::owned_request::{LongValue, OwnedRequest};
use crate::route::GroupMasks;

/// How often a value is laid out anew because what it goes into changed meanwhile; then it is copied as the request runs.
const LAYINGS_MAX: u8 = 4;

/// Long values that are on their way to the log, and what runs then. Only a request that has a single value lays it out.
pub struct Upload {
    values: Vec<LongValue>,
    then: Then,
    /// Parts of its values that the log lacks, the next one at the end: which value, and what of it.
    missing: Vec<(usize, Range<usize>)>,
    laying: Option<Laying>,
    layings: u8,
}

/// What runs once the log has the values.
pub enum Then {
    /// A request.
    Request(ParkedHop),
    /// What a connection queued, which waits.
    Exec {
        /// Which.
        connection: ConnectionId,
        /// The groups of its keys, which are of this core.
        masks: GroupMasks,
        /// Without its long values.
        exec: Box<Exec>,
    },
}

/// A value on its way into other blocks, `skip` bytes into the first.
struct Laying {
    skip: usize,
    laid: Blocks,
}

/// A part of a value for the log.
pub(super) struct NextBlock {
    /// Where in the value.
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    /// It was there before, and was written to.
    pub(super) is_again: bool,
}

impl Upload {
    /// A request that came with values: which arguments they are.
    pub(super) fn brought(
        origin: Origin,
        request: OwnedRequest,
        long: Vec<(usize, Blocks)>,
        shown: (Database, Protocol),
    ) -> Upload {
        let value = |(argument, blocks): (usize, Blocks)| {
            let key = commands::key_of_long(request.spec.id, argument);
            let name = request.arguments().get(key).expect("the arity covers the key");
            LongValue::new(argument, placement::slot_of(name), blocks)
        };
        let values: Vec<LongValue> = long.into_iter().map(value).collect();
        Upload::queued(values, Then::Request(ParkedHop::new(request, origin, shown)))
    }

    /// Values of which the log has nothing yet.
    pub(super) fn queued(values: Vec<LongValue>, then: Then) -> Upload {
        let missing = values.iter().map(|value| 0..value.blocks.len()).enumerate().rev().collect();
        Upload { values, then, missing, laying: None, layings: 0 }
    }

    /// A request that gives a value of the store to another key. If it asked `before`, the log lacks what was written since.
    pub(super) fn kept(parked: ParkedHop, ToStage { blocks, slot }: ToStage, before: Option<&LongValue>) -> Upload {
        let mut value = LongValue::new(commands::KEPT, slot, blocks);
        let mut missing = vec![(0, 0..value.blocks.len())];
        if let Some(before) = before {
            value.rounds = before.rounds.saturating_add(1);
            if before.stage.is_some() && value.blocks.len() >= before.blocks.len() {
                let changed = value.blocks.changed_since(&before.blocks);
                missing = changed.into_iter().rev().map(|part| (0, part)).collect();
                value.stage = before.stage;
            }
        }
        let then = Then::Request(parked);
        Upload { values: vec![value], then, missing, laying: None, layings: LAYINGS_MAX }
    }

    /// What runs now, with its values.
    pub(super) fn finish(self) -> Then {
        let Upload { values, mut then, .. } = self;
        match &mut then {
            Then::Request(parked) => parked.request.set_long(values),
            Then::Exec { exec, .. } => exec.set_long(values),
        }
        then
    }

    /// All of them.
    pub(super) fn values(&self) -> &[LongValue] {
        &self.values
    }

    /// Bytes that the store does not have yet.
    pub(super) fn new_bytes(&self) -> usize {
        self.values.iter().map(LongValue::new_bytes).sum()
    }

    /// The value of which the log gets the next part.
    pub(super) fn next_value(&mut self) -> Option<&mut LongValue> {
        let (number, _) = *self.missing.last()?;
        self.values.get_mut(number)
    }

    /// Whether the log lacks something.
    pub(super) fn is_missed(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Bytes that the log lacks.
    pub(super) fn missing_bytes(&self) -> usize {
        self.missing.iter().map(|(_, part)| part.len()).sum()
    }

    /// The log gets no more; the changes will bring along what it lacks. The stages that no change will name.
    pub(super) fn give_up_log(&mut self) -> Vec<(Slot, u64)> {
        let missing = std::mem::take(&mut self.missing);
        let given_up = missing.into_iter().filter_map(|(number, _)| {
            let value = &mut self.values[number];
            value.stage.take().map(|stage| (value.slot, stage.number))
        });
        given_up.collect()
    }

    /// The next part for the log, which has it from now on.
    pub(super) fn next_block(&mut self) -> Option<NextBlock> {
        let (number, part) = self.missing.last_mut()?;
        let (number, start) = (*number, part.start);
        let end = part.end.min(start + BLOCK_BYTES);
        part.start = end;
        if end == part.end {
            self.missing.pop();
        }
        let mut bytes = Vec::with_capacity(BLOCK_BYTES);
        let value = &mut self.values[number];
        let pieces = value.blocks.pieces(value.skip + start..value.skip + end);
        pieces.for_each(|piece| bytes.extend_from_slice(piece));
        let stage = value.stage.as_mut()?;
        let (offset, is_again) = (start as u64, (start as u64) < stage.bytes);
        stage.bytes = stage.bytes.max(end as u64);
        Some(NextBlock { offset, bytes, is_again })
    }

    /// What brings a single value, which is not begun: where it will lie may be told with it.
    pub(super) fn begins_alone(&self) -> Option<(&OwnedRequest, Database)> {
        match (&self.then, &self.values[..]) {
            (Then::Request(parked), [value]) if value.stage.is_none() => Some((&parked.request, parked.database)),
            _ => None,
        }
    }

    /// Whether it is on its way into other blocks, which may begin now: `skip` is how it should lie.
    pub(super) fn lays_out(&mut self, skip: impl FnOnce(&OwnedRequest, Database) -> usize) -> bool {
        let (Then::Request(parked), [value]) = (&self.then, &mut self.values[..]) else { return false };
        let len = value.payload_bytes();
        if let Some(Laying { skip, laid }) = self.laying.take_if(|laying| laying.laid.len() == laying.skip + len) {
            (value.blocks, value.skip) = (laid, skip);
        }
        if self.laying.is_none() && self.layings < LAYINGS_MAX {
            let skip = skip(&parked.request, parked.database);
            if skip != value.skip {
                self.layings += 1;
                self.laying = Some(Laying { skip, laid: Blocks::of(&vec![0; skip]) });
            }
        }
        self.laying.is_some()
    }

    /// Whether some of it lies in other blocks already.
    pub(super) fn is_half_laid(&self) -> bool {
        self.laying.is_some()
    }

    /// Lays out the next block; its bytes.
    pub(super) fn lay_block(&mut self) -> usize {
        let Some(Laying { skip, mut laid }) = self.laying.take() else { return 0 };
        let Some(value) = self.values.first_mut() else { return 0 };
        let start = value.skip + laid.len() - skip;
        let end = value.blocks.len().min(start + BLOCK_BYTES);
        let mut left = value.blocks.len() - start;
        for piece in value.blocks.pieces(start..end) {
            left -= piece.len();
            laid.append(piece, left);
        }
        value.blocks.forget_front(end);
        self.laying = Some(Laying { skip, laid });
        end - start
    }
}
