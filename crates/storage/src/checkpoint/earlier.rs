//! Earlier: segments of earlier incarnations go once every log of the node has had a round of runs; core 0 removes them.

use base::Effect;

use super::Checkpoints;
use crate::log::LogIdentity;

/// See the module.
#[derive(Default)]
pub(super) struct Earlier {
    /// Their files, of core 0.
    files: Vec<String>,
    /// How many of them there are for each log of the node.
    segments: u64,
    /// Logs of which every group has a run of this incarnation.
    renewed: usize,
    has_told: bool,
}

impl Earlier {
    pub(super) fn files(&self) -> &[String] {
        &self.files
    }

    pub(super) fn set_files(&mut self, files: &[String], identity: &LogIdentity) {
        self.segments = (files.len() as u64).div_ceil(u64::from(identity.cores));
        if identity.core == 0 {
            self.files = files.to_vec();
        }
    }

    /// This log's share of the segments; 0 once it needs none of them.
    pub(super) fn segments(&self) -> u64 {
        if self.has_told { 0 } else { self.segments }
    }

    /// Whether the own renewal is news; true once.
    pub(super) fn tells_renewal(&mut self) -> bool {
        !std::mem::replace(&mut self.has_told, true)
    }
}

impl Checkpoints {
    /// One log of the node's `logs`, this one included, needs no earlier incarnation any more.
    pub fn on_renewed(&mut self, logs: usize, effects: &mut Vec<Effect>) {
        self.earlier.renewed += 1;
        if self.earlier.renewed >= logs && !self.earlier.files.is_empty() {
            self.pins.remove(std::mem::take(&mut self.earlier.files), effects);
        }
    }
}
