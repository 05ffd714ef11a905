//! The keys of a task, as written.

use crate::job::affinity::RawAffinity;
use crate::job::assemble::Syntax;
use crate::job::function::{Argument, RawFiles, RawFunction};
use crate::job::schema::{AffinityText, FilesText, RingText, Width};
use protocol::bits::Bits;
use protocol::core_kind::CoreKind;
use protocol::job::workload::Ring;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

/// A task.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Task")]
pub(in crate::job) struct RawTask {
    /// Its name.
    #[schemars(with = "String")]
    pub(super) name: Spanned<String>,
    /// The body, which runs again and again.
    #[schemars(with = "Option<String>")]
    pub(super) asm: Option<Spanned<String>>,
    #[schemars(with = "Option<FilesText>")]
    pub(super) object: Option<RawFiles>,
    pub(super) function: Option<String>,
    pub(super) args: Option<Vec<Argument>>,
    pub(super) setup: Option<String>,
    pub(super) teardown: Option<String>,
    /// Code that runs once, before the body.
    #[schemars(with = "Option<String>")]
    pub(super) init: Option<Spanned<String>>,
    pub(super) syntax: Option<Syntax>,
    /// How often the body runs. Default: 0, until it exits by itself.
    #[serde(default)]
    pub(super) turns: u64,
    /// 0 or 3. Default: 0.
    #[serde(default)]
    #[schemars(with = "Option<RingText>")]
    pub(super) ring: RawRing,
    /// The task that starts it, and that exits after it.
    #[schemars(with = "Option<String>")]
    pub(super) parent: Option<Spanned<String>>,
    /// Whether its parent may exit before it. Default: false.
    #[serde(default)]
    pub(super) outlives: bool,
    /// The processor that it runs on. Default: the first.
    pub(super) cpu: Option<u16>,
    /// The processors that it may run on, between which it then moves: `"any"`, or their numbers. It begins on the first.
    /// Default: those of its parent, or `cpu`.
    #[schemars(with = "Option<AffinityText>")]
    pub(super) cpus: Option<Spanned<RawAffinity>>,
    /// The kind of core that it runs on, among whose processors `cpu` is then counted.
    pub(super) core: Option<CoreKind>,
    /// Whether x87, SSE and AVX state is switched with it. Default: if its code uses it.
    pub(super) extended: Option<bool>,
    #[schemars(with = "Option<Width>")]
    pub(super) bits: Option<Bits>,
}

/// `ring = 0` or `ring = 3`.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(try_from = "u64")]
pub(super) struct RawRing(pub(super) Ring);

impl TryFrom<u64> for RawRing {
    type Error = String;

    fn try_from(ring: u64) -> Result<Self, String> {
        match ring {
            0 => Ok(Self(Ring::Kernel)),
            3 => Ok(Self(Ring::User)),
            _ => Err(format!("ring is {ring}; tasks run in ring 0 or in ring 3")),
        }
    }
}

impl RawTask {
    /// Takes out what it says of a function.
    pub(super) fn function(&mut self) -> RawFunction {
        RawFunction {
            object: self.object.take(),
            function: self.function.take(),
            args: self.args.take(),
            setup: self.setup.take(),
            teardown: self.teardown.take(),
        }
    }
}
