//! Threads that stay on one CPU, and the operating system's randomness for a seed.

use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Keeps the calling thread on one CPU from now on.
///
/// # Errors
/// When that CPU does not exist or is not allowed to this process.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no CPU {cpu}")));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// The CPUs this process may use, ascending: what `taskset` or a container left us.
///
/// # Errors
/// When the operating system does not say.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// A seed that differs from every other start of every other node.
///
/// # Errors
/// When the operating system has no randomness to give.
pub fn random_seed() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if count != bytes.len() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "too little randomness"));
    }
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_thread_can_be_pinned_to_an_allowed_cpu_only() {
        std::thread::spawn(|| {
            let cpu = *allowed_cpus().unwrap().last().unwrap();
            pin_current_thread(cpu).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [cpu]);
            assert!(pin_current_thread(100_000).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(random_seed().unwrap(), random_seed().unwrap());
    }
}
