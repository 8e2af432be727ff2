//! What goes to the follower's connection, and when.

use base::Horizon;
use placement::SlotSet;
use wire::frame::Frame;

use super::Lead;
use crate::peer::Peer;

/// How long frames that no reply waits for are gathered at most, microseconds,
pub(super) const GATHER_US: u64 = 10_000;
/// and how many bytes of them.
pub(super) const GATHER_BYTES: usize = 64 << 10;

impl Lead {
    /// Offers what follows to a connection, as long as it takes that. What nobody waits for goes later and more at once, unless
    /// somebody `hurries`: each frame is work for both ends, which whoever waits would wait for, too.
    pub(crate) fn send(&mut self, now_us: u64, hurries: bool, mut offer: impl FnMut(&[u8]) -> bool) {
        let Some(first) = self.backlog.front().map(|entry| entry.sequence) else { return };
        let skipped = (self.sent + 1).saturating_sub(first) as usize;
        let unsent = || self.backlog.iter().skip(skipped);
        let is_due = self.gathers_us.is_some_and(|since_us| now_us >= since_us + GATHER_US);
        let may_gather = !(hurries || is_due || self.asked.is_some());
        if may_gather && unsent().next().is_some() && !unsent().any(|entry| entry.is_awaited) {
            let bytes: usize = unsent().map(|entry| entry.bytes.len()).sum();
            if bytes < GATHER_BYTES {
                self.gathers_us.get_or_insert(now_us);
                return;
            }
        }
        self.gathers_us = None;
        for entry in self.backlog.iter().skip(skipped) {
            if !offer(&entry.bytes) {
                return;
            }
            self.sent = entry.sequence;
        }
    }

    /// When it has gathered enough, microseconds.
    pub(crate) fn gathers_until_us(&self) -> Option<u64> {
        self.gathers_us.map(|since_us| since_us + GATHER_US)
    }

    /// Answers the follower's question: everything up to `horizon` is committed, and `still` is about to be served elsewhere.
    pub(crate) fn confirm(&mut self, horizon: &Horizon, still: Option<&SlotSet>, peer: &mut Peer) {
        let Some(stamp) = self.asked.take() else { return };
        let committed = self.lanes.iter().map(|lane| horizon.of_lane(*lane)).min().unwrap_or_default();
        let shown = self.unshown.shown(committed, self.sequence);
        let slots = still.map_or_else(|| self.whole.clone(), |still| self.whole.without(still)).words();
        peer.send(&Frame::Confirm { stamp, shown, upto: self.sequence, slots: &slots });
    }
}
