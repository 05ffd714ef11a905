//! What of a recorded processor is not known from its recording.

use super::Recording;
use super::shape::{leaf_23, main_23};
use crate::model::LbrKind;
use core::fmt::Arguments;

/// Leaf 1 EDX: the DS area.
const DS: u32 = 1 << 21;

impl Recording {
    /// Says each thing that was inferred, or that is in the recording and not shown.
    pub fn inferred(&self, mut each: impl FnMut(Arguments)) {
        let (spec, leaves, name) = (&self.spec, self.leaves(), self.nearest.spec().name);
        each(format_args!("how counters, freezes and interrupts behave: as those of {name}"));
        match (self.own, spec.intel()) {
            (true, _) => each(format_args!("events: those of {name}")),
            (false, Some(_)) => each(format_args!(
                "events: the architectural ones; those of its microarchitecture count nothing"
            )),
            (false, None) => each(format_args!(
                "events: cycles, instructions, branches and mispredicted branches; all others count nothing"
            )),
        }
        each(format_args!(
            "bits of the event selects that can be written: {:#x}",
            spec.selector_mask
        ));
        if let Some(intel) = spec.intel() {
            if intel.capabilities != 0 {
                let value = intel.capabilities;
                each(format_args!("IA32_PERF_CAPABILITIES: {value:#x}, after {name}"));
            }
            let told = leaves.of(0xA, 0)[0] >> 8 & 0xFF;
            if leaf_23(&leaves)[0] & 1 << 1 == 0 && intel.counters.count_ones() != told {
                let (count, fixed) = (intel.counters.count_ones(), intel.fixed.count_ones());
                each(format_args!(
                    "{count} counters and {fixed} fixed ones, as {name} has them: leaf 0xA tells what both kinds of core share"
                ));
            }
            if intel.version > 6 {
                each(format_args!("version {}: behaves as version 6", intel.version));
            }
            if super::shape::is_sandy_bridge(&leaves) && intel.pebs.is_some() {
                each(format_args!("PEBS: format 1 with precise stores, as Sandy Bridge has it"));
            }
            if intel.pebs.is_none() && leaves.answer(1, 0)[3] & DS != 0 {
                each(format_args!("PEBS: not offered"));
            }
            if let Some(facts) = intel.arch_pebs() {
                let hidden = leaves.answer(0x23, 4)[1] & !facts.groups;
                if hidden != 0 {
                    each(format_args!("groups of architectural PEBS: {hidden:#x} not offered"));
                }
                if !self.own {
                    each(format_args!("precise events: fixed counter 0 alone"));
                }
            }
            let shown = if intel.arch_pebs().is_some() { "1, 3, 4 and 5" } else { "1 and 3" };
            if leaf_23(&leaves)[0] & !main_23(intel) != 0 {
                each(format_args!("sub-leaves of leaf 0x23 beyond {shown}: not shown"));
            }
        }
        match spec.lbr {
            LbrKind::None => each(format_args!("branch records: none, as their kind is unknown")),
            LbrKind::Legacy(_) | LbrKind::AmdSingle => {
                each(format_args!("branch records: those of {name}"));
            }
            LbrKind::Arch(_) | LbrKind::AmdV2 { .. } => {}
        }
        if let (Some(amd), LbrKind::AmdSingle) = (spec.amd(), spec.lbr)
            && amd.v2
        {
            each(format_args!("LBRv2: not offered"));
        }
        if let Some(amd) = spec.amd() {
            let hidden = leaves.of(0x8000_001B, 0)[0] & !amd.ibs;
            match (amd.ibs, hidden) {
                (_, 0) => {}
                (0, _) => each(format_args!("IBS: not offered")),
                (_, bits) => each(format_args!("features of IBS: {bits:#x} not offered")),
            }
        }
        each(format_args!(
            "the clock's leaves (0x15, 0x16), and features that QEMU's translator lacks: not shown"
        ));
    }
}
