//! Whether this process is still the one it was: a child of `fork(2)` has its parent's memory, and must not use its connections.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A page that the kernel empties in a child (`MADV_WIPEONFORK`, Linux 4.14), with the number of the process in it: to look costs a
/// load and no system call.
struct Page {
    process: &'static AtomicU32,
}

impl Page {
    fn new() -> Option<Page> {
        let length = rustix::param::page_size();
        // SAFETY: a new private mapping that nothing else refers to, and that is never unmapped.
        let page = unsafe { mmap_anonymous(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
        let page = page.ok()?;
        // SAFETY: the mapping above, whole; nothing was written to it.
        unsafe { madvise(page, length, Advice::LinuxWipeOnFork) }.ok()?;
        // SAFETY: it is mapped for ever, zeroed, aligned to a page, and used as this one type only.
        Some(Page { process: unsafe { AtomicU32::from_ptr(page.cast()) } })
    }

    fn process(&self) -> u32 {
        match self.process.load(Ordering::Relaxed) {
            0 => {
                // All threads of a child write the same.
                let own = std::process::id();
                self.process.store(own, Ordering::Relaxed);
                own
            }
            known => known,
        }
    }
}

/// The number of this process.
#[inline]
pub fn process() -> u32 {
    static PAGE: OnceLock<Option<Page>> = OnceLock::new();
    match PAGE.get_or_init(Page::new) {
        Some(page) => page.process(),
        None => std::process::id(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::AsFd;

    unsafe extern "C" {
        fn fork() -> i32;
        fn _exit(status: i32) -> !;
    }

    #[test]
    fn a_child_has_another_number_and_its_parent_keeps_its_own() {
        let own = process();
        assert_eq!(own, std::process::id());
        let (reads, writes) = rustix::pipe::pipe().unwrap();
        // SAFETY: the child calls nothing but a load, `getpid` and `write`, none of which takes a lock.
        let child = unsafe { fork() };
        assert!(child >= 0);
        if child == 0 {
            let told = rustix::io::write(writes.as_fd(), &process().to_ne_bytes());
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { _exit(i32::from(told.is_err())) }
        }
        let mut told = [0; 4];
        rustix::io::read(reads.as_fd(), &mut told).unwrap();
        assert_eq!(u32::from_ne_bytes(told), child as u32);
        assert_eq!(process(), own);
    }
}
