//! Units over several cores: all of a unit counts, or nothing of it and of what came after it.
//!
//! ```text
//!   core 0   1 [U] 3 4        U is in both: complete
//!   core 1   1  2 [U] [V]     V is not in core 2's chain: cut before V
//!   core 2   1  2 ~~~
//! ```
//!
//! A cut may take another unit's part with it, which then is incomplete elsewhere: again, until nothing changes.

use std::collections::BTreeMap;

use base::Slot;

use super::Torn;
use super::chains::Chain;
use crate::log::format::UnitMark;
use crate::run::load::Cuts;

/// One core's part of a unit, where its group begins.
pub(super) struct UnitPart {
    pub(super) ordinal: u64,
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) mark: UnitMark,
}

/// Torn every open chain before its first unit that another of the unit's cores does not have, until all are complete.
/// Where that core's log was given back, its run has the part. Chains of earlier incarnations were cut when they were
/// recovered.
pub(super) fn cut_incomplete_units(chains: &mut [Chain], cuts: &Cuts) {
    loop {
        let present = cores_by_unit(chains);
        let is_complete = |mark: &UnitMark| {
            let cores = present.get(&mark.unit).copied().unwrap_or_default();
            mark.parts
                .iter()
                .all(|part| cores >> part.core & 1 == 1 || cuts.has_version(Slot::wrapping(part.slot), part.version))
        };
        let mut changed = false;
        for chain in chains.iter_mut().filter(|chain| chain.closed_at.is_none()) {
            let mut kept = chain.units.iter().take_while(|part| part.ordinal <= chain.kept);
            let Some(part) = kept.find(|part| !is_complete(&part.mark)) else { continue };
            let file = chain.files[part.file].clone();
            chain.cut = Some(Torn { file, offset: part.offset, incomplete_unit: true });
            chain.kept = part.ordinal - 1;
            chain.end = (part.file, part.offset);
            changed = true;
        }
        if !changed {
            return;
        }
    }
}

/// The cores in whose open chains a part of each unit counts.
fn cores_by_unit(chains: &[Chain]) -> BTreeMap<u64, u64> {
    let mut present = BTreeMap::new();
    for chain in chains.iter().filter(|chain| chain.closed_at.is_none()) {
        for part in chain.units.iter().take_while(|part| part.ordinal <= chain.kept) {
            *present.entry(part.mark.unit).or_default() |= 1 << chain.core;
        }
    }
    present
}
