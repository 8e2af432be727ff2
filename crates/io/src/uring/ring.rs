//! The submission and completion rings: queueing operations, entering the kernel once per tick, reading results.

use crate::backend::TaskWork;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, squeue};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;

/// Operations queued before the kernel is entered early; one tick's sends fit.
const SUBMISSIONS: u32 = 512;
/// Results the kernel can leave before it keeps them in a list of its own.
const COMPLETIONS: u32 = 4096;

/// One result.
#[derive(Clone, Copy)]
pub(crate) struct Completion {
    pub token: u64,
    /// The operation's return value; an error is its negated number.
    result: i32,
    flags: u32,
}

impl Completion {
    /// What a system call would have returned.
    #[inline]
    pub fn outcome(&self) -> Result<usize, Errno> {
        match self.result {
            count if count >= 0 => Ok(count as usize),
            error => Err(Errno::from_raw_os_error(-error)),
        }
    }

    /// The provided buffer it used.
    #[inline]
    pub fn buffer(&self) -> Option<u16> {
        cqueue::buffer_select(self.flags)
    }

    /// Whether a multishot operation goes on.
    #[inline]
    pub fn more(&self) -> bool {
        cqueue::more(self.flags)
    }
}

/// See the module.
pub(crate) struct Ring {
    ring: IoUring,
    /// Of every entry.
    enter_flags: EnterFlags,
    /// Operations whose last completion has not been read.
    in_flight: usize,
}

impl Ring {
    pub fn new(task_work: TaskWork) -> io::Result<Ring> {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(COMPLETIONS).setup_submit_all().setup_single_issuer();
        match task_work {
            TaskWork::Deferred => builder.setup_defer_taskrun(),
            TaskWork::Cooperative => builder.setup_coop_taskrun(),
        };
        let ring = builder.build(SUBMISSIONS)?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel's io_uring is too old"));
        }
        let mut enter_flags = EnterFlags::GETEVENTS;
        if ring.params().is_feature_no_iowait() {
            // Waiting for clients is no waiting for a disk: an idle node must not look busy in `top`.
            enter_flags |= EnterFlags::NO_IOWAIT;
        }
        Ok(Ring { ring, enter_flags, in_flight: 0 })
    }

    /// For registrations.
    pub fn submitter(&self) -> io_uring::Submitter<'_> {
        self.ring.submitter()
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Operations that the kernel has not been told.
    #[inline]
    pub fn queued(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// Queues an operation; a full queue is handed to the kernel first.
    ///
    /// # Safety
    /// Everything the entry points to stays where it is, and is not written, until its last completion was read.
    #[inline]
    pub unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the caller's promise.
        if unsafe { self.ring.submission().push(entry) }.is_err() {
            self.enter(0, None)?;
            // SAFETY: the caller's promise.
            unsafe { self.ring.submission().push(entry) }
                .map_err(|_| io::Error::new(io::ErrorKind::OutOfMemory, "the kernel takes no more operations"))?;
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Submits what is queued and waits for `want` results, at most `timeout_us` (`None`: for ever).
    pub fn enter(&mut self, want: u32, timeout_us: Option<u64>) -> io::Result<()> {
        let queued = self.queued() as u32;
        let submitter = self.ring.submitter();
        let flags = self.enter_flags;
        let result = match timeout_us {
            Some(us) if want > 0 => {
                let timeout = Timespec::new().sec(us / 1_000_000).nsec((us % 1_000_000) as u32 * 1000);
                let arguments = SubmitArgs::new().timespec(&timeout);
                let flags = (flags | EnterFlags::EXT_ARG).bits();
                // SAFETY: `queued` operations lie in the ring; the arguments outlive the call.
                unsafe { submitter.enter(queued, want, flags, Some(&arguments)) }
            }
            // SAFETY: as above, without arguments.
            _ => unsafe { submitter.enter::<SubmitArgs<'_, '_>>(queued, want, flags.bits(), None) },
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // Nothing came in time; a signal; or results are to be read before more is taken.
                Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Appends all results that are there.
    #[inline]
    pub fn read_completions(&mut self, into: &mut VecDeque<Completion>) {
        let first = into.len();
        into.extend(self.ring.completion().map(|entry| Completion {
            token: entry.user_data(),
            result: entry.result(),
            flags: entry.flags(),
        }));
        self.in_flight -= into.range(first..).filter(|completion| !completion.more()).count();
    }
}
