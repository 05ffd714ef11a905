//! Instruction forms in a job file.

use super::SnippetFile;
use super::lines::Text;
use super::raw::{RawOptions, RawSnippet};
use super::snippet::decide;
use crate::cli::Shard;
use crate::events::EventText;
use crate::job::form::catalog::Selection;
use crate::job::form::{Form, Wanted};
use crate::job::schema::Width;
use crate::limits::LimitTable;
use protocol::bits::Bits;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

/// Instruction forms, each with latency and throughput.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Characterise")]
#[schemars(extend("anyOf" = [{ "required": ["forms"] }, { "required": ["all"] }]))]
pub(crate) struct RawForms {
    /// The forms, such as `imul r64, r64`. Either these or `all`.
    #[serde(default)]
    forms: Vec<Form>,
    /// In place of `forms`: all forms that the instruction decoder knows and that can be measured.
    #[serde(default)]
    all: bool,
    /// With `all`: only forms of these extensions, such as `AVX2`. Default: of every one.
    #[serde(default)]
    extensions: Vec<String>,
    /// With `all`: only this part of them, such as `3/16`, the fourth of 16. Default: all.
    shard: Option<Shard>,
    /// The ports of their micro-operations, too: by events of the ports where the processor has them, else by throughput as far as that tells. Takes an item for each form and each of 13 blocking instructions. Default: false.
    #[serde(default)]
    ports: bool,
    /// 64, or 32 for forms of 32-bit code (compatibility mode). Default: 64.
    #[schemars(with = "Option<Width>")]
    bits: Option<Bits>,
    unroll: Option<u32>,
    warmup: Option<u32>,
    runs: Option<u32>,
    events: Option<Vec<EventText>>,
    values: Option<bool>,
    allow_uncounted: Option<bool>,
    limits: Option<LimitTable>,
}

impl RawForms {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.forms.len()
    }

    /// Forms are listed, or are all that there are.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let selects = !self.extensions.is_empty() || self.shard.is_some();
        match (self.all, self.forms.is_empty()) {
            (true, false) => Err("[[characterise]] has either forms or all"),
            (false, true) => {
                Err("[[characterise]] has no forms; `all = true` takes all that there are")
            }
            (false, false) if selects => Err("extensions and shard select from all = true"),
            _ => Ok(()),
        }
    }
}

/// A snippet has code, or forms whose code and name are made.
pub(super) fn check_code(raw: &RawSnippet, function: bool) -> Result<(), &'static str> {
    let forms = raw.latency.is_some() || raw.throughput.is_some();
    let own = [&raw.one_time_init, &raw.init, &raw.late_init].iter().any(|code| code.is_some());
    if function {
        return match (raw.asm.is_some() || forms, own || raw.syntax.is_some()) {
            (true, _) => Err("a snippet has either code or a function of object"),
            (_, true) => {
                Err("a function has no init code; setup names a function that runs before it")
            }
            _ => Ok(()),
        };
    }
    match (raw.asm.is_some(), forms) {
        (true, true) => Err("a snippet has either asm, or latency and throughput"),
        (false, false) => {
            Err("missing field `asm` (or object and function, or latency, or throughput)")
        }
        (false, true) if own || raw.syntax.is_some() => {
            Err("latency and throughput make their own code, init code too")
        }
        (false, true) if raw.name.is_some() => {
            Err("what latency and throughput measure is named after the form")
        }
        _ => Ok(()),
    }
}

/// Options of forms are those of a snippet that has none of its own but these.
pub(super) fn characterise(
    spanned: Spanned<RawForms>,
    defaults: &RawOptions,
    text: &Text,
) -> SnippetFile {
    let span = spanned.span();
    let raw = spanned.into_inner();
    let selection = Selection { extensions: raw.extensions, shard: raw.shard.unwrap_or_default() };
    let catalog = raw.all.then_some(selection);
    let wanted = Wanted {
        latency: raw.forms.clone(),
        throughput: raw.forms,
        lenient: true,
        catalog,
        ports: raw.ports,
    };
    let options = RawSnippet {
        bits: raw.bits,
        unroll: raw.unroll,
        warmup: raw.warmup,
        runs: raw.runs,
        events: raw.events,
        values: raw.values,
        allow_uncounted: raw.allow_uncounted,
        limits: raw.limits,
        ..RawSnippet::default()
    };
    SnippetFile {
        wanted: Some(wanted),
        ..decide(Spanned::new(span, options), None, defaults, text)
    }
}
