//! The one place that tells the processor what will be needed soon.

/// Ask for the cache line at `address`. A hint: any address is allowed, nothing is read.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetch instructions never fault and change no architectural state, whatever the address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _unused = address;
}
