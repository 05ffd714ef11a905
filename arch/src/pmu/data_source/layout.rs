//! Which encoding a processor has, and which of its events tell something.

use super::{DataSource, Datum, amd, intel};
use crate::cpu::CoreType;
use crate::pmu::driver::Selection;
use crate::pmu::numbers;
use crate::pmu::pebs::Access;

/// How a processor encodes sources. Intel's tables are the SDM's, vol. 3, "Data Source Encoding for Load Latency Record" of
/// each processor, and Linux's, `arch/x86/events/intel/ds.c`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Encoding {
    /// Nehalem, Westmere.
    Nehalem,
    /// Not known: records tell no source.
    #[default]
    Unknown,
    /// Sandy Bridge to Broadwell.
    SandyBridge,
    /// Skylake to Raptor Cove, without persistent memory.
    Skylake,
    /// The same in servers, with persistent memory.
    SkylakeServer,
    /// Gracemont.
    Gracemont,
    /// Crestmont, Skymont.
    Crestmont,
    /// Lion Cove.
    LionCove,
    /// IBS, family 10h.
    Family10h,
    /// IBS, Zen and Zen 2.
    Zen,
    /// IBS, Zen 3.
    Zen3,
    /// IBS with the longer source field: Zen 4 and later (CPUID 0x8000001B EAX\[11\]).
    Zen4,
}

/// What the memory records of a processor are like.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Words {
    /// The encoding of sources.
    pub encoding: Encoding,
    /// The latency has two parts: of the instruction in bits 15:0, of the data in bits 47:32.
    pub splits: bool,
    /// Event 03/82 must be counted together with that of load latency (Linux, `PMU_FL_MEM_LOADS_AUX`).
    pub auxiliary: bool,
    /// There is an event that samples the source and the latency of stores: its code and unit mask.
    pub stores: Option<(u16, u16)>,
    /// Records of event CD/02 on counter 3 state the store where IA32_PEBS_ENABLE\[63\] is set: Sandy Bridge and Ivy Bridge (SDM
    /// vol. 3, "Precise Store Facility").
    pub precise_stores: bool,
}

/// The event of precise stores.
pub const PRECISE_STORE: (u16, u16) = (0xcd, 0x02);

/// What records of an event tell in addition to the address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Told {
    /// Nothing.
    Nothing,
    /// Of a load, its source and latency.
    Load,
    /// Of a store, its source and latency.
    Store,
    /// Of a store, whether the first level had the line (SDM vol. 3, 20.3.6.3, Haswell and later).
    StoreHit,
}

/// MEM_TRANS_RETIRED.STORE_SAMPLE, by which the large cores sample stores from Golden Cove on.
const SAMPLED: Option<(u16, u16)> = Some((0xcd, 0x02));

impl Words {
    /// Whether they are those of Golden Cove, or of one of the large cores after it.
    #[must_use]
    pub fn is_from_golden_cove(&self) -> bool {
        self.stores == SAMPLED
    }

    /// Those of an Intel processor of family 6. Models as in Linux, `arch/x86/include/asm/intel-family.h`.
    #[must_use]
    pub fn of_intel(model: u32, core: Option<CoreType>) -> Self {
        use Encoding::*;
        const LATENCY: Option<(u16, u16)> = Some((0xd0, 0x06));
        let small = core == Some(CoreType::Atom);
        let plain = |encoding| Self { encoding, ..Self::default() };
        let split = |encoding, stores| Self { stores, splits: true, ..plain(encoding) };
        let gracemont = split(Gracemont, LATENCY);
        match model {
            0x1a | 0x1e | 0x1f | 0x2e | 0x25 | 0x2c | 0x2f => plain(Nehalem),
            // Skylake, Kaby Lake, Comet Lake, Ice Lake, Tiger Lake, Rocket Lake.
            0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 | 0x7d | 0x7e | 0x9d | 0x8c | 0x8d | 0xa7 => {
                plain(Skylake)
            }
            0x55 | 0x6a | 0x6c => plain(SkylakeServer),
            // Sapphire and Emerald Rapids.
            0x8f | 0xcf => Self { auxiliary: true, ..split(SkylakeServer, SAMPLED) },
            // Granite Rapids.
            0xad | 0xae => split(SkylakeServer, SAMPLED),
            // Alder Lake, Raptor Lake.
            0x97 | 0x9a | 0xb7 | 0xba | 0xbf if small => gracemont,
            // Bartlett Lake has Raptor Cove alone.
            0x97 | 0x9a | 0xb7 | 0xba | 0xbf | 0xd7 => {
                Self { auxiliary: true, ..split(Skylake, SAMPLED) }
            }
            0xbe => gracemont,
            // Meteor Lake, the low-power Arrow Lake.
            0xaa | 0xac | 0xb5 if small => split(Crestmont, LATENCY),
            0xaa | 0xac | 0xb5 => split(Skylake, SAMPLED),
            // Sierra Forest, Grand Ridge, Clearwater Forest.
            0xaf | 0xb6 | 0xdd => split(Crestmont, LATENCY),
            // Lunar Lake, Arrow Lake, Panther Lake, Wildcat Lake.
            0xbd | 0xc5 | 0xc6 | 0xcc | 0xd5 if small => split(Crestmont, LATENCY),
            0xbd | 0xc5 | 0xc6 | 0xcc | 0xd5 => split(LionCove, SAMPLED),
            // Sandy Bridge and Ivy Bridge.
            0x2a | 0x2d | 0x3a | 0x3e => Self { precise_stores: true, ..plain(SandyBridge) },
            // Haswell, Broadwell.
            0x3c | 0x3f | 0x45 | 0x46 | 0x3d | 0x47 | 0x4f | 0x56 => plain(SandyBridge),
            _ => plain(Unknown),
        }
    }

    /// Those of an AMD processor with these features of IBS.
    #[must_use]
    pub const fn of_amd(family: u32, ibs: u32) -> Self {
        /// Additions of Zen 4.
        const ZEN_4: u32 = 1 << 11;
        let encoding = match family {
            _ if ibs & ZEN_4 != 0 => Encoding::Zen4,
            0x10..=0x16 => Encoding::Family10h,
            0x19 => Encoding::Zen3,
            _ => Encoding::Zen,
        };
        Self { encoding, splits: false, auxiliary: false, stores: None, precise_stores: false }
    }

    /// What PEBS records of an event tell, in a format that has a data address of events of loads and stores (`data`), or of
    /// load latency alone.
    #[must_use]
    pub fn told(&self, selection: &Selection, data: bool) -> Told {
        let event = (selection.event, selection.umask);
        if matches!(selection.extra, Some((numbers::LOAD_LATENCY, _))) {
            return Told::Load;
        }
        if self.stores == Some(event) {
            return Told::Store;
        }
        match event {
            PRECISE_STORE if self.precise_stores => Told::StoreHit,
            (0xd0, umask) if data && umask & 3 == 2 && self.tells_hits() => Told::StoreHit,
            _ => Told::Nothing,
        }
    }

    /// Whether records of stores say whether the first level had the line: not those of small cores, where the field is
    /// reserved (SDM vol. 3, 20.7.1.1, of Goldmont).
    const fn tells_hits(&self) -> bool {
        use Encoding::{LionCove, SandyBridge, Skylake, SkylakeServer};
        matches!(self.encoding, SandyBridge | Skylake | SkylakeServer | LionCove)
    }

    /// The access of a PEBS record.
    #[must_use]
    pub const fn datum(&self, access: &Access, told: Told) -> Datum {
        use intel::{HIT_ONLY, STORE, WITH_FLAGS};
        let flags = match told {
            Told::Nothing => return Datum::at(access.address),
            Told::Load => Datum::TOLD,
            Told::Store => Datum::TOLD | STORE,
            Told::StoreHit if self.precise_stores => Datum::TOLD | STORE | HIT_ONLY | WITH_FLAGS,
            Told::StoreHit => Datum::TOLD | STORE | HIT_ONLY,
        };
        let source = access.source as u16 as u32 | flags;
        let (latency, other) = match told {
            Told::StoreHit | Told::Nothing => (0, 0),
            // Whether it is split is not known either.
            _ if matches!(self.encoding, Encoding::Unknown) => (0, 0),
            Told::Load | Told::Store if self.splits => {
                (access.cache_latency() as u32, access.instruction_latency() as u32)
            }
            Told::Load | Told::Store => (access.load_latency(), 0),
        };
        Datum { address: access.address, source, latency, other }
    }

    /// What the source of a [`Datum`] means; nothing if it says none.
    #[must_use]
    pub fn source(&self, datum: &Datum) -> Option<DataSource> {
        if !datum.is_told() {
            return None;
        }
        Some(match self.encoding {
            Encoding::Family10h | Encoding::Zen | Encoding::Zen3 | Encoding::Zen4 => {
                amd::source(self.encoding, datum.source)
            }
            encoding => intel::source(encoding, datum.source),
        })
    }
}
