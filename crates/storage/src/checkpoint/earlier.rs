//! Earlier: segments of earlier incarnations go once every log of the node has had a round of runs; core 0 removes them.

use base::Effect;

use super::Checkpoints;

/// See the module.
#[derive(Default)]
pub(super) struct Earlier {
    /// Their files.
    files: Vec<String>,
    /// Logs of which every group has a run of this incarnation.
    renewed: usize,
    has_told: bool,
}

impl Earlier {
    pub(super) fn files(&self) -> &[String] {
        &self.files
    }

    pub(super) fn set_files(&mut self, files: &[String]) {
        self.files = files.to_vec();
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
