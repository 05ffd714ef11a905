//! What is wrong with a kernel's file.

use thiserror::Error;

/// Why there is no kernel to start.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum KernelError {
    /// Shorter than its header.
    #[error("the kernel's file is damaged: it has only {bytes} bytes{HELP}")]
    Short {
        /// Of the file.
        bytes: usize,
    },
    /// It begins like nothing that starts.
    #[error("the kernel's file is damaged: it begins with {found:#018x}{HELP}")]
    NoKernel {
        /// The first eight bytes.
        found: u64,
    },
    /// An unpacked length that no kernel has: nothing, or too much.
    #[error("the kernel's file is damaged: it states {bytes} bytes of kernel{HELP}")]
    Size {
        /// As stated.
        bytes: usize,
    },
    /// The file is longer or shorter than its stream.
    #[error("the kernel's file is damaged: it has {found} compressed bytes, not {stated}{HELP}")]
    Length {
        /// By the header.
        stated: usize,
        /// In the file.
        found: usize,
    },
    /// The stream is not DEFLATE, or ends too early, or not where it should.
    #[error(
        "the kernel's file is damaged: its compressed data cannot be unpacked (status {status}){HELP}"
    )]
    Stream {
        /// The number of miniz's status: -4, the data ends too early; -1, it is no DEFLATE; 2, it is more than stated.
        status: i8,
    },
    /// It ended before all was there.
    #[error("the kernel's file is damaged: it unpacks to {found} bytes, not {stated}{HELP}")]
    Unpacked {
        /// By the header.
        stated: usize,
        /// That came out.
        found: usize,
    },
    /// Other bytes came out than went in.
    #[error("the kernel's file is damaged: its CRC-32 is {found:#010x}, not {stated:#010x}{HELP}")]
    Checksum {
        /// By the header.
        stated: u32,
        /// Of what came out.
        found: u32,
    },
}

/// What can be done, behind each of them.
const HELP: &str = ". Write the image again; if that does not help, use another medium";
