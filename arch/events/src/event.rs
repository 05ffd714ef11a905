//! One event of a table, with all the facts that programming it needs.

/// PMCx003, retired SSE and AVX operations: may grow by more than 15 a cycle.
pub const AMD_LARGE_INCREMENT_EVENT: u16 = 0x003;

/// Most ways that one event of a table can be programmed in: Coyote Cove has four offcore MSRs.
pub const MAX_WAYS: usize = 4;

/// One way to program an event: a code, and the extra MSR that the code looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Way {
    /// Event select: 8 bits on Intel, 12 on AMD.
    pub event: u16,
    /// Unit mask; bits 15:8 go to UMASK2.
    pub umask: u16,
    /// Address of the extra MSR that [`Event::msr_value`] goes to.
    pub msr: Option<u32>,
}

/// Whether an event can be, or must be, counted with PEBS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precise {
    /// Not with PEBS. On AMD: not told.
    #[default]
    No,
    /// With or without.
    Capable,
    /// Means something only with PEBS.
    Only,
}

/// One event of a processor's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'t> {
    /// Name as the vendor or the kernel spells it.
    pub name: &'t str,
    /// The first [`Self::way_count`] are meant; see [`Self::ways`].
    pub way_slots: [Way; MAX_WAYS],
    /// 1 to [`MAX_WAYS`].
    pub way_count: u8,
    /// Counter mask: 0, or count cycles with at least so many occurrences.
    pub cmask: u8,
    /// Fewer than the counter mask instead of at least.
    pub invert: bool,
    /// Count rising edges.
    pub edge: bool,
    /// Count for both hyper-threads of the core.
    pub any_thread: bool,
    /// Bit mask of general-purpose counters, with hyper-threading off. 0: fixed counter only.
    pub counters: u32,
    /// The fixed counter that counts this; the ways then hold a code that is never programmed.
    pub fixed: Option<u8>,
    /// Value for the extra MSR of the way chosen.
    pub msr_value: u64,
    /// PEBS.
    pub precise: Precise,
    /// A PEBS record holds the address of the data.
    pub data_address: bool,
    /// No other general-purpose counter may count meanwhile.
    pub taken_alone: bool,
    /// The vendor wants another name to be used.
    pub deprecated: bool,
    /// Errata ids joined by a bar; empty: none known.
    pub errata: &'t str,
    /// The sources do not agree on its code, see `data/doubts.csv`.
    pub doubtful: bool,
}

impl Event<'_> {
    /// The ways to program it, the preferred one first. Never empty.
    #[must_use]
    pub fn ways(&self) -> &[Way] {
        &self.way_slots[..usize::from(self.way_count).clamp(1, MAX_WAYS)]
    }

    /// Whether this is AMD's large-increment event, which needs two counters.
    ///
    /// PPR for family 17h, "Large Increment per Cycle Events": PMCx003 adds more than 15 a cycle.
    #[must_use]
    pub fn is_amd_large_increment(&self) -> bool {
        self.ways()[0].event == AMD_LARGE_INCREMENT_EVENT && self.counters == 0x15
    }
}
