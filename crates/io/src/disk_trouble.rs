//! Disk trouble: what a person reads in the process's output when the disk refuses something: once as long as it lasts, and
//! once when it is over. Attempts come again every second, and a line for each would fill the next disk.

/// See the module.
pub(crate) struct DiskTrouble {
    /// Whether anybody reads it.
    is_told: bool,
    lacks_segment: bool,
    lacks_room: bool,
    lacks_run: bool,
    has_failed: bool,
}

impl DiskTrouble {
    pub fn new(is_told: bool) -> DiskTrouble {
        DiskTrouble { is_told, lacks_segment: false, lacks_room: false, lacks_run: false, has_failed: false }
    }

    pub fn segment_is_not_made(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.lacks_segment, true) {
            self.tell(&format!(
                "the log gets no further segment: {reason}; writes are refused once the present one is nearly full: free room \
                 on its disk, and they go on without a restart"
            ));
        }
    }

    pub fn segment_is_made(&mut self) {
        if std::mem::take(&mut self.lacks_segment) {
            self.tell("the log has its next segment: writes go on");
        }
    }

    pub fn room_is_not_made(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.lacks_room, true) {
            self.tell(&format!(
                "the log has no room for a long change: {reason}; it waits, and writes are refused: free room on its disk, and \
                 they go on without a restart"
            ));
        }
    }

    pub fn room_is_made(&mut self) {
        if std::mem::take(&mut self.lacks_room) {
            self.tell("the log has room for the long change: writes go on");
        }
    }

    pub fn run_is_not_made(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.lacks_run, true) {
            self.tell(&format!(
                "a checkpoint failed: {reason}; what it would have replaced stays, and it is tried again: free room on its \
                 disk, or repair it"
            ));
        }
    }

    pub fn run_is_made(&mut self) {
        if std::mem::take(&mut self.lacks_run) {
            self.tell("checkpoints go on");
        }
    }

    pub fn log_failed(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            self.tell(&format!(
                "the log failed: {reason}; nothing is written or acknowledged any more: repair the disk and restart the node"
            ));
        }
    }

    fn tell(&self, text: &str) {
        if self.is_told {
            eprintln!("zerohop: {text}");
        }
    }
}
