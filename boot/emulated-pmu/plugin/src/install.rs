//! QEMU loads the plugin.

use crate::qemu::{self, Id, Info, Missing, api};
use crate::state::State;
use crate::stop::{Line, StopError};
use crate::translate::translated;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::Ordering;

/// Which version of its interface QEMU has to have: it looks here before anything else.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = qemu::VERSION;

/// The plugin cannot be installed.
#[derive(Debug, thiserror::Error)]
enum InstallError {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error("{0} is not a whole machine: the emulated PMU is for qemu-system-x86_64")]
    NoSystem(String),
    #[error("it emulates {0}, but the emulated PMU is for x86_64")]
    Architecture(String),
    #[error("unknown argument {0:?}: the only one is stop=FD")]
    Unknown(String),
    #[error("{0:?}: a file descriptor is a number")]
    NoNumber(String),
    #[error(transparent)]
    Stop(#[from] StopError),
}

/// QEMU calls this when it has loaded the library. Anything but 0 ends QEMU.
///
/// # Safety
/// For QEMU alone, once, with what its interface says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned();
    // SAFETY: the caller's promise.
    let info = unsafe { &*info };
    crate::calls::PROCESSORS.store(u64::try_from(info.vcpus).unwrap_or(1), Ordering::Relaxed);
    // SAFETY: the caller's promise: so many arguments.
    let list = (0..count as usize).map(|index| text(unsafe { *arguments.add(index) }));
    match install(id, &text(info.target), info.is_system, &list.collect::<Vec<_>>()) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("emulated PMU's plugin: {error}");
            1
        }
    }
}

fn install(id: Id, target: &str, is_system: bool, list: &[String]) -> Result<(), InstallError> {
    if target != "x86_64" {
        return Err(InstallError::Architecture(target.to_string()));
    }
    if !is_system {
        return Err(InstallError::NoSystem(target.to_string()));
    }
    let line = stop_line(list)?;
    qemu::find()?;
    State::set(id, line);
    ask(id);
    Ok(())
}

fn stop_line(list: &[String]) -> Result<Option<Line>, InstallError> {
    let mut line = None;
    for argument in list {
        let Some(number) = argument.strip_prefix("stop=") else {
            return Err(InstallError::Unknown(argument.clone()));
        };
        let parsed = number.parse().map_err(|_| InstallError::NoNumber(argument.clone()))?;
        line = Some(Line::new(parsed)?);
    }
    Ok(line)
}

/// Asks for callbacks; QEMU forgets them when translated code is thrown away.
pub extern "C" fn ask(id: Id) {
    // SAFETY: functions of ours that stay.
    unsafe {
        (api().on_vcpu)(id, made);
        (api().on_translation)(id, translated);
    }
}

extern "C" fn made(_: Id, index: u32) {
    crate::running::made(index);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(target: &str, is_system: bool, list: &[&str]) -> String {
        let list: Vec<String> = list.iter().map(ToString::to_string).collect();
        install(0, target, is_system, &list).expect_err("there is no QEMU").to_string()
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert!(refusal("aarch64", true, &[]).contains("aarch64"));
        assert!(refusal("x86_64", false, &[]).contains("qemu-system-x86_64"));
        assert!(refusal("x86_64", true, &["speed=9"]).contains("speed=9"));
        assert!(refusal("x86_64", true, &["stop=x"]).contains("stop=x"));
        assert!(refusal("x86_64", true, &["stop=9999"]).contains("stop=9999"));
        assert!(refusal("x86_64", true, &[]).contains("qemu_plugin_"));
    }
}
