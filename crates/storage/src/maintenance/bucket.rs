//! Bucket: bytes in a time. Time is what the caller says it is.
//!
//! ```text
//!   bytes   burst ─┐     ┌─ refilled by time, no further than the burst
//!              0 ──│─────│──► open above, closed below: one piece may go under, the next one waits until it is paid for
//!         -piece ─┘          pieces that could not wait go no further: they are not paid for later
//! ```
//!
//! A debt without a floor stalled writers for seconds: gigabytes of runs that were pressed, then one that was not, and waited
//! until they were paid for, while who wrote waited for it.

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    bytes_per_second: u64,
    burst_bytes: i64,
    level_bytes: i64,
    at_us: u64,
}

impl Bucket {
    /// A full one. The rate is at least a byte in a second.
    pub fn new(bytes_per_second: u64, burst_bytes: u32) -> Bucket {
        let burst_bytes = i64::from(burst_bytes);
        Bucket { bytes_per_second: bytes_per_second.max(1), burst_bytes, level_bytes: burst_bytes, at_us: 0 }
    }

    /// Takes the bytes of one piece, which were allowed or could not wait.
    pub fn take(&mut self, bytes: u64, now_us: u64) {
        let piece_bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.level_bytes = self.level_at(now_us).saturating_sub(piece_bytes).max(-piece_bytes);
        self.at_us = self.at_us.max(now_us);
    }

    /// Whether the next piece may go.
    pub fn is_open(&self, now_us: u64) -> bool {
        self.level_at(now_us) > 0
    }

    /// When it may, if it may not now.
    pub fn opens_at_us(&self) -> u64 {
        let missing = u128::from((1 - self.level_bytes).max(0).unsigned_abs()) * 1_000_000;
        self.at_us.saturating_add(missing.div_ceil(u128::from(self.bytes_per_second)).min(u128::from(u64::MAX)) as u64)
    }

    fn level_at(&self, now_us: u64) -> i64 {
        let passed_us = u128::from(now_us.saturating_sub(self.at_us));
        let gained = passed_us * u128::from(self.bytes_per_second) / 1_000_000;
        let gained = i64::try_from(gained).unwrap_or(i64::MAX);
        self.level_bytes.saturating_add(gained).min(self.burst_bytes)
    }
}
