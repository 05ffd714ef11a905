//! `events`: its arguments.

use crate::events::encodings::{Msr, Number};
use crate::events::{CpuName, EventFile};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `events`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask events --cpu skylakex l2_rqsts              names with this part, spelling forgiven
  cargo xtask events --cpu 6.0x5e 'mem_*_retired.l3_*'    wild cards for the whole name
  cargo xtask events --cpu zen4 ls_dispatch.ld_dispatch:u=1:c=1
                                                          what an event's registers take
  cargo xtask events --cpu skx 'cycles,{l2_rqsts.*_miss:u}'
                                                          the same for a list, groups in braces
  cargo xtask events --cpu alderlake --plan cycles,branches,l2_rqsts.miss
                                                          the passes and counters of a set
  cargo xtask events --cpu skylakex --decode 0x4300c0     what a register stands for
  cargo xtask events --cpu zen4 --metrics bound           metrics with this part in their names
  cargo xtask events --generic                            the same names on every processor")]
pub struct Events {
    /// A part of a name, a name with wild cards, or events with modifiers, several with commas or in braces; without it,
    /// all events, generic ones first.
    pub pattern: Option<String>,
    /// The processor: a table's name or another of its names (skx, alderlake), FAMILY.MODEL or FAMILY.MODEL.STEPPING;
    /// without it, the one that the events name (skx::cycles), or this machine's.
    #[arg(long, value_name = "NAME|FAMILY.MODEL")]
    pub cpu: Option<CpuName>,
    /// List the events that have one name and number on every processor, and what they are on this one.
    #[arg(long)]
    pub generic: bool,
    /// Tell whether these events fit into one pass, or into how many, and which counter each gets; hyper-threading off.
    #[arg(long, value_name = "EVENTS", conflicts_with_all = ["pattern", "generic"])]
    pub plan: Option<String>,
    /// With --plan: there are this many general-purpose counters, such as 4 with hyper-threading on before Ice Lake.
    #[arg(long, value_name = "N", requires = "plan", value_parser = clap::value_parser!(u8).range(1..=48))]
    pub counters: Option<u8>,
    /// Tell what an event select register with this value counts.
    #[arg(long, value_name = "VALUE", conflicts_with_all = ["pattern", "generic", "plan"])]
    pub decode: Option<Number>,
    /// With --decode: what an extra MSR holds.
    #[arg(long, value_name = "ADDRESS=VALUE", requires = "decode")]
    pub msr: Vec<Msr>,
    /// List the metrics of the processor, or those whose name has PATTERN as a part.
    #[arg(long, conflicts_with_all = ["generic", "plan", "decode"])]
    pub metrics: bool,
    /// List the processors that have a table.
    #[arg(long, conflicts_with_all = ["pattern", "generic", "decode", "plan", "cpu", "metrics"])]
    pub cpus: bool,
    /// Events in perfmon's JSON form, merged over the tables.
    #[arg(long = "event-file", value_name = "[CPU=]FILE")]
    pub event_files: Vec<EventFile>,
    /// The list's form.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// Write it to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Form of a list.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum ListFormat {
    /// For people.
    #[default]
    Table,
    /// One document.
    Json,
    /// One row per line.
    Csv,
}
