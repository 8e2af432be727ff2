//! Whether this process is still the one it was: a child of `fork(2)` has its parent's memory, and must not use its connections.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::process::{Pid, WaitOptions, waitpid};
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

unsafe extern "C" {
    fn fork() -> i32;
    fn _exit(status: i32) -> !;
}

/// What `work` returned in a child of this process, which ends with it: for tests of those who have connections. `None` if there was no
/// child, or it died.
#[doc(hidden)]
pub fn in_child(work: impl FnOnce() -> u8) -> Option<u8> {
    // SAFETY: the child runs `work` on the one thread that it has, and ends without running anything else of its parent's. A lock that
    // another thread held stays held: `work` is a test's, which knows what it calls.
    let child = unsafe { fork() };
    if child == 0 {
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: as above.
        unsafe { _exit(i32::from(told.unwrap_or(u8::MAX))) }
    }
    let child = Pid::from_raw(child)?;
    let (_, status) = waitpid(Some(child), WaitOptions::empty()).ok()??;
    u8::try_from(status.exit_status()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_another_number_and_its_parent_keeps_its_own() {
        let own = process();
        assert_eq!(own, std::process::id());
        let is_another = || u8::from(process() != own && process() == std::process::id());
        assert_eq!(in_child(is_another), Some(1));
        assert_eq!(process(), own);
    }
}
