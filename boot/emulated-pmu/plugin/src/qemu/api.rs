//! QEMU's functions, found at run time: the library has no undefined symbols, so that its tests link without QEMU, and a
//! QEMU that lacks one is told which.

use super::types::*;
use core::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

/// QEMU does not have what is needed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this QEMU has no function {}: it is older than 10.0 or was built without plugins", .0.to_string_lossy())]
pub struct Missing(pub &'static CStr);

macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident = $name:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions.
        #[derive(Debug)]
        pub struct Api {
            $($(#[$doc])* pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            fn find() -> Result<Self, Missing> {
                // SAFETY: each symbol, if QEMU has it, is the function of that name in version 4 of its interface, whose
                // C declaration the field's type follows.
                Ok(Self { $($field: unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(symbol($name)?) },)* })
            }
        }
    };
}

functions! {
    /// Asks for a callback at each translation.
    on_translation = c"qemu_plugin_register_vcpu_tb_trans_cb": fn(Id, Translated);
    /// Asks for a callback when a vCPU is made.
    on_vcpu = c"qemu_plugin_register_vcpu_init_cb": fn(Id, OnVcpu);
    /// Asks for a callback at a block's start.
    at_block = c"qemu_plugin_register_vcpu_tb_exec_cb": fn(Block, Executed, Registers, *mut c_void);
    /// The same if a word is so.
    at_block_if = c"qemu_plugin_register_vcpu_tb_exec_cond_cb": fn(Block, Executed, Registers, Condition, Word, u64, *mut c_void);
    /// Changes a word at a block's start.
    at_block_inline = c"qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu": fn(Block, Operation, Word, u64);
    /// Asks for a callback before an instruction.
    before = c"qemu_plugin_register_vcpu_insn_exec_cb": fn(Insn, Executed, Registers, *mut c_void);
    /// The same if a word is so.
    before_if = c"qemu_plugin_register_vcpu_insn_exec_cond_cb": fn(Insn, Executed, Registers, Condition, Word, u64, *mut c_void);
    /// Changes a word before an instruction.
    before_inline = c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu": fn(Insn, Operation, Word, u64);
    /// Asks for a callback after each access of an instruction.
    accessed = c"qemu_plugin_register_vcpu_mem_cb": fn(Insn, Accessed, Registers, Direction, *mut c_void);
    /// Changes a word after each access of an instruction.
    accessed_inline = c"qemu_plugin_register_vcpu_mem_inline_per_vcpu": fn(Insn, Direction, Operation, Word, u64);
    /// Throws all code and callbacks away, and then calls.
    reset = c"qemu_plugin_reset": fn(Id, OnPlugin);
    /// Instructions of a block.
    length = c"qemu_plugin_tb_n_insns": fn(Block) -> usize;
    /// One of them.
    instruction = c"qemu_plugin_tb_get_insn": fn(Block, usize) -> Insn;
    /// Its length.
    size = c"qemu_plugin_insn_size": fn(Insn) -> usize;
    /// Its bytes.
    bytes = c"qemu_plugin_insn_data": fn(Insn, *mut c_void, usize) -> usize;
    /// Its linear address, at which it was translated: others may map the same page.
    linear = c"qemu_plugin_insn_vaddr": fn(Insn) -> u64;
    /// Where it is in QEMU's memory; null if it is not in RAM.
    host = c"qemu_plugin_insn_haddr": fn(Insn) -> *mut c_void;
    /// Makes a scoreboard, with so many bytes per vCPU, all 0.
    new_scoreboard = c"qemu_plugin_scoreboard_new": fn(usize) -> Scoreboard;
    /// A vCPU's entry. The vCPU must exist.
    entry = c"qemu_plugin_scoreboard_find": fn(Scoreboard, c_int) -> *mut c_void;
    /// Whether an access is a store, or load and store.
    is_store = c"qemu_plugin_mem_is_store": fn(MemInfo) -> bool;
    /// Its bytes, as a power of two.
    size_shift = c"qemu_plugin_mem_size_shift": fn(MemInfo) -> u32;
    /// Its physical address, to be asked at once.
    translation = c"qemu_plugin_get_hwaddr": fn(MemInfo, u64) -> HwAddress;
    /// That as a number.
    physical = c"qemu_plugin_hwaddr_phys_addr": fn(HwAddress) -> u64;
    /// The registers: an array of [`Descriptor`]s.
    registers = c"qemu_plugin_get_registers": fn() -> *mut GArray;
    /// Appends a register's bytes. At most as many as it says, and 0 if there is none.
    read_register = c"qemu_plugin_read_register": fn(Register, *mut GArray) -> c_int;
    /// Reads so many bytes at a linear address; whether they are there.
    read_memory = c"qemu_plugin_read_memory_vaddr": fn(u64, *mut GArray, usize) -> bool;
    /// GLib's new array of bytes.
    new_bytes = c"g_byte_array_new": fn() -> *mut GArray;
    /// Makes it as long.
    resize_bytes = c"g_byte_array_set_size": fn(*mut GArray, u32) -> *mut GArray;
}

fn symbol(name: &'static CStr) -> Result<*mut c_void, Missing> {
    // SAFETY: the name ends with 0; the null handle means all that is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() { Err(Missing(name)) } else { Ok(found) }
}

static API: OnceLock<Api> = OnceLock::new();

/// Finds the functions.
///
/// # Errors
/// If QEMU has one of them not.
pub fn find() -> Result<&'static Api, Missing> {
    let found = Api::find()?;
    Ok(API.get_or_init(|| found))
}

/// The functions. Only code that QEMU calls requests them, which it does once [`find`] has succeeded.
#[inline]
pub fn api() -> &'static Api {
    API.get().expect("the plugin was installed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_qemu_the_missing_function_is_named() {
        let missing = find().expect_err("the tests run without QEMU");
        let text = missing.to_string();
        assert!(text.contains("qemu_plugin_register_vcpu_tb_trans_cb"), "{text}");
    }
}
