//! One request with long values: what of them the log lacks, and how a part of a value lies in its blocks.
//!
//! ```text
//!   missing   [ block ][ block ][ bl…        what the log lacks, from the front on
//!   then      ··········[ck ][ block ][ bl…  laid out as it will lie in the value that it goes into
//! ```

use std::ops::Range;

use base::{BLOCK_BYTES, Blocks, Database};
use commands::ToStage;
use wire::Protocol;

use crate::forward::ParkedHop;
use crate::hop::Origin;
use crate::owned_request::{LongValue, OwnedRequest};

/// How often a value is laid out anew because what it goes into changed meanwhile; then it is copied as the request runs.
const LAYINGS_MAX: u8 = 4;

/// A request with long values that are on their way to the log. Only one that has a single value lays it out.
pub struct Upload {
    pub(super) parked: ParkedHop,
    /// Parts of its values that the log lacks, the next one at the end: which value, and what of it.
    missing: Vec<(usize, Range<usize>)>,
    laying: Option<Laying>,
    layings: u8,
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
        mut request: OwnedRequest,
        long: Vec<(usize, Blocks)>,
        shown: (Database, Protocol),
    ) -> Upload {
        let value = |(argument, blocks): (usize, Blocks)| {
            let key = commands::key_of_long(request.spec.id, argument);
            let name = request.arguments().get(key).expect("the arity covers the key");
            LongValue::new(argument, placement::slot_of(name), blocks)
        };
        let values: Vec<LongValue> = long.into_iter().map(value).collect();
        let missing = values.iter().map(|value| 0..value.blocks.len()).enumerate().rev().collect();
        request.set_long(values);
        Upload { parked: ParkedHop::new(request, origin, shown), missing, laying: None, layings: 0 }
    }

    /// A request that gives a value of the store to another key. If it asked `before`, the log lacks what was written since.
    pub(super) fn kept(mut parked: ParkedHop, ToStage { blocks, slot }: ToStage, before: Option<&LongValue>) -> Upload {
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
        parked.request.set_long(vec![value]);
        Upload { parked, missing, laying: None, layings: LAYINGS_MAX }
    }

    fn values_mut(&mut self) -> &mut [LongValue] {
        self.parked.request.long_mut()
    }

    /// The value that a request has which has one.
    pub(super) fn value(&self) -> &LongValue {
        &self.parked.request.long()[0]
    }

    /// The value of which the log gets the next part.
    pub(super) fn next_value(&mut self) -> Option<&mut LongValue> {
        let (number, _) = *self.missing.last()?;
        self.values_mut().get_mut(number)
    }

    /// Whether the log lacks something.
    pub(super) fn is_missed(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Bytes that the log lacks.
    pub(super) fn missing_bytes(&self) -> usize {
        self.missing.iter().map(|(_, part)| part.len()).sum()
    }

    /// The log gets no more; the changes will bring along what it lacks.
    pub(super) fn give_up_log(&mut self) {
        for (number, _) in std::mem::take(&mut self.missing) {
            self.values_mut()[number].stage = None;
        }
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
        let value = &mut self.values_mut()[number];
        let pieces = value.blocks.pieces(value.skip + start..value.skip + end);
        pieces.for_each(|piece| bytes.extend_from_slice(piece));
        let stage = value.stage.as_mut()?;
        let (offset, is_again) = (start as u64, (start as u64) < stage.bytes);
        stage.bytes = stage.bytes.max(end as u64);
        Some(NextBlock { offset, bytes, is_again })
    }

    /// Whether it is on its way into other blocks, which may begin now: `skip` is how it should lie.
    pub(super) fn lays_out(&mut self, skip: impl FnOnce(&OwnedRequest, Database) -> usize) -> bool {
        let len = self.value().payload_bytes();
        if let Some(Laying { skip, laid }) = self.laying.take_if(|laying| laying.laid.len() == laying.skip + len) {
            let value = &mut self.values_mut()[0];
            (value.blocks, value.skip) = (laid, skip);
        }
        if self.laying.is_none() && self.layings < LAYINGS_MAX {
            let skip = skip(&self.parked.request, self.parked.database);
            if skip != self.value().skip {
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
        let value = &mut self.values_mut()[0];
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
