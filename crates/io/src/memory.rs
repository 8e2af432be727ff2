//! Memory that the C library keeps for later: how much it may be, and giving it back to the operating system.

/// From which size on a block lies in a mapping of its own, which goes when the block does, bytes: what one tick writes to the
/// log. Buffers below it come and go with requests, and new pages are dear. Most of them lie in [`crate::BlockMemory`]; this is for
/// where that has no room.
#[cfg(target_env = "gnu")]
const OWN_MAPPING_BYTES_MIN: usize = base::limits::LOG_GROUP_BYTES;
/// How much may stay free at the end of a thread's heap, bytes.
#[cfg(target_env = "gnu")]
const FREE_END_BYTES_MAX: usize = 2 << 20;

/// Small blocks up to this size are not merged with free neighbours until a large one is asked for or freed, and then all of them at
/// once, bytes: after three million keys had come that took 1.3 ms of a tick. A few of each size every thread keeps all the same.
#[cfg(target_env = "gnu")]
const UNMERGED_BYTES_MAX: usize = 0;

/// Bounds what is kept of memory that was freed, from now on and for the whole process: a program calls it that owns its process, a
/// library never. [`crate::BlockMemory`] keeps what long values leave for some seconds until [`base::Effect::KeepFreedMemory`] says
/// otherwise. Of the C library it says how large blocks are that it keeps. Left alone it learns from the largest block that was ever freed: blocks of that size then
/// come from the heap of each thread, whose end is given back only above twice as much, so that one table of ten megabytes
/// leaves a hole of its size in every heap, for good. Where the C library is another one, nothing happens.
pub fn bound_kept() {
    crate::block_memory::keep(true);
    #[cfg(target_env = "gnu")]
    {
        /// The C library's names for what may be set.
        const M_TRIM_THRESHOLD: i32 = -1;
        const M_MMAP_THRESHOLD: i32 = -3;
        const M_MXFAST: i32 = 1;
        unsafe extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        let bounds = [
            (M_MMAP_THRESHOLD, OWN_MAPPING_BYTES_MIN),
            (M_TRIM_THRESHOLD, FREE_END_BYTES_MAX),
            (M_MXFAST, UNMERGED_BYTES_MAX),
        ];
        for (parameter, bytes) in bounds {
            // SAFETY: mallopt(3) takes the lock of what it changes; no value is above what it allows.
            let is_set = unsafe { mallopt(parameter, bytes as i32) };
            debug_assert_eq!(is_set, 1, "the C library knows parameter {parameter}");
        }
    }
}

/// Gives back whole pages that nothing uses, of all threads. Takes as long as there is to give: milliseconds for a hundred
/// megabytes, in which threads that allocate wait. Where the C library is another one, nothing happens.
pub fn release() {
    crate::block_memory::release();
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: malloc_trim(3) may be called at any time by any thread; it touches only memory that is free.
        unsafe {
            malloc_trim(0);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    #[test]
    #[cfg(target_env = "gnu")]
    fn large_blocks_lie_alone_whatever_was_freed_before() {
        /// Where a block begins within its first page if it has a mapping of its own: behind two words of the C library.
        const BEGIN: usize = 16;
        super::bound_kept();
        // A thread has a heap of its own; each block is a little shorter than the one that was freed before.
        let blocks = (0..8).map(|number| {
            let block = vec![1u8; (10 << 20) - 1000 * number];
            (vec![1u8; 1000 * number + 1], block.as_ptr().addr() % 4096)
        });
        let begins = std::thread::scope(|scope| scope.spawn(|| blocks.collect::<Vec<_>>()).join().unwrap());
        assert!(
            begins.iter().all(|(_, begin)| *begin == BEGIN),
            "{:?}",
            begins.iter().map(|one| one.1).collect::<Vec<_>>()
        );
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn holes_are_given_back() {
        let resident = || crate::process::process_cost().unwrap().resident_bytes;
        let pages: Vec<Vec<u8>> = (0..2000).map(|_| vec![1; 64 << 10]).collect();
        // Every tenth stays, so that the rest are holes between what lives.
        let kept: Vec<Vec<u8>> =
            pages.into_iter().enumerate().filter(|(number, _)| number % 10 == 0).map(|(_, page)| page).collect();
        let before = resident();
        super::release();
        assert!(before > resident() + (50 << 20), "{before} bytes before, {} after", resident());
        drop(kept);
    }
}
