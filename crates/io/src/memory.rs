//! Memory that the C library keeps for later, given back to the operating system.

/// Gives back whole pages that nothing uses, of all threads. Takes as long as there is to give: milliseconds for a hundred
/// megabytes, in which threads that allocate wait. Where the C library is another one, nothing happens.
pub fn release() {
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
