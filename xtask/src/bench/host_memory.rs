//! Memory of a virtual machine that its host has yet to provide: the first touch of a page since the machine began, or since the kernel
//! told the host that it was free, takes the host ten times as long as the kernel takes for a page that is there, and now and then
//! a millisecond. The thread that touches it waits, not the CPU, so a canary on that CPU is on time.
//!
//! What the loads will need is touched before, and the kernel tells the host nothing meanwhile.

use std::fs;
use std::hint::black_box;

/// Free memory in blocks of two to the power of this, pages, is told to the host.
const REPORTED_ORDER: &str = "/sys/module/page_reporting/parameters/page_reporting_order";
/// Above the largest block that there is, so that nothing is told, or the largest one.
const ORDERS_NONE: [&str; 2] = ["11", "10"];
const PIECE_BYTES: usize = 64 << 20;

/// The machine's memory is there, until this is dropped.
pub struct Provided {
    touched_bytes: usize,
    order: Option<String>,
}

impl Provided {
    /// Touches three quarters of what is free. Without the right to stop the telling only that is done.
    pub fn for_loads() -> Provided {
        let order = fs::read_to_string(REPORTED_ORDER).ok().map(|order| order.trim().to_owned());
        let order = order.filter(|_| ORDERS_NONE.iter().any(|none| fs::write(REPORTED_ORDER, none).is_ok()));
        let free = fs::read_to_string("/proc/meminfo").ok().and_then(|info| free_bytes(&info)).unwrap_or_default();
        let pieces: Vec<Vec<u8>> = (0..free / 4 * 3 / PIECE_BYTES).map(|_| vec![1; PIECE_BYTES]).collect();
        Provided { touched_bytes: black_box(&pieces).len() * PIECE_BYTES, order }
    }

    /// What is to be said of it.
    pub fn note(&self) -> String {
        let told = match &self.order {
            Some(order) => format!("blocks of order {order} are not told to the host as free meanwhile"),
            None => "what the kernel tells the host to be free: as it is".to_owned(),
        };
        format!(
            "memory: {} GB touched before, so that the host has provided it; {told}",
            self.touched_bytes / 1_000_000_000
        )
    }
}

impl Drop for Provided {
    fn drop(&mut self) {
        if let Some(order) = &self.order {
            fs::write(REPORTED_ORDER, order).ok();
        }
    }
}

fn free_bytes(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemFree:"))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::free_bytes;

    #[test]
    fn what_is_free_is_read_in_bytes() {
        assert_eq!(free_bytes("MemTotal:  24684 kB\nMemFree:        2000 kB\nMemAvailable: 1 kB\n"), Some(2_048_000));
        assert_eq!(free_bytes("MemTotal: 1 kB\n"), None);
    }
}
