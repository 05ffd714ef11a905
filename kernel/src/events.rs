//! The event tables of the ramdisk: names for this processor, or the reason why there are none. Without them raw,
//! fixed and architectural events can be counted all the same.

mod processor;

pub use processor::Known;

use alloc::format;
use alloc::string::ToString;
use arch::cpu::{Cpuid, Identity, has_leaf};
use events::cpu::{CORE_TYPE_CORE, CpuKey, Vendor};
use events::tables::{Core, NoCore, Tables, layout};
use protocol::ramdisk::{SectionKind, section};
use protocol::record::{ErrorCode, ErrorRecord, EventTables};

/// What came of the tables.
pub struct Names<'a> {
    /// This processor's table; borrows the ramdisk.
    pub core: Option<Core<'a>>,
    /// For the machine record.
    pub record: EventTables,
    /// If the tables are refused: the reason.
    pub error: Option<ErrorRecord>,
}

/// Opens the tables of `ramdisk` and finds the one of this processor. `None` if no tables came along, or the ramdisk
/// is unusable as a whole.
#[must_use]
pub fn open<'a>(ramdisk: &'a [u8], identity: &Identity, cpuid: &impl Cpuid) -> Option<Names<'a>> {
    let opened = match section(ramdisk, SectionKind::EventTables) {
        Ok(None) => return None,
        // A job that cannot be used is reported as that.
        Err(_) if protocol::ramdisk::unpack(ramdisk).is_err() => return None,
        Err(error) => Err(error.to_string()),
        Ok(Some(block)) => Tables::open(block).map_err(|error| error.to_string()),
    };
    Some(match opened {
        Ok(tables) => known(&tables, identity, cpuid),
        Err(reason) => refused(reason.as_str()),
    })
}

/// EAX of CPUID leaf 0x1A, which tells a hybrid's cores apart; 0 without that leaf.
fn leaf_1a(cpuid: &impl Cpuid) -> u32 {
    if has_leaf(cpuid, 0x1a) { cpuid.cpuid2(0x1a, 0).eax } else { 0 }
}

/// Leaf 7 EDX: the package has cores of several kinds.
const HYBRID: u32 = 1 << 15;

/// Whether a processor that does not tell the kind of its cores has performance cores alone, as parts of a hybrid model do
/// that are sold without efficient ones (Core i5-12400): leaf 0x1A is 0 there and the package not hybrid (SDM vol. 2,
/// CPUID). A hypervisor may hide both, so under one nothing is concluded.
fn has_one_kind(identity: &Identity, cpuid: &impl Cpuid) -> bool {
    let hybrid = has_leaf(cpuid, 7) && cpuid.cpuid2(7, 0).edx & HYBRID != 0;
    !hybrid && identity.hypervisor.is_none()
}

/// The table of this processor, or the reason why there is none.
fn table<'a>(
    tables: &Tables<'a>,
    identity: &Identity,
    key: CpuKey,
    cpuid: &impl Cpuid,
) -> Result<Core<'a>, NoCore> {
    match tables.core(&key) {
        Err(NoCore::CoreType { .. })
            if key.core_type.is_none() && has_one_kind(identity, cpuid) =>
        {
            tables.core(&CpuKey { core_type: Some(CORE_TYPE_CORE), ..key })
        }
        found => found,
    }
}

fn known<'a>(tables: &Tables<'a>, identity: &Identity, cpuid: &impl Cpuid) -> Names<'a> {
    let core = match key(identity, leaf_1a(cpuid)) {
        Some(key) => table(tables, identity, key, cpuid).map_err(|error| error.to_string()),
        None => Err(format!(
            "there is no event table for {} family {:#x} model {:#x}",
            identity.vendor_text, identity.family, identity.model
        )),
    };
    let version = Some(layout::VERSION);
    let record = match &core {
        Ok(core) => EventTables {
            version,
            table: Some(core.name().to_string()),
            // A user's own table has no version.
            source: Some(format!("{} {}", core.source(), core.version()).trim_end().to_string()),
            events: core.len() as u32,
            absent: None,
        },
        Err(reason) => {
            EventTables { version, absent: Some(reason.clone()), ..EventTables::default() }
        }
    };
    Names { core: core.ok(), record, error: None }
}

fn refused(reason: &str) -> Names<'static> {
    let text = format!("no events by name, but raw events can be counted: {reason}");
    Names {
        core: None,
        record: EventTables { absent: Some(reason.to_string()), ..EventTables::default() },
        error: Some(ErrorRecord {
            code: ErrorCode::EventTables,
            item: None,
            name: None,
            text,
            fault: None,
            restored: alloc::vec::Vec::new(),
            more: false,
        }),
    }
}

/// What the tables are looked up by; `None` for a maker whose PMUs they do not describe.
fn key(identity: &Identity, leaf_1a: u32) -> Option<CpuKey> {
    let vendor = Vendor::from_cpuid(&identity.vendor_text)?;
    let family = u16::try_from(identity.family).ok()?;
    let model = u8::try_from(identity.model).ok()?;
    let stepping = u8::try_from(identity.stepping).ok()?;
    Some(CpuKey::new(vendor, family, model, stepping).with_leaf_1a(leaf_1a))
}

#[cfg(test)]
mod tests;
