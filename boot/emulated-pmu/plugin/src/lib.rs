//! To be replaced by the plugin.
#![allow(missing_docs)]
use std::ffi::{c_char, c_int, c_void};

#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 4;

#[unsafe(no_mangle)]
pub extern "C" fn qemu_plugin_install(
    _id: u64,
    _info: *const c_void,
    _argc: c_int,
    _argv: *const *const c_char,
) -> c_int {
    0
}
