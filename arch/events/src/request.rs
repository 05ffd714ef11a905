//! What a user requests, before any processor is known.

use alloc::string::String;
use alloc::vec::Vec;

/// One event as it was requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The text that requested it.
    pub text: String,
    /// Where that text starts, in bytes from the beginning of the list.
    pub at: usize,
    /// Which cores it is meant for: the name of a PMU (`cpu`, `cpu_core`, `cpu_atom`) or of a
    /// table.
    pub pmu: Option<Pmu>,
    /// What to count.
    pub base: Base,
    /// How to count it.
    pub attributes: Attributes,
}

/// The cores that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// The name as written.
    pub name: String,
    /// Where it starts in the list.
    pub at: usize,
}

/// What to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// A name, in pieces that colons separated. The last pieces may be modifiers or unit masks:
    /// only the processor's table can tell.
    Name(Vec<NamePart>),
    /// `cpu/event=…,umask=…/`, or a line of nanoBench.
    Code {
        /// Event.
        event: u64,
        /// Unit mask, UMASK2 above it.
        umask: u64,
    },
    /// `rNNN`: perf's raw form.
    Raw(u64),
    /// A function word in the form of OpenBSD's pctr(4): the register's value as it is.
    Word(u64),
    /// `fixedN`.
    Fixed(u8),
}

impl Default for Base {
    fn default() -> Self {
        Self::Name(Vec::new())
    }
}

/// A piece of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePart {
    /// Its text.
    pub text: String,
    /// Where it starts in the list.
    pub at: usize,
}

/// How to count. `None`: as the event says, or both modes for user and kernel.
///
/// Numbers are kept as they were written; whether they fit is the encoder's question, which can
/// name the processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// At CPL above 0.
    pub user: Option<bool>,
    /// At CPL 0.
    pub kernel: Option<bool>,
    /// 0 to 3: not precise, constant skid, no skid requested, precise distribution.
    pub precise: Option<u8>,
    /// Instead of the event's own unit mask.
    pub umask: Option<u64>,
    /// Counter mask.
    pub cmask: Option<u64>,
    /// Invert the comparison with the counter mask.
    pub invert: Option<bool>,
    /// Count rising edges.
    pub edge: Option<bool>,
    /// Count for both hyper-threads.
    pub any_thread: Option<bool>,
    /// Compare for equality with the counter mask.
    pub equal: Option<bool>,
    /// Pin control.
    pub pin_control: Option<bool>,
    /// Only inside transactions.
    pub in_tx: Option<bool>,
    /// Without what aborted transactions counted.
    pub in_tx_checkpointed: Option<bool>,
    /// Offcore response selection; any of its MSRs will do.
    pub offcore_rsp: Option<u64>,
    /// The same, for one of its MSRs: 0 or 1.
    pub offcore_rsp_at: Option<(u8, u64)>,
    /// Snoop response selection.
    pub snoop_rsp: Option<u64>,
    /// Load-latency threshold in cycles.
    pub load_latency: Option<u64>,
    /// Not its count, but the mean retire latency of its records, of which each so-many-th event makes one; 0: whoever samples
    /// chooses.
    pub retire_latency: Option<u64>,
    /// Front-end filter.
    pub frontend: Option<u64>,
    /// perf's config1: the value of whatever extra MSR the event looks at.
    pub config1: Option<u64>,
    /// This general-purpose counter and no other.
    pub counter: Option<u64>,
    /// No other general-purpose counter may count meanwhile.
    pub taken_alone: Option<bool>,
    /// What to call the result.
    pub label: Option<String>,
}

impl Attributes {
    /// Takes from `outer` what is not set here: the modifiers of a group, for its members. A mode
    /// written at the member replaces the group's modes altogether.
    pub fn inherit(&mut self, outer: &Self) {
        if self.user.is_none() && self.kernel.is_none() {
            (self.user, self.kernel) = (outer.user, outer.kernel);
        }
        macro_rules! inherit {
            ($($field:ident),*) => {
                $(if self.$field.is_none() {
                    self.$field.clone_from(&outer.$field);
                })*
            };
        }
        inherit!(
            precise,
            umask,
            cmask,
            invert,
            edge,
            any_thread,
            equal,
            pin_control,
            in_tx,
            in_tx_checkpointed,
            offcore_rsp,
            offcore_rsp_at,
            snoop_rsp,
            load_latency,
            retire_latency,
            frontend,
            config1,
            counter,
            taken_alone,
            label
        );
    }
}

/// One place of a list: an event, or several that must be counted together, as `{a,b}` asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its events, at least one. More than one: at the same time or not at all.
    pub requests: Vec<Request>,
}
