//! A pseudo terminal in place of a serial device.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::FromRawFd;

/// Opens one. Returns the side that plays the machine, and the path of the other.
///
/// # Panics
/// If the system has none to give.
#[must_use]
pub fn pseudo_terminal() -> (File, String) {
    // SAFETY: plain system calls on a descriptor of our own; the name is copied before anything else is
    // called.
    unsafe {
        let descriptor = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY);
        assert!(descriptor >= 0, "no pseudo terminal");
        assert_eq!((libc::grantpt(descriptor), libc::unlockpt(descriptor)), (0, 0));
        let name = CStr::from_ptr(libc::ptsname(descriptor)).to_string_lossy().into_owned();
        (File::from_raw_fd(descriptor), name)
    }
}
