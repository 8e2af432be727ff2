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

use super::Cut;
use super::chains::Chain;

/// One core's part of a unit, where its group begins.
pub(super) struct UnitPart {
    pub(super) ordinal: u64,
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) unit: u64,
    /// Every core whose chain must hold a part: bit i is core i.
    pub(super) cores: u64,
}

/// Cut every open chain before its first unit that another of the unit's cores does not have, until all are complete.
/// Chains of earlier incarnations were cut when they were recovered.
pub(super) fn cut_incomplete_units(chains: &mut [Chain]) {
    loop {
        let present = cores_by_unit(chains);
        let mut changed = false;
        for chain in chains.iter_mut().filter(|chain| chain.closed_at.is_none()) {
            let mut kept = chain.units.iter().take_while(|part| part.ordinal <= chain.kept);
            let incomplete = kept.find(|part| present.get(&part.unit) != Some(&part.cores));
            let Some(part) = incomplete else { continue };
            let file = chain.files[part.file].clone();
            chain.cut = Some(Cut { file, offset: part.offset, incomplete_unit: true });
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
            *present.entry(part.unit).or_default() |= 1 << chain.core;
        }
    }
    present
}
