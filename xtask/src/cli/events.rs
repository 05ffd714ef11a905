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
  cargo xtask events --cpu skylakex --decode 0x4300c0     what a register stands for
  cargo xtask events --generic                            the same names on every processor")]
pub struct Events {
    /// A part of a name, a name with wild cards, or an event with modifiers; without it, all events.
    pub pattern: Option<String>,
    /// The processor: a table's name, FAMILY.MODEL or FAMILY.MODEL.STEPPING; without it, this machine's.
    #[arg(long, value_name = "NAME|FAMILY.MODEL")]
    pub cpu: Option<CpuName>,
    /// List the events that have one name and number on every processor, and what they are on this one.
    #[arg(long)]
    pub generic: bool,
    /// Tell what an event select register with this value counts.
    #[arg(long, value_name = "VALUE", conflicts_with_all = ["pattern", "generic"])]
    pub decode: Option<Number>,
    /// With --decode: what an extra MSR holds.
    #[arg(long, value_name = "ADDRESS=VALUE", requires = "decode")]
    pub msr: Vec<Msr>,
    /// List the processors that have a table.
    #[arg(long, conflicts_with_all = ["pattern", "generic", "decode", "cpu"])]
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
