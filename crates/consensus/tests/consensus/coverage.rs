//! What runs met: an empty line is a blind spot.

use consensus::witness::Fact;

seeds::coverage! {
    /// Terms that had a leader.
    elections,
    /// Commands that were acknowledged.
    acknowledged,
    /// Reads that were answered.
    reads,
    /// Proposals that did not happen.
    refused,
    /// Proposals of which nobody knows.
    unknown,
    /// Changes of who votes that were agreed.
    changes,
    /// Hand-overs that were begun.
    hand_overs,
    /// Leaders that somebody took for gone.
    alarms,
    /// Questions of members that would stand for election.
    pre_votes,
    /// Snapshots that were sent.
    snapshots_sent,
    /// Snapshots that were taken over.
    snapshots_installed,
    /// Entries appended.
    appended,
    /// Entries that were removed again.
    cut_off,
    /// Entries applied.
    applied,
    /// Logs that were written anew in the middle of a life.
    logs_anew,
    /// Frames sent.
    frames,
    /// Frames lost by weather.
    lost,
    /// Frames that came twice.
    doubled,
    /// Ways that were cut.
    cuts,
    /// Members that stood still.
    pauses,
    /// Members that died by power.
    power_cuts,
    /// Power cuts that tore a record.
    torn,
    /// Members that died by a signal.
    kills,
    /// Syncs that failed.
    failed_syncs,
    /// Tasks polled.
    polls,
}

impl Coverage {
    /// Count what a member tells.
    pub fn on_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Voted { .. } | Fact::Purged { .. } => {}
            Fact::Appended { .. } => self.appended += 1,
            Fact::Cut { .. } => self.cut_off += 1,
            Fact::Applied { .. } => self.applied += 1,
            Fact::Installed { .. } => self.snapshots_installed += 1,
        }
    }

    /// Count a frame.
    pub fn on_frame(&mut self, kind: &str) {
        self.frames += 1;
        self.pre_votes += u64::from(kind == "pre-vote");
        self.snapshots_sent += u64::from(kind == "snapshot");
    }
}
