//! Where a run has a value: 38 bits of offset, which of its group's two runs, and whether the value is only there.

/// Bytes of a place in a record.
pub(crate) const PLACE_BYTES: usize = 5;
const OFFSET_BITS: u32 = 38;
/// What lies further back in a run has no place: 256 GiB of one slot group.
pub(crate) const OFFSET_MAX: u64 = (1 << OFFSET_BITS) - 1;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of the record in the run; 0: no run has this value.
    pub offset: u64,
    /// In which of the group's two runs.
    pub second: bool,
    /// The value is not in memory.
    pub is_cold: bool,
}

impl Place {
    /// No run has the value.
    pub const NONE: Place = Place { offset: 0, second: false, is_cold: false };

    pub(crate) fn encode(self) -> [u8; PLACE_BYTES] {
        debug_assert!(self.offset <= OFFSET_MAX && !(self.is_cold && self.offset == 0));
        let bits = self.offset | u64::from(self.second) << OFFSET_BITS | u64::from(self.is_cold) << (OFFSET_BITS + 1);
        *bits.to_le_bytes().first_chunk().expect("forty of sixty-four bits")
    }

    #[inline]
    pub(crate) fn decode(bytes: [u8; PLACE_BYTES]) -> Place {
        let mut all = [0; 8];
        all[..PLACE_BYTES].copy_from_slice(&bytes);
        let bits = u64::from_le_bytes(all);
        Place {
            offset: bits & OFFSET_MAX,
            second: bits >> OFFSET_BITS & 1 == 1,
            is_cold: bits >> (OFFSET_BITS + 1) & 1 == 1,
        }
    }
}
