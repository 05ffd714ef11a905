//! Which processor's events are meant.

use super::{Block, EventsError};
use events::aliases;
use events::cpu::{CpuKey, Vendor};
use events::tables::{Core, ProcessorEntry, Tables};
use pmu_model::Model;
use pmu_model::model as facts;
use raw_cpuid::CpuId;
use recorded::Leaves;
use std::fmt;
use std::str::FromStr;

/// A processor as the command line names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CpuName {
    /// A table's name, or that of a model that can be emulated.
    Name(String),
    /// Family, model and perhaps stepping, as CPUID has them.
    Number {
        /// Family, extended family added.
        family: u16,
        /// Model, extended model in the upper half.
        model: u8,
        /// Stepping.
        stepping: Option<u8>,
    },
}

impl FromStr for CpuName {
    type Err = String;

    /// `6.85`, `0x6.0x55`, `6.85.4`: numbers with dots; everything else is a name.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a processor has a name, or a family and a model".to_string());
        }
        let parts: Vec<&str> = text.split('.').collect();
        if !(parts[0].starts_with(|c: char| c.is_ascii_digit()) && parts.len() > 1) {
            return Ok(Self::Name(text.to_string()));
        }
        let number = |what: &str, part: &str, most: u16| {
            let value = match part.strip_prefix("0x") {
                Some(digits) => u16::from_str_radix(digits, 16),
                None => part.parse(),
            };
            let fitting = value.ok().filter(|value| *value <= most);
            fitting.ok_or_else(|| format!("its {what} is {part:?}; it must be 0 to {most}"))
        };
        let [family, model, ref rest @ ..] = parts[..] else { unreachable!("two parts or more") };
        let stepping = match rest {
            [] => None,
            [stepping] => Some(number("stepping", stepping, 15)? as u8),
            _ => return Err("it is a name, or FAMILY.MODEL, or FAMILY.MODEL.STEPPING".to_string()),
        };
        let family = number("family", family, 0xfff)?;
        Ok(Self::Number { family, model: number("model", model, 0xff)? as u8, stepping })
    }
}

impl fmt::Display for CpuName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number { family, model, stepping } => {
                write!(f, "family {family:#x} model {model:#x}")?;
                stepping.map_or(Ok(()), |stepping| write!(f, " stepping {stepping}"))
            }
        }
    }
}

impl CpuName {
    /// What a processor is called: its table, or its numbers if it has none.
    #[must_use]
    pub fn of(key: &CpuKey) -> Self {
        match Block::embedded().tables().core(key) {
            Ok(core) => Self::Name(core.name().to_string()),
            Err(_) => {
                let (family, model, stepping) = (key.family, key.model, Some(key.stepping));
                Self::Number { family, model, stepping }
            }
        }
    }

    /// The table that it means.
    ///
    /// # Errors
    /// None does, or several do; what may have been meant.
    pub fn core<'a>(&self, tables: &Tables<'a>) -> Result<Core<'a>, EventsError> {
        match self {
            Self::Name(name) => named(name, tables),
            Self::Number { .. } => self.numbered(tables),
        }
    }

    /// All tables that it means: one for each kind of core on hybrid parts.
    ///
    /// # Errors
    /// As for [`Self::core`], but several kinds of cores of one part are none.
    pub fn cores<'a>(&self, tables: &Tables<'a>) -> Result<Vec<Core<'a>>, EventsError> {
        let several: Vec<Core<'a>> = match self {
            Self::Name(name) => {
                aliases::tables_of(name).iter().filter_map(|table| tables.named(table)).collect()
            }
            Self::Number { .. } => {
                let typed = |p: &ProcessorEntry<'_>| self.fits(p) && p.core_type.is_some();
                tables.cores().filter(|core| core.processors().any(|p| typed(&p))).collect()
            }
        };
        if several.len() > 1 { Ok(several) } else { Ok(vec![self.core(tables)?]) }
    }

    fn numbered<'a>(&self, tables: &Tables<'a>) -> Result<Core<'a>, EventsError> {
        let fitting = tables.cores().filter(|core| core.processors().any(|p| self.fits(&p)));
        let fitting: Vec<Core<'_>> = fitting.collect();
        match fitting[..] {
            [only] => Ok(only),
            [] => Err(EventsError::UnknownNumber {
                asked: self.to_string(),
                nearest: self.near(tables),
            }),
            _ => {
                let entry = |core: &Core<'_>| {
                    let entry = core.processors().find(|p| self.fits(p)).expect("it fitted");
                    format!("{} ({})", core.name(), distinction(&entry))
                };
                let tables = fitting.iter().map(entry).collect();
                Err(EventsError::Ambiguous { asked: self.to_string(), tables })
            }
        }
    }

    fn fits(&self, entry: &ProcessorEntry<'_>) -> bool {
        let Self::Number { family, model, stepping } = self else { return false };
        entry.family == *family
            && entry.models.contains(model)
            && stepping.is_none_or(|stepping| entry.steppings.contains(&stepping))
    }

    /// Tables of the same family whose models are nearest.
    fn near(&self, tables: &Tables<'_>) -> Vec<String> {
        let Self::Number { family, model, .. } = self else { return Vec::new() };
        let mut found: Vec<(u8, String)> = Vec::new();
        for core in tables.cores() {
            for entry in core.processors().filter(|entry| entry.family == *family) {
                let (first, last) = (*entry.models.start(), *entry.models.end());
                let at = (*model).clamp(first, last);
                found.push((at.abs_diff(*model), format!("{} (model {at:#x})", core.name())));
            }
        }
        found.sort();
        found.into_iter().take(3).map(|(_, text)| text).collect()
    }
}

fn distinction(entry: &ProcessorEntry<'_>) -> String {
    match entry.core_type {
        Some(kind) => format!("{}, core type {kind:#x}", entry.role),
        None => {
            format!("stepping {} to {}", entry.steppings.start(), entry.steppings.end().min(&15))
        }
    }
}

fn named<'a>(name: &str, tables: &Tables<'a>) -> Result<Core<'a>, EventsError> {
    if let Some(core) = tables.named(name) {
        return Ok(core);
    }
    if let Some(key) = Model::by_name(&name.to_lowercase()).and_then(key_of) {
        return Ok(tables.core(&key)?);
    }
    match aliases::tables_of(name) {
        [] => {}
        [table] => {
            if let Some(core) = tables.named(table) {
                return Ok(core);
            }
        }
        several => {
            let tables = several.iter().map(ToString::to_string).collect();
            return Err(EventsError::Ambiguous { asked: name.to_string(), tables });
        }
    }
    // Half of the letters may differ before a name is no longer worth suggesting.
    let typed = name.to_lowercase();
    let near = |known: &str| strsim::normalized_damerau_levenshtein(&typed, known);
    let likeness = |known: &str| if known.contains(&typed) { 1.0 } else { near(known) };
    let mut found: Vec<(f64, String)> =
        tables.cores().map(|core| (likeness(core.name()), core.name().to_string())).collect();
    found.retain(|(likeness, _)| *likeness >= 0.5);
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let nearest = found.into_iter().take(5).map(|(_, name)| name).collect();
    Err(EventsError::UnknownName { name: name.to_string(), nearest })
}

/// What CPUID says on a model that can be emulated; `None` for the one without identity.
#[must_use]
pub fn key_of(model: Model) -> Option<CpuKey> {
    let spec = model.spec();
    let identity = spec.identity.as_ref()?;
    let vendor = match identity.vendor {
        facts::Vendor::Intel => Vendor::Intel,
        facts::Vendor::Amd => Vendor::Amd,
    };
    let signature = identity.signature;
    let (base, extended) = (signature >> 8 & 0xf, signature >> 20 & 0xff);
    let family = if base == 0xf { base + extended } else { base };
    let upper = if base == 0xf || base == 6 { signature >> 16 & 0xf } else { 0 };
    let number = (upper << 4 | signature >> 4 & 0xf) as u8;
    let key = CpuKey::new(vendor, family as u16, number, (signature & 0xf) as u8);
    let core = spec.intel().and_then(|intel| intel.core);
    Some(core.map_or(key, |core| key.with_leaf_1a(core.native)))
}

/// What CPUID says on a recorded processor; `None` for a maker whose PMUs the tables do not describe.
#[must_use]
pub fn key_of_leaves(leaves: &Leaves) -> Option<CpuKey> {
    let [_, ebx, ecx, edx] = leaves.answer(0, 0);
    let text = [ebx, edx, ecx].map(u32::to_le_bytes);
    let vendor = Vendor::from_cpuid(&String::from_utf8_lossy(text.as_flattened()))?;
    let cpuid = CpuId::with_cpuid_fn(|leaf, subleaf| {
        let [eax, ebx, ecx, edx] = leaves.answer(leaf, subleaf);
        raw_cpuid::CpuIdResult { eax, ebx, ecx, edx }
    });
    let feature = cpuid.get_feature_info()?;
    let (family, model) = (feature.family_id(), feature.model_id());
    let key = CpuKey::new(vendor, family.into(), model, feature.stepping_id());
    let has_kind = leaves.answer(0, 0)[0] >= 0x1a;
    Some(if has_kind { key.with_leaf_1a(leaves.answer(0x1a, 0)[0]) } else { key })
}

/// What CPUID says here.
///
/// # Errors
/// A maker whose PMUs the tables do not describe.
pub fn key_of_host() -> Result<CpuKey, EventsError> {
    let cpuid = CpuId::new();
    let text = cpuid.get_vendor_info().map_or(String::new(), |vendor| vendor.as_str().to_string());
    let (Some(vendor), Some(feature)) = (Vendor::from_cpuid(&text), cpuid.get_feature_info())
    else {
        return Err(EventsError::ForeignHost(text));
    };
    let (family, model) = (feature.family_id(), feature.model_id());
    let key = CpuKey::new(vendor, family.into(), model, feature.stepping_id());
    // Leaf 0x1A reports the core that this thread runs on now, which is as good as any other.
    let leaf = |number: u32| core::arch::x86_64::__cpuid_count(number, 0).eax;
    Ok(if leaf(0) >= 0x1a { key.with_leaf_1a(leaf(0x1a)) } else { key })
}

#[cfg(test)]
mod tests;
