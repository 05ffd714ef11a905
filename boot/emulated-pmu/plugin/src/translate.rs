//! A block is translated.

use crate::apply::apply;
use crate::calls::called;
use crate::decode::{Raw, decode};
use crate::facts::Facts;
use crate::fetch;
use crate::plan::plan;
use crate::qemu::{self, Block, Id, Insn, Registers, api};
use crate::running::{is_counted, running};
use crate::state::state;
use crate::translator::Translator;
use crate::uops;
use crate::window;
use core::ffi::c_void;
use core::ptr::from_ref;
use iced_x86::Instruction;
use plugin_channel::{Mode, Parts};

/// QEMU calls this for each block that it translates.
pub extern "C" fn translated(_: Id, block: Block) {
    let translator = &mut *state().translator();
    let insns: Vec<Insn> = qemu::instructions(block).collect();
    let raw: Vec<Raw> = insns.iter().map(|insn| of(*insn)).collect();
    for (insn, raw) in insns.iter().zip(&raw) {
        call(translator, *insn, &raw.bytes);
    }
    let is_own = insns.first().is_some_and(|first| translator.is_own(host(*first)));
    if is_own || translator.mode.is_empty() || !is_counted() {
        return;
    }
    let legacy = running().is_some_and(|vcpu| vcpu.parts.contains(Parts::LEGACY));
    let decoded = decode(&raw, legacy);
    let facts = decoded.iter().zip(&raw).map(|(instruction, raw)| match instruction {
        Some(instruction) => Facts::of(&mut translator.factory, instruction),
        None => Facts::invalid(raw.linear, raw.bytes.len()),
    });
    let mut facts: Vec<Facts> = facts.collect();
    if let Some(map) = translator.ports.filter(|_| translator.mode.contains(Mode::PORTS)) {
        uops::dispatch(&map, &decoded, &mut facts);
    }
    if translator.mode.contains(Mode::QUALIFIED) {
        let qualifier = translator.qualifier;
        let takes = |one: &Instruction| qualifier.takes(one.ip(), one.mnemonic() as u16);
        for (instruction, facts) in decoded.iter().zip(&mut facts) {
            if instruction.as_ref().is_some_and(takes) {
                facts.pass(qualifier.checks_data());
            }
        }
    }
    let plan = plan(&facts, translator.mode);
    apply(translator, block, &insns, &decoded, &facts, &plan);
    if let Some(line) = translator.code_line.filter(|_| translator.mode.contains(Mode::MEMORY)) {
        let places: Vec<(u64, u64)> = insns
            .iter()
            .zip(&raw)
            .map(|(insn, raw)| (host(*insn), raw.bytes.len() as u64))
            .collect();
        for (index, line) in fetch::lines(&places, line) {
            // SAFETY: the instruction is of the block that is being translated; the callback takes a number.
            unsafe {
                (api().before)(insns[index], fetch::fetched, Registers::None, line as *mut c_void);
            }
        }
    }
    if translator.direct && translator.mode.contains(Mode::MEMORY) {
        for (insn, _) in insns.iter().zip(&facts).filter(|(_, facts)| facts.is_direct()) {
            let place = host(*insn);
            if place != 0 {
                // SAFETY: as above.
                unsafe {
                    (api().before)(*insn, fetch::jumped, Registers::None, place as *mut c_void);
                }
            }
        }
    }
    if translator.front && translator.mode.contains(Mode::PORTS) {
        for (insn, raw) in insns.iter().zip(&raw) {
            let place = host(*insn);
            if place != 0 {
                let one = fetch::instruction(place, raw.bytes.len() as u64);
                // SAFETY: as above.
                unsafe {
                    (api().before)(*insn, fetch::delivered, Registers::None, one as *mut c_void);
                }
            }
        }
    }
    if translator.window && translator.mode.contains(Mode::MEMORY) {
        for (insn, instruction) in insns.iter().zip(&decoded) {
            let instruction = instruction.unwrap_or_default();
            let step = step::window(&mut translator.factory, &instruction).word();
            // After what notes the accesses of the instruction before.
            // SAFETY: as above.
            unsafe {
                (api().before)(*insn, window::begun, Registers::None, step as *mut c_void);
            }
        }
    }
}

fn of(insn: Insn) -> Raw {
    // SAFETY: the instruction is of the block that is being translated.
    let linear = unsafe { (api().linear)(insn) };
    Raw { linear, bytes: qemu::bytes(insn) }
}

fn host(insn: Insn) -> u64 {
    // SAFETY: as above.
    unsafe { (api().host)(insn) as u64 }
}

/// A call of the hypervisor's, if it is one. What executes it may still be somebody else.
fn call(translator: &mut Translator, insn: Insn, bytes: &[u8]) {
    let Some(command) = plugin_channel::command(bytes) else { return };
    let host = host(insn);
    if host != 0 {
        let data = from_ref(translator.calls.get((host, command))).cast_mut().cast();
        // SAFETY: the callback takes such a pair, which stays.
        unsafe { (api().before)(insn, called, Registers::None, data) };
    }
}
