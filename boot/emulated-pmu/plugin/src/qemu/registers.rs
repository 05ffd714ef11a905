//! Reading registers of the vCPU that a callback runs on.

use super::api::api;
use super::types::{Descriptor, GArray, Register};
use core::ffi::CStr;

/// The registers' handles, by name. They are the same for every vCPU.
#[derive(Debug, Default)]
pub struct Names(Vec<(String, Register)>);

// SAFETY: a handle is a number to QEMU, and names the register of whichever vCPU asks.
unsafe impl Send for Names {}
// SAFETY: as above.
unsafe impl Sync for Names {}

impl Names {
    /// Asks QEMU. To be called when a vCPU is made, on its thread.
    pub fn ask() -> Self {
        // SAFETY: the list is QEMU's, of descriptors whose texts stay as long as QEMU runs.
        let list = unsafe {
            let array = &*(api().registers)();
            core::slice::from_raw_parts(array.data.cast::<Descriptor>(), array.length as usize)
        };
        Self(list.iter().filter_map(Self::entry).collect())
    }

    fn entry(descriptor: &Descriptor) -> Option<(String, Register)> {
        // SAFETY: see `ask`.
        let name = unsafe { CStr::from_ptr(descriptor.name) };
        Some((name.to_str().ok()?.to_string(), descriptor.handle))
    }

    /// The handle of `name`, as GDB calls it.
    pub fn find(&self, name: &str) -> Option<Register> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, register)| *register)
    }
}

/// Where registers are read into. One per vCPU.
#[derive(Debug)]
pub struct Reader(*mut GArray);

// SAFETY: the array is this reader's own.
unsafe impl Send for Reader {}

impl Reader {
    /// With a buffer of its own, which stays.
    pub fn new() -> Self {
        // SAFETY: makes an empty array.
        Self(unsafe { (api().new_bytes)() })
    }

    /// A register's lowest 64 bits. The callback must have been registered as one that reads registers.
    pub fn read(&mut self, register: Register) -> u64 {
        // SAFETY: the array is ours; QEMU appends to it as many bytes as it returns, and the length says so.
        unsafe {
            (api().resize_bytes)(self.0, 0);
            (api().read_register)(register, self.0);
            let array = &*self.0;
            let bytes = core::slice::from_raw_parts(array.data, (array.length as usize).min(8));
            bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
        }
    }
}

impl Reader {
    /// So many words of the guest's memory, from a linear address on. `None` if something of them is not there.
    pub fn read_words(&mut self, linear: u64, count: usize) -> Option<impl Iterator<Item = u64>> {
        // SAFETY: the array is ours; QEMU makes it as long as requested, and the length says so.
        let bytes = unsafe {
            if !(api().read_memory)(linear, self.0, 8 * count) {
                return None;
            }
            let array = &*self.0;
            core::slice::from_raw_parts(array.data, array.length as usize)
        };
        let (words, _) = bytes.as_chunks::<8>();
        Some(words.iter().map(|word| u64::from_le_bytes(*word)))
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}
