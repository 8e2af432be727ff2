//! A partition: the keys of one hash slot.

use base::{SLOT_COUNT, Slot};

/// One of the 16,384 hash slots of Redis Cluster. What its keys have in common is one sequence of versions, and that they
/// can be seen together as of one moment ([`Store::snapshot`](crate::Store::snapshot)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub(crate) Slot);

impl Partition {
    /// The partition of a key: CRC16 of what stands between its first `{` and the next `}`, or of the whole key where
    /// nothing does, modulo 16,384.
    ///
    /// ```
    /// use zerohop::Partition;
    /// assert_eq!(Partition::of(b"{user:7}:name"), Partition::of(b"{user:7}:mail"));
    /// ```
    pub fn of(key: &[u8]) -> Partition {
        Partition(placement::slot_of(key))
    }

    /// The partition with this number; `None` from 16,384 on.
    pub fn new(number: u16) -> Option<Partition> {
        Slot::new(number).map(Partition)
    }

    /// Its number, 0 to 16,383.
    pub fn number(self) -> u16 {
        self.0.number()
    }

    /// All of them, in ascending order.
    pub fn all() -> impl Iterator<Item = Partition> {
        (0..SLOT_COUNT).map(|number| Partition(Slot::wrapping(number)))
    }
}
