//! A BIOS loader for the direct loader: it puts that, the kernel and the ramdisk into memory, as any multiboot loader
//! would, and starts it.
//!
//! The `bootloader` crate's own BIOS stages did this before. They keep using a descriptor table that a video BIOS may
//! have replaced (a triple fault), insist on a picture, and say nothing of a processor that they cannot run on. Here
//! each BIOS call goes from long mode all the way to real mode and back ([`loader::call`]), and nothing that a BIOS does
//! to descriptor tables or control registers in between matters.
//!
//! The boot sector and what must be in real mode are assembly ([`loader::boot_sector`], [`loader::entry`]); all else runs
//! in long mode, where the first 4 GiB are mapped one to one.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

mod loader;
