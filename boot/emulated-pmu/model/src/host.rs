//! What the model has to know of the machine beneath it.

/// Facts of the real processor, read once at launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Highest basic CPUID leaf (leaf 0 EAX).
    pub highest_basic: u32,
    /// Highest extended CPUID leaf (leaf 0x8000_0000 EAX).
    pub highest_extended: u32,
    /// Highest sub-leaf of leaf 7 (leaf 7 EAX); 0 if there is no leaf 7.
    pub highest_subleaf_7: u32,
    /// `IA32_MISC_ENABLE`; 0 if the processor has none. An invented value breaks operating systems,
    /// which expect bit 0 (fast strings).
    pub misc_enable: u64,
    /// AMD's `HWCR`; 0 if the processor has none.
    pub hwcr: u64,
}

impl Host {
    /// A host like QEMU's TCG, for tests and examples. A hypervisor reads the real values.
    pub const EXAMPLE: Self = Self {
        highest_basic: 0x1F,
        highest_extended: 0x8000_0021,
        highest_subleaf_7: 1,
        misc_enable: 1,
        hwcr: 0,
    };
}
