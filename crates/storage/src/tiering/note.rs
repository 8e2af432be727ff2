//! Where a run that is being written has a value: kept until the run is published, because until then the old place counts.

use base::Version;

/// A key's position and the version it had name one value: versions are given out per slot, and the position has the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub position: u32,
    pub version: Version,
    pub offset: u64,
}
