//! Prefetching: hints that memory is about to be read.

/// Prefetches the cache line of an address, which may be out of bounds.
#[inline(always)]
pub(crate) fn fetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: any address may be fetched.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Prefetches a cache line into the second-level cache.
#[inline(always)]
pub(crate) fn fetch_near<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: any address may be fetched.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}
