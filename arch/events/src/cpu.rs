//! Which processor: what CPUID says about one logical CPU, as far as event tables depend on it.

use core::fmt;

/// The two vendors whose PMUs are supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// CPUID leaf 0 says `GenuineIntel`.
    Intel,
    /// CPUID leaf 0 says `AuthenticAMD`.
    Amd,
}

impl Vendor {
    /// The vendor with this CPUID leaf 0 string, or `None` if its PMU is not supported.
    #[must_use]
    pub fn from_cpuid(id: &str) -> Option<Self> {
        match id {
            "GenuineIntel" => Some(Self::Intel),
            "AuthenticAMD" => Some(Self::Amd),
            _ => None,
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Intel => "Intel",
            Self::Amd => "AMD",
        })
    }
}

/// Core type of an efficient core, CPUID.1AH:EAX\[31:24\].
pub const CORE_TYPE_ATOM: u8 = 0x20;
/// Core type of a performance core, CPUID.1AH:EAX\[31:24\].
pub const CORE_TYPE_CORE: u8 = 0x40;

/// What identifies one logical CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuKey {
    /// CPUID leaf 0.
    pub vendor: Vendor,
    /// Display family, CPUID.01H:EAX, with the extended family added.
    pub family: u16,
    /// Display model, with the extended model above it.
    pub model: u8,
    /// Stepping, 0 to 15.
    pub stepping: u8,
    /// CPUID.1AH:EAX\[31:24\], `None` where that leaf is absent or 0.
    pub core_type: Option<u8>,
    /// CPUID.1AH:EAX\[23:0\], `None` where that leaf is absent or 0.
    pub native_model: Option<u32>,
}

impl CpuKey {
    /// A processor that is not hybrid.
    #[must_use]
    pub fn new(vendor: Vendor, family: u16, model: u8, stepping: u8) -> Self {
        Self { vendor, family, model, stepping, core_type: None, native_model: None }
    }

    /// The same with CPUID.1AH:EAX, as read on the CPU in question. Early hybrid parts read 0
    /// there, which counts as not told.
    #[must_use]
    pub fn with_leaf_1a(mut self, eax: u32) -> Self {
        let (core_type, native_model) = ((eax >> 24) as u8, eax & 0xff_ffff);
        self.core_type = (core_type != 0).then_some(core_type);
        self.native_model = (core_type != 0 && native_model != 0).then_some(native_model);
        self
    }
}

impl fmt::Display for CpuKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vendor, family, model, stepping, .. } = self;
        write!(f, "{vendor} family {family:#x} model {model:#x} stepping {stepping}")?;
        if let Some(core_type) = self.core_type {
            write!(f, " core type {core_type:#x}")?;
        }
        if let Some(native) = self.native_model {
            write!(f, " native model {native:#x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i11_a_processor_is_named_with_what_tells_it_apart() {
        let key = CpuKey::new(Vendor::Amd, 0x19, 0x61, 2);
        assert_eq!(key.to_string(), "AMD family 0x19 model 0x61 stepping 2");
        let core = CpuKey::new(Vendor::Intel, 6, 0x97, 5).with_leaf_1a(0x2000_0001);
        let text = "Intel family 0x6 model 0x97 stepping 5 core type 0x20 native model 0x1";
        assert_eq!(core.to_string(), text);
    }

    /// CPUID.1AH:EAX: the kind of core above, the native model below. One that tells no kind tells nothing.
    #[test]
    fn i11_a_core_is_told_by_its_kind_and_its_native_model() {
        let of = |eax| {
            let key = CpuKey::new(Vendor::Intel, 6, 0x97, 2).with_leaf_1a(eax);
            (key.core_type, key.native_model)
        };
        assert_eq!(of(0x4000_0001), (Some(0x40), Some(1)));
        assert_eq!(of(0x2000_0000), (Some(0x20), None));
        assert_eq!([of(0), of(5)], [(None, None); 2]);
    }
}
