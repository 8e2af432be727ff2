//! Phase: when runs come due. The same load on every core and on every node must not make them all write at once.
//!
//! ```text
//!   core 0  ├──•─────────•───────•──────────•───►  log      • a run is due: a stride behind the last one, ±20 %
//!   core 1  ├───────•────────•──────────•───────►           the first one somewhere in the first stride,
//!   other   ├─────•──────────•─────────•────────►           the cores of a node apart from each other
//! ```

use base::rng::mix;

use crate::log::LogIdentity;

/// Of a log: different on every node, core and start, and the same whenever it is asked.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    node: u64,
    core: u16,
    cores: u16,
}

impl Phase {
    /// That of a log.
    pub fn new(identity: &LogIdentity) -> Phase {
        let half = |at: usize| u64::from_le_bytes(identity.store_id[at..at + 8].try_into().expect("eight bytes"));
        let node = mix(half(0) ^ mix(half(8)) ^ identity.incarnation);
        Phase { node, core: identity.core, cores: identity.cores.max(1) }
    }

    /// Bytes of log before the first run: up to a stride, the cores of a node evenly apart.
    pub fn first(&self, stride_bytes: u64) -> u64 {
        let stride_bytes = stride_bytes.max(1);
        let apart = u128::from(stride_bytes) * u128::from(self.core) / u128::from(self.cores);
        (mix(self.node) % stride_bytes + apart as u64) % stride_bytes + 1
    }

    /// Bytes of log from one run to the next: a stride, give or take a fifth. What one is longer the next ones are shorter: over any
    /// number of runs it is a stride for each, give or take a fifth of one.
    pub fn next(&self, stride_bytes: u64, run: u64) -> u64 {
        // A share of the stride, which may have become another one since.
        let share = |run: u64| mix(self.node ^ mix(u64::from(self.core) << 48 ^ run));
        let shift = |run: u64| ((u128::from(share(run)) * u128::from(stride_bytes / 5 + 1)) >> 64) as u64;
        (stride_bytes + shift(run) - shift(run.wrapping_sub(1))).max(1)
    }
}
