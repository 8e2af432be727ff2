//! What a process and the machine cost, read from `/proc`: the server's CPU time is the number that matters, because it
//! is steadier than throughput on a shared machine.

use std::fs;

use super::control::{Reply, ask};
use super::dial::Stream;
use super::plan::{Dialect, LoadPlan, Target};

/// Length of a tick of `/proc/stat`, nanoseconds (`USER_HZ` is 100 on every architecture Linux runs on today).
const TICK_NS: u64 = 10_000_000;

/// CPU time of one process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCpu {
    /// Time on a CPU of all threads that live, nanoseconds (the scheduler's own account, exact).
    pub run_ns: u64,
    /// User time, nanoseconds, in steps of 10 ms.
    pub user_ns: u64,
    /// Kernel time, nanoseconds, in steps of 10 ms.
    pub system_ns: u64,
    /// Times a thread gave up its CPU or lost it.
    pub context_switches: u64,
}

impl ProcessCpu {
    /// Of the process `pid`; `None` when it is gone or hidden.
    pub fn of(pid: u32) -> Option<ProcessCpu> {
        let mut cpu = ProcessCpu::default();
        for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
            let folder = thread.ok()?.path();
            // A thread may end between listing and reading; its time is then in no number, as in the kernel's own.
            let Ok(schedule) = fs::read_to_string(folder.join("schedstat")) else { continue };
            cpu.run_ns += schedule.split_whitespace().next()?.parse::<u64>().ok()?;
            let Ok(status) = fs::read_to_string(folder.join("status")) else { continue };
            cpu.context_switches += status
                .lines()
                .filter(|line| line.contains("voluntary_ctxt_switches"))
                .filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok())
                .sum::<u64>();
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold spaces; fields are counted from behind it. utime is field 14, stime 15.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        cpu.user_ns = fields.next()?.parse::<u64>().ok()? * TICK_NS;
        cpu.system_ns = fields.next()?.parse::<u64>().ok()? * TICK_NS;
        Some(cpu)
    }

    /// What was spent since `earlier`.
    pub fn since(self, earlier: ProcessCpu) -> ProcessCpu {
        let user_ns = self.user_ns.saturating_sub(earlier.user_ns);
        let system_ns = self.system_ns.saturating_sub(earlier.system_ns);
        let of_living_threads = self.run_ns.saturating_sub(earlier.run_ns);
        // Threads that ended take their exact account with them; the coarse one of the process keeps them. Each of its
        // two parts may be a tick off.
        let threads_ended = of_living_threads + 3 * TICK_NS < user_ns + system_ns;
        ProcessCpu {
            run_ns: if threads_ended { user_ns + system_ns } else { of_living_threads },
            user_ns,
            system_ns,
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
        }
    }
}

/// Busy time of all CPUs of the machine since boot, nanoseconds, time stolen by the host included.
pub fn machine_busy_ns() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = fields[..] else { return None };
    Some((user + nice + system + irq + softirq + steal) * TICK_NS)
}

/// The process behind the plan's target: as told, or as the server itself says, if it runs on this machine.
pub fn server_pid(plan: &LoadPlan, target: &Target) -> Option<u32> {
    if plan.server_pid.is_some() {
        return plan.server_pid;
    }
    let mut stream = Stream::open_ready(target, plan).ok()?;
    if !stream.is_local() || plan.dialect == Dialect::Memcached {
        return None;
    }
    let Ok(Reply::Text(text)) = ask(&mut stream, &["INFO", "server"]) else { return None };
    let pid = text.lines().find_map(|line| line.strip_prefix("process_id:"))?.trim().parse().ok()?;
    // A server in another container counts its processes from elsewhere: only believe a process that exists here.
    ProcessCpu::of(pid).map(|_| pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_some_cpu() {
        let before = ProcessCpu::of(std::process::id()).expect("this process exists");
        // The kernel may count in steps of its clock: as many turns as it takes.
        let is_counted = (0..10_000).any(|_| {
            std::hint::black_box((0..200_000u64).fold(0u64, |sum, n| sum.wrapping_mul(31).wrapping_add(n)));
            ProcessCpu::of(std::process::id()).expect("this process exists").since(before).run_ns > 0
        });
        assert!(is_counted, "seconds of work and no time");
        assert!(machine_busy_ns().expect("Linux tells") > 0);
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_cost() {
        assert_eq!(ProcessCpu::of(u32::MAX), None);
    }
}
