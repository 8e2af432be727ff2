//! What this process costs: processor time and memory, from `/proc/self`, for INFO.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::io;
use std::os::fd::RawFd;

/// Descriptors that room is made for at most: 512 KiB of the kernel's memory.
const DESCRIPTORS_RESERVED_MAX: u64 = 1 << 16;

/// A reading of the process's costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ProcessCost {
    /// Processor time in user mode, microseconds.
    pub user_us: u64,
    /// Processor time in the kernel, microseconds.
    pub system_us: u64,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Most resident memory so far, bytes.
    pub resident_peak_bytes: u64,
    /// Of the resident memory: heap and stacks.
    pub resident_private_bytes: u64,
    /// Of it: the program's own text and constants, which the kernel can drop and read again.
    pub resident_file_bytes: u64,
    /// Of it: what is shared with the kernel or other processes, such as rings.
    pub resident_shared_bytes: u64,
    /// Threads.
    pub threads: u64,
}

/// The costs of this process until now. A few file reads: for INFO, never for the data path.
///
/// # Errors
/// When `/proc` is not mounted or not what Linux documents (`proc(5)`).
pub fn process_cost() -> io::Result<ProcessCost> {
    parse(&fs::read_to_string("/proc/self/stat")?, &fs::read_to_string("/proc/self/status")?)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/self is not as proc(5) says"))
}

/// Makes room for `count` open files, or as many as are allowed, before they are needed. The kernel's table doubles when
/// it is full, and with several threads each doubling waits for a grace period: ten milliseconds and more in the middle
/// of a tick. It never shrinks.
///
/// # Errors
/// When the operating system has no descriptor or no memory to give.
pub fn reserve_descriptors(count: u64) -> io::Result<()> {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let highest = count.min(allowed).saturating_sub(1).min(DESCRIPTORS_RESERVED_MAX - 1);
    let any = eventfd(0, EventfdFlags::CLOEXEC)?;
    // Whatever number it gets, it is given back at once.
    drop(fcntl_dupfd_cloexec(&any, highest as RawFd)?);
    Ok(())
}

fn parse(stat: &str, status: &str) -> Option<ProcessCost> {
    // Fields after the command's name, which may itself hold spaces and parentheses; field 3 of proc(5) comes first.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let kilobytes = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    };
    Some(ProcessCost {
        user_us: field(14)? * tick_us,
        system_us: field(15)? * tick_us,
        resident_bytes: kilobytes("VmRSS:")? * 1024,
        resident_peak_bytes: kilobytes("VmHWM:")? * 1024,
        resident_private_bytes: kilobytes("RssAnon:")? * 1024,
        resident_file_bytes: kilobytes("RssFile:")? * 1024,
        resident_shared_bytes: kilobytes("RssShmem:")? * 1024,
        threads: field(20)?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn own_cost_is_readable() {
        let cost = process_cost().unwrap();
        assert!(cost.resident_bytes > 100_000 && cost.resident_peak_bytes >= cost.resident_bytes);
        assert!(cost.threads >= 1);
    }

    #[test]
    fn room_for_descriptors_is_made_before_they_are_needed() {
        let room = || {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("FDSize:")).unwrap();
            line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let wanted = 700.min(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX));
        reserve_descriptors(wanted).unwrap();
        assert!(room() >= wanted, "{}", room());
        // More than is allowed is no error.
        reserve_descriptors(u64::MAX).unwrap();
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_shifts_nothing() {
        let stat = "1 (a ) b) S 0 0 0 0 0 0 0 0 0 0 7 5 0 0 20 0 3 0 0 0 0";
        let cost =
            parse(stat, "VmHWM:\t 20 kB\nVmRSS:\t 10 kB\nRssAnon: 6 kB\nRssFile: 3 kB\nRssShmem: 1 kB\n").unwrap();
        let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!((cost.user_us, cost.system_us, cost.threads), (7 * tick_us, 5 * tick_us, 3));
        assert_eq!((cost.resident_bytes, cost.resident_peak_bytes), (10_240, 20_480));
        let parts = [cost.resident_private_bytes, cost.resident_file_bytes, cost.resident_shared_bytes];
        assert_eq!(parts, [6_144, 3_072, 1_024]);
    }
}
