//! Seeds the system's entropy while a simulation runs on a thread.
//!
//! Hash maps of the standard library draw their keys from the system, once per thread, and libraries iterate over such
//! maps (kube's runtime polls its reconcilers in such an order). A run is a function of its seed only if those keys are.
//! On Linux this crate defines the symbol `getrandom`: while [`simulate`] runs, its thread gets bytes from a seeded
//! generator; every other thread gets the system call.
//!
//! **This crate is for test binaries and `xtask`.** Never link it into a program that serves users: keys and nonces made on
//! a simulating thread can be foretold. On other platforms than Linux [`simulate`] still runs on a fresh thread, and replay
//! holds within what the seed alone decides; [`IS_COMPLETE`] says which.

use std::cell::RefCell;

use client_kit::{Random, Seed};

/// Whether the entropy of the standard library's hash maps follows the seed on this platform.
pub const IS_COMPLETE: bool = cfg!(target_os = "linux");

thread_local! {
    static ENTROPY: RefCell<Option<Random>> = const { RefCell::new(None) };
}

/// Runs `simulation` on a fresh thread whose entropy is a function of `seed`. A panic goes through to the caller.
///
/// ```
/// use client_kit::Seed;
/// use std::collections::HashSet;
///
/// let order = || seeded_entropy::simulate(Seed(7), || (0..100).collect::<HashSet<_>>().into_iter().collect::<Vec<_>>());
/// assert!(order() == order() || !seeded_entropy::IS_COMPLETE);
/// ```
pub fn simulate<T: Send>(seed: Seed, simulation: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            ENTROPY.with_borrow_mut(|entropy| *entropy = Some(seed.fork("entropy").random()));
            simulation()
        });
        match thread.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(target_os = "linux")]
mod symbol {
    use std::ffi::{c_uint, c_void};

    use super::ENTROPY;

    /// Fills `bytes` from the thread's simulation, if one runs on it.
    fn fill_seeded(bytes: &mut [u8]) -> bool {
        // A thread that is ending has no state any more: it gets the system's entropy.
        ENTROPY
            .try_with(|entropy| {
                let Ok(mut entropy) = entropy.try_borrow_mut() else {
                    return false;
                };
                entropy.as_mut().map(|random| random.fill(bytes)).is_some()
            })
            .unwrap_or(false)
    }

    /// The C library's `getrandom(2)`.
    ///
    /// # Safety
    /// `buffer` must be valid for writes of `length` bytes, as for the C library's function.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
        if buffer.is_null() || length == 0 {
            return 0;
        }
        // SAFETY: the caller says that `buffer` is valid for writes of `length` bytes; they are made initialised first, so
        // that a reference to them may exist.
        let bytes = unsafe {
            std::ptr::write_bytes(buffer.cast::<u8>(), 0, length);
            std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length)
        };
        if fill_seeded(bytes) {
            return isize::try_from(length).unwrap_or(isize::MAX);
        }
        // SAFETY: the arguments are those of the system call, with a buffer that is valid as above.
        let written = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
        isize::try_from(written).unwrap_or(-1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn order() -> Vec<u32> {
        (0..1000)
            .map(|n| (n, ()))
            .collect::<HashMap<u32, ()>>()
            .into_keys()
            .collect()
    }

    #[test]
    fn hash_maps_follow_the_seed() {
        assert_eq!(simulate(Seed(1), order), simulate(Seed(1), order));
        assert_ne!(simulate(Seed(1), order), simulate(Seed(2), order));
    }

    #[test]
    fn other_threads_are_left_alone() {
        let outside = || std::thread::spawn(order).join().expect("an order");
        assert_ne!(outside(), outside());
    }
}
