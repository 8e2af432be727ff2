//! One request with a long value: what of it the log lacks, and how it lies in its blocks.
//!
//! ```text
//!   missing   [ block ][ block ][ bl…        what the log lacks, from the front on
//!   then      ··········[ck ][ block ][ bl…  laid out as it will lie in the value that it goes into
//! ```

use std::ops::Range;

use base::{BLOCK_BYTES, Blocks, Database, Slot};
use commands::ToStage;
use wire::Protocol;

use crate::forward::ParkedHop;
use crate::hop::Origin;
use crate::owned_request::{LongValue, OwnedRequest};

/// How often a value is laid out anew because what it goes into changed meanwhile; then it is copied as the request runs.
const LAYINGS_MAX: u8 = 4;

/// A request with a long value that is on its way to the log.
pub struct Upload {
    pub(super) parked: ParkedHop,
    /// Of the key that will have the value.
    pub(super) slot: Slot,
    /// Parts of the value that the log lacks, the next one at the end.
    missing: Vec<Range<usize>>,
    laying: Option<Laying>,
    layings: u8,
}

/// A value on its way into other blocks, `skip` bytes into the first.
struct Laying {
    skip: usize,
    laid: Blocks,
}

impl Upload {
    /// A request that came with the value.
    pub(super) fn brought(
        origin: Origin,
        mut request: OwnedRequest,
        blocks: Blocks,
        shown: (Database, Protocol),
    ) -> Upload {
        let name = request.arguments().get(request.spec.first_key as usize).expect("the arity covers the key");
        let (slot, all) = (placement::slot_of(name), 0..blocks.len());
        request.set_long(LongValue::new(blocks, false));
        let parked = ParkedHop::new(request, origin, shown);
        Upload { parked, slot, missing: vec![all], laying: None, layings: 0 }
    }

    /// A request that gives a value of the store to another key. If it asked before, the log lacks what was written since.
    pub(super) fn kept(mut parked: ParkedHop, ToStage { blocks, slot }: ToStage) -> Upload {
        let before = parked.request.take_long_value();
        let mut value = LongValue::new(blocks, true);
        let all = 0..value.blocks.len();
        let mut missing = vec![all];
        if let Some(before) = before {
            value.rounds = before.rounds.saturating_add(1);
            if before.stage.is_some() && value.blocks.len() >= before.blocks.len() {
                missing = value.blocks.changed_since(&before.blocks);
                missing.reverse();
                value.stage = before.stage;
            }
        }
        parked.request.set_long(value);
        Upload { parked, slot, missing, laying: None, layings: LAYINGS_MAX }
    }

    pub(super) fn value(&self) -> &LongValue {
        self.parked.request.long().expect("an upload has a value")
    }

    pub(super) fn value_mut(&mut self) -> &mut LongValue {
        self.parked.request.long_mut().expect("an upload has a value")
    }

    /// Whether the log lacks some of it.
    pub(super) fn is_missed(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Bytes that the log lacks.
    pub(super) fn missing_bytes(&self) -> usize {
        self.missing.iter().map(Range::len).sum()
    }

    /// The log gets no more of it; the change will bring its bytes along.
    pub(super) fn give_up_log(&mut self) {
        if !std::mem::take(&mut self.missing).is_empty() {
            self.value_mut().stage = None;
        }
    }

    /// The next part for the log: where it begins, and its bytes.
    pub(super) fn next_block(&mut self) -> Option<(u64, Vec<u8>)> {
        let range = self.missing.last_mut()?;
        let start = range.start;
        range.start = range.end.min(start + BLOCK_BYTES);
        let end = range.start;
        if end == range.end {
            self.missing.pop();
        }
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        let value = self.value();
        let pieces = value.blocks.pieces(value.skip + start..value.skip + end);
        pieces.for_each(|piece| block.extend_from_slice(piece));
        Some((start as u64, block))
    }

    /// Whether it is on its way into other blocks, which may begin now: `skip` is how it should lie.
    pub(super) fn lays_out(&mut self, skip: impl FnOnce(&OwnedRequest, Database) -> usize) -> bool {
        let len = self.value().payload_bytes();
        if let Some(Laying { skip, laid }) = self.laying.take_if(|laying| laying.laid.len() == laying.skip + len) {
            let value = self.value_mut();
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
        let value = self.value_mut();
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
