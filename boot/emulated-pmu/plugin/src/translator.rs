//! What translation needs.

use crate::bound::Bound;
use crate::opened::{Interned, Opened};
use crate::trace::{Begun, Deferred};
use iced_x86::InstructionInfoFactory;
use plugin_channel::{Command, Mode};
use pmu_model::Qualifiers;
use pmu_model::uarch::PortMap;
use std::collections::HashMap;

/// What translation needs.
pub struct Translator {
    /// What code is translated for: all that the pages request.
    pub mode: Mode,
    /// What each page of calls requested last.
    pub modes: HashMap<u64, Mode>,
    /// The hypervisors' memory, in QEMU's: by its physical start.
    pub regions: HashMap<u64, (u64, u64)>,
    /// What each page of calls has counted by itself, and what code is translated for.
    pub qualifiers: HashMap<u64, Qualifiers>,
    /// See there.
    pub qualifier: Qualifiers,
    /// The ports of micro-operations, if there is a map.
    pub ports: Option<PortMap>,
    /// Bytes of a line of code, if fetching it takes time.
    pub code_line: Option<u64>,
    /// Whether there is a table of direct jumps.
    pub direct: bool,
    /// Whether the front end has a micro-op cache or a loop buffer.
    pub front: bool,
    /// Whether each instruction begins in a window.
    pub window: bool,
    /// The decoder's tables.
    pub factory: InstructionInfoFactory,
    /// What blocks leave open.
    pub opened: Interned<Opened>,
    /// What blocks can have.
    pub bounds: Interned<Bound>,
    /// Calls, by where they are in QEMU's memory.
    pub calls: Interned<(u64, Command)>,
    /// Accesses of instructions that can still fail.
    pub deferred: Interned<Deferred>,
    /// Instructions whose accesses the registers tell.
    pub begun: Interned<Begun>,
}

impl core::fmt::Debug for Translator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Translator").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Translator {
    /// Before the first call.
    pub fn empty() -> Self {
        Self {
            mode: Mode::empty(),
            modes: HashMap::new(),
            qualifiers: HashMap::new(),
            qualifier: Qualifiers::RESET,
            regions: HashMap::new(),
            ports: None,
            code_line: None,
            direct: false,
            front: false,
            window: false,
            factory: InstructionInfoFactory::new(),
            opened: Interned::default(),
            bounds: Interned::default(),
            calls: Interned::default(),
            deferred: Interned::default(),
            begun: Interned::default(),
        }
    }

    /// Whether an address in QEMU's memory is the hypervisor's.
    pub fn is_own(&self, host: u64) -> bool {
        self.regions.values().any(|(start, end)| (*start..*end).contains(&host))
    }
}
