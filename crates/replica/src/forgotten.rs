//! Slots that were swept here as strays, while a link may live whose first believes that they are whole here.
//!
//! ```text
//!  table       46: slot 7 follows A     55: it is nobody's here, and swept        58: it follows A, being filled
//!  A, which knows each of them: leaves the slot out by 55, so by 58 it says `lacking`
//!  A, which misses 55:          keeps what it knows of the slot, so by 58 it says something else first ─► the link begins anew
//! ```

use std::collections::BTreeMap;

use base::{InstanceName, Slot};
use placement::{ClusterView, SlotSet};
use wire::frame::Frame;

use crate::follow::number_of;

/// A slot that was swept, and is held here again.
struct Returned {
    slot: Slot,
    first: InstanceName,
    /// Who knows this version of the table knows that the slot came back.
    epoch: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Forgotten {
    /// With the version of the table by which each was swept.
    swept: BTreeMap<Slot, u64>,
    /// Those of them that this instance is to hold again; mostly none.
    returned: Vec<Returned>,
}

impl Forgotten {
    /// A slot is swept while `table` is known.
    pub(crate) fn note(&mut self, slot: Slot, table: u64) {
        self.swept.insert(slot, table);
    }

    /// A table is known.
    pub(crate) fn set_view(&mut self, me: InstanceName, view: &ClusterView) {
        let returned = |slot: &Slot| {
            let chain = view.chain(*slot);
            let (first, behind) = chain.members.split_first()?;
            behind.contains(&me).then_some(Returned { slot: *slot, first: *first, epoch: chain.epoch })
        };
        self.returned = self.swept.keys().filter_map(returned).collect();
    }

    /// Whether `from` says by this frame that it knows the table of now, and counts on what was swept.
    pub(crate) fn is_counted_on(&mut self, frame: &Frame<'_>, from: InstanceName, known: u64) -> bool {
        if self.returned.is_empty() {
            return false;
        }
        let Some((_, table)) = number_of(frame).filter(|(_, table)| *table <= known) else { return false };
        if let Frame::Lacking { slots, .. } = frame {
            let lacking = SlotSet::from_words(slots);
            let swept = &mut self.swept;
            self.returned.retain(|Returned { slot, first, .. }| {
                // What was said before the slot was swept is of what it was then.
                let is_told =
                    *first == from && lacking.contains(*slot) && swept.get(slot).is_some_and(|at| table >= *at);
                if is_told {
                    swept.remove(slot);
                }
                !is_told
            });
        }
        self.returned.iter().any(|returned| returned.first == from && table >= returned.epoch)
    }
}

#[cfg(test)]
mod tests {
    use base::{CoreId, NodeId};
    use placement::Chain;

    use super::*;
    use crate::places::place;

    fn name(node: u32) -> InstanceName {
        InstanceName { node: NodeId(node), core: CoreId(0) }
    }

    /// Node 2 swept slot 7 by table 55, and holds it again behind node 1 since table 58.
    fn swept() -> Forgotten {
        let view = |version, members: &[u32], whole| {
            let chain = Chain { epoch: version, members: members.iter().map(|node| name(*node)).collect(), whole };
            let places = (1..=3).map(place).collect();
            ClusterView::new([0; 16], version, places, vec![(Slot::wrapping(0), chain)])
        };
        let mut forgotten = Forgotten::default();
        forgotten.note(Slot::wrapping(7), 55);
        forgotten.set_view(name(2), &view(55, &[1, 3], 2));
        let group = Frame::Group { sequence: 9, table: 55, count: 0, records: &[] };
        assert!(!forgotten.is_counted_on(&group, name(1), 55), "it is nobody's here");
        forgotten.set_view(name(2), &view(58, &[1, 3, 2], 2));
        forgotten
    }

    fn says(forgotten: &mut Forgotten, from: u32, table: u64, lacking: Option<u16>) -> bool {
        let words = lacking.into_iter().map(Slot::wrapping).collect::<SlotSet>().words();
        let frame = match lacking {
            Some(_) => Frame::Lacking { sequence: 9, table, slots: &words },
            None => Frame::Group { sequence: 9, table, count: 0, records: &[] },
        };
        forgotten.is_counted_on(&frame, name(from), 58)
    }

    #[test]
    fn a_first_that_missed_that_a_slot_was_swept_is_found_out_by_its_first_word() {
        let mut forgotten = swept();
        assert!(!says(&mut forgotten, 1, 46, None), "it may yet hear of the table by which the slot left");
        assert!(!says(&mut forgotten, 1, 46, Some(7)), "and what it said before");
        assert!(!says(&mut forgotten, 1, 59, None), "a table that is not known here");
        assert!(!says(&mut forgotten, 3, 58, None), "others lead other slots");
        assert!(says(&mut forgotten, 1, 58, None));
        assert!(says(&mut forgotten, 1, 58, Some(8)), "another slot is lacking");
    }

    #[test]
    fn a_first_that_fills_what_was_swept_counts_on_nothing() {
        let mut forgotten = swept();
        assert!(!says(&mut forgotten, 1, 58, Some(7)));
        assert!(!says(&mut forgotten, 1, 58, None));
    }
}
