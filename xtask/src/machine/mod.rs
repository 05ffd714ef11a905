//! The virtual machine: what the host offers ([`host`]), which accelerator and PMU ([`accel`]), who counts for an emulated
//! one ([`counting`]), which devices ([`devices`]), whether QEMU knows the processor ([`cpu_model`]), running it ([`qemu`],
//! [`console`], [`stop_line`]) and the processor time that it takes ([`cpu_time`]), and what the emulated PMU said meanwhile ([`pmu_log`]).

pub mod accel;
pub mod console;
pub mod counting;
pub mod cpu_model;
pub mod cpu_time;
pub mod devices;
pub mod host;
pub mod pmu_log;
pub mod qemu;
pub mod stop_line;

pub use accel::{Choice, Given};
pub use counting::Counter;
pub use cpu_time::CpuClock;
pub use devices::Boot;
pub use host::Host;
pub use qemu::{Ending, Finished, Launch, Limits, run, run_driven, run_into, run_timed};

use std::time::Duration;
use thiserror::Error;

/// The machine did not end record, or could not be started.
#[derive(Debug, Error)]
pub enum MachineError {
    /// The accelerator or PMU that was requested is not available.
    #[error("{0}")]
    NoAccelerator(String),
    /// What was requested contradicts itself.
    #[error("{0}")]
    Contradiction(String),
    /// QEMU cannot be started.
    #[error("QEMU cannot be started: {0}")]
    NoStart(std::io::Error),
    /// A serial device cannot be opened.
    #[error("cannot open the serial device {device}: {error}")]
    NoDevice {
        /// The device.
        device: String,
        /// The system's reason.
        error: serialport::Error,
    },
    /// The machine came up without the PMU that was named.
    #[error("--pmu {model}: the machine has no such PMU ({why})")]
    NoPmu {
        /// The model.
        model: &'static str,
        /// What the firmware and the hypervisor said.
        why: String,
    },
    /// Its report broke off.
    #[error("{0}")]
    Unfinished(String),
}

impl MachineError {
    /// 77 if nothing could run, 3 if something did and did not finish; a contradiction and a device that
    /// cannot be opened are bad usage.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoAccelerator(_) | Self::NoPmu { .. } => 77,
            Self::Contradiction(_) | Self::NoDevice { .. } => 2,
            Self::NoStart(_) | Self::Unfinished(_) => 3,
        }
    }
}

/// Seconds in words, for messages.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    format!("{} s", (duration.as_secs_f64() * 1000.0).round() / 1000.0)
}
