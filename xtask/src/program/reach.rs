//! What functions reach, as far as that can be told from their code: by calls, jumps, and the addresses that they take.
//!
//! Of what is reached, nothing may be undefined, thread-local or a system call. A linker works by whole sections, in which a
//! function of ten instructions may stand next to one that needs a C library; so this looks at single functions. What is
//! called through memory that is not constant is not found: there a call of nothing ends the item as a fault at address 0.

use super::error::{FileError, Missing, ProgramError};
use super::image::File;
use super::indirect;
use super::names::demangled;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolKind};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Relocation types: x86-64 psABI, table 4.9 and those of thread-local storage.
const PC_RELATIVE: [u32; 4] = [2, 4, 24, 26];
/// Through the global offset table, whose entry holds the symbol's address.
const THROUGH_TABLE: [u32; 4] = [9, 27, 41, 42];
const THREAD_LOCAL: [u32; 10] = [16, 17, 18, 19, 20, 21, 22, 23, 34, 35];
/// Where gcc and clang keep the stack protector's canary, relative to FS.
const CANARY: u64 = 0x28;
/// Most undefined symbols that are named.
const NAMED: usize = 10;

/// Where a relocation leads.
struct Relocation {
    kind: u32,
    /// The symbol's name, if it has one.
    name: Option<String>,
    /// Its address; `None`: nobody defines it.
    address: Option<u64>,
    weak: bool,
    addend: i64,
}

/// A symbol's place.
struct Symbol {
    start: u64,
    end: u64,
    name: String,
}

/// A linked file, made ready to be walked through.
struct Walk<'a> {
    /// Executable memory and its bytes.
    code: Vec<(u64, &'a [u8])>,
    symbols: Vec<Symbol>,
    relocations: BTreeMap<u64, Relocation>,
    /// Slots of indirect functions, with what chooses them.
    slots: BTreeMap<u64, u64>,
    seen: HashSet<u64>,
    seen_data: HashSet<u64>,
    /// Code that is still to be looked at.
    left: Vec<u64>,
    missing: Vec<Missing>,
}

/// Looks at everything that code at `entries` reaches.
///
/// # Errors
/// What it must not.
pub(super) fn check(file: &File, path: &Path, entries: &[u64]) -> Result<(), ProgramError> {
    let mut walk = Walk::new(file, path)?;
    walk.left.extend(entries);
    while let Some(at) = walk.left.pop() {
        walk.block(at)?;
    }
    walk.missing.dedup();
    walk.missing.truncate(NAMED);
    if walk.missing.is_empty() { Ok(()) } else { Err(ProgramError::Undefined(walk.missing)) }
}

impl<'a> Walk<'a> {
    fn new(file: &File<'a>, path: &Path) -> Result<Self, ProgramError> {
        let damaged = FileError::damaged(path);
        let mut code = Vec::new();
        for segment in object::Object::segments(&file.elf) {
            use object::ObjectSegment;
            if segment.permissions().executable() {
                let at = segment.address().wrapping_add(file.bias);
                code.push((at, segment.data().map_err(&damaged)?));
            }
        }
        let mut relocations = BTreeMap::new();
        for section in file.elf.sections().filter(|section| section.address() != 0) {
            for (at, relocation) in section.relocations() {
                let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
                let RelocationTarget::Symbol(index) = relocation.target() else { continue };
                let symbol = file.elf.symbol_by_index(index).map_err(&damaged)?;
                let name = symbol.name().ok().filter(|name| !name.is_empty()).map(str::to_string);
                let address =
                    (!symbol.is_undefined()).then(|| symbol.address().wrapping_add(file.bias));
                let (kind, weak, addend) = (r_type.0, symbol.is_weak(), relocation.addend());
                let one = Relocation { kind, name, address, weak, addend };
                relocations.insert(at.wrapping_add(file.bias), one);
            }
        }
        let named = file.elf.symbols().filter(|symbol| {
            let kinds =
                [SymbolKind::Text, SymbolKind::Data, SymbolKind::Label, SymbolKind::Unknown];
            !symbol.is_undefined() && kinds.contains(&symbol.kind())
        });
        let mut symbols: Vec<Symbol> = named
            .map(|symbol| {
                let start = symbol.address().wrapping_add(file.bias);
                let name = symbol.name().unwrap_or_default().to_string();
                Symbol { start, end: start.saturating_add(symbol.size()), name }
            })
            .collect();
        symbols.sort_by(|a, b| (a.start, b.end).cmp(&(b.start, a.end)));
        let slots = indirect::slots(file, path)?;
        let (seen, seen_data, left, missing) = Default::default();
        Ok(Self { code, symbols, relocations, slots, seen, seen_data, left, missing })
    }

    /// The symbol that `at` is in.
    fn symbol(&self, at: u64) -> Option<&Symbol> {
        let behind = self.symbols.partition_point(|symbol| symbol.start <= at);
        let before = self.symbols[..behind].iter().rev();
        // Symbols without a size are labels, and reach to the next one.
        before.take(8).find(|symbol| at < symbol.end || symbol.end == symbol.start)
    }

    fn function(&self, at: u64) -> String {
        let name = self.symbol(at).map(|symbol| demangled(&symbol.name).into_owned());
        name.unwrap_or_else(|| format!("{at:#x}"))
    }

    fn code(&self, at: u64) -> Option<&'a [u8]> {
        let (start, bytes) = self
            .code
            .iter()
            .find(|(start, bytes)| (*start..start + bytes.len() as u64).contains(&at))?;
        bytes.get((at - start) as usize..)
    }

    /// Follows code from `at` to where it certainly goes elsewhere.
    fn block(&mut self, at: u64) -> Result<(), ProgramError> {
        let Some(bytes) = self.code(at) else { return Ok(()) };
        let end = self.symbol(at).filter(|symbol| symbol.end > at).map_or(u64::MAX, |one| one.end);
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() && decoder.ip() < end && self.seen.insert(decoder.ip()) {
            decoder.decode_out(&mut instruction);
            self.instruction(&instruction)?;
            let flow = instruction.flow_control();
            if instruction.is_invalid()
                || matches!(
                    flow,
                    FlowControl::Return
                        | FlowControl::UnconditionalBranch
                        | FlowControl::IndirectBranch
                        | FlowControl::Exception
                )
            {
                break;
            }
        }
        Ok(())
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<(), ProgramError> {
        let (at, next) = (instruction.ip(), instruction.next_ip());
        let call = match instruction.code() {
            Code::Syscall => Some("syscall"),
            Code::Sysenter => Some("sysenter"),
            Code::Int_imm8 => Some("int"),
            _ => None,
        };
        if let Some(mnemonic) = call {
            let number = instruction.immediate8();
            let instruction = match mnemonic {
                "int" => format!("int {number:#x}"),
                _ => mnemonic.to_string(),
            };
            return Err(ProgramError::SystemCall {
                function: self.function(at),
                instruction,
                address: at,
            });
        }
        let uses_memory = instruction.op_kinds().any(|kind| kind == OpKind::Memory);
        if uses_memory
            && instruction.memory_segment() == Register::FS
            && instruction.mnemonic() != Mnemonic::Lea
        {
            let canary = instruction.memory_displacement64() == CANARY;
            let name =
                canary.then(|| "the stack protector's canary: -fno-stack-protector".to_string());
            return Err(ProgramError::ThreadLocal { name, function: self.function(at) });
        }
        let is_fixed = uses_memory
            && (instruction.is_ip_rel_memory_operand()
                || instruction.memory_base() == Register::None
                    && instruction.memory_index() == Register::None);
        let slot = is_fixed.then(|| self.slots.get(&instruction.memory_displacement64())).flatten();
        if let Some(&chooser) = slot {
            return Err(ProgramError::Reached { name: self.function(chooser) });
        }
        let places: Vec<u64> = self.relocations.range(at..next).map(|(place, _)| *place).collect();
        for place in places {
            self.relocation(place, next - place, at)?;
        }
        for kind in 0..instruction.op_count() {
            match instruction.op_kind(kind) {
                OpKind::NearBranch64 => self.left.push(instruction.near_branch_target()),
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                    self.address(instruction.immediate(kind));
                }
                OpKind::Memory if instruction.is_ip_rel_memory_operand() => {
                    self.address(instruction.ip_rel_memory_address());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// An address that code has: that of a function, perhaps.
    fn address(&mut self, at: u64) {
        if self.code(at).is_some() && self.symbol(at).is_some_and(|symbol| symbol.start == at) {
            self.left.push(at);
        }
    }

    /// Follows the relocation at `place`; `base` is what a relative one counts from, from `place` on, and `user` who has it.
    fn relocation(&mut self, place: u64, base: u64, user: u64) -> Result<(), ProgramError> {
        let one = &self.relocations[&place];
        if THREAD_LOCAL.contains(&one.kind) {
            let name = one.name.as_deref().map(|name| demangled(name).into_owned());
            return Err(ProgramError::ThreadLocal { name, function: self.function(user) });
        }
        let Some(address) = one.address else {
            if let (false, Some(name)) = (one.weak, &one.name) {
                let name = demangled(name).into_owned();
                if !self.missing.iter().any(|missing| missing.name == name) {
                    let by = self.function(user);
                    self.missing.push(Missing { name, by });
                }
            }
            return Ok(());
        };
        let target = match one.kind {
            kind if THROUGH_TABLE.contains(&kind) => address,
            kind if PC_RELATIVE.contains(&kind) => {
                address.wrapping_add_signed(one.addend).wrapping_add(base)
            }
            _ => address.wrapping_add_signed(one.addend),
        };
        if self.code(target).is_some() {
            self.left.push(target);
            return Ok(());
        }
        self.data(target)
    }

    /// Follows the addresses in a piece of data: a table of functions or of a switch's cases.
    fn data(&mut self, at: u64) -> Result<(), ProgramError> {
        if !self.seen_data.insert(at) {
            return Ok(());
        }
        let whole =
            self.symbol(at).filter(|symbol| symbol.end > at).map(|one| (one.start, one.end));
        let places: Vec<u64> = match whole {
            Some((start, end)) => {
                self.seen_data.insert(start);
                self.relocations.range(start..end).map(|(place, _)| *place).collect()
            }
            // A table without a name: as long as each entry has an address.
            None => {
                let behind = self.relocations.range(at..).map(|(place, _)| *place);
                let mut next = at;
                behind
                    .take_while(|place| {
                        let follows = *place == next || *place == next + 4;
                        next = place + 4;
                        follows
                    })
                    .collect()
            }
        };
        for place in places {
            // Relative entries count from the table.
            self.relocation(place, at.wrapping_sub(place), at)?;
        }
        Ok(())
    }
}
