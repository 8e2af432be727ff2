//! The kernel's table of tracked connections, which a thread of its own scans from end to end, however few are in it: 262,144 empty
//! places took 7 ms of the server's CPU at a time, interrupted by real-time threads only. Like the [scanners](super::memory_scanners)
//! it stands in for nobody's request; unlike these its thread may not be moved, so the table is made small.

use std::fs;

const PLACES: &str = "/proc/sys/net/netfilter/nf_conntrack_buckets";
const TRACKED: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
const PLACES_SMALL: u64 = 1024;

/// How many places the table had, if it was made small; it has them again when this is dropped.
pub struct MadeSmall(Option<u64>);

impl MadeSmall {
    /// Makes it small if nothing is tracked. Without the right to, or without a table, nothing happens.
    pub fn of_machine() -> MadeSmall {
        let places = read(PLACES).filter(|&places| places > PLACES_SMALL && read(TRACKED) == Some(0));
        MadeSmall(places.filter(|_| fs::write(PLACES, PLACES_SMALL.to_string()).is_ok()))
    }

    /// What is to be said of it.
    pub fn note(&self) -> String {
        match self.0 {
            Some(places) => format!(
                "the kernel's table of tracked connections, empty: {PLACES_SMALL} places meanwhile instead of {places}"
            ),
            None => "the kernel's table of tracked connections: as it is".to_owned(),
        }
    }
}

impl Drop for MadeSmall {
    fn drop(&mut self) {
        if let Some(places) = self.0 {
            // Who may make it small may make it large.
            fs::write(PLACES, places.to_string()).ok();
        }
    }
}

fn read(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
