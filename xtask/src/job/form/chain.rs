//! Latency: chains in which each instruction of a form waits for the one before, one chain for each pair of a source and
//! a destination.
//!
//! Which results depend on which sources iced-x86 does not say; each is taken to depend on each, which holds for all but
//! a few instructions (XCHG is one).

use super::effects::{Access, Effects};
use super::registers::{Free, Kind, Reg};
use super::text::Operand;
use super::way::{self, End, Way};
use super::{Case, Form, case, stack, start, vsib};

/// Why PUSH and the like have no latency here.
pub const HIDDEN: &str = "it accesses memory that no operand names";

/// A source or a destination.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Operand(usize),
    Address,
    Memory,
    Implicit(Reg),
    Flags,
}

/// Code of one measurement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Made {
    /// What it measures.
    pub case: Case,
    /// Its init code.
    pub init: String,
    /// Its body.
    pub body: String,
}

/// A pair that no chain was found for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missing {
    /// From where to where.
    pub pair: String,
    /// Why.
    pub reason: String,
}

struct Chains<'a> {
    form: &'a Form,
    effects: &'a Effects,
}

/// Chains for all pairs.
pub fn latencies(form: &Form, effects: &Effects) -> Vec<Result<Made, Missing>> {
    if effects.needs_others() {
        return Vec::new();
    }
    if effects.stack.is_moved() {
        return stack::latencies(form, effects);
    }
    if form.indexed().is_some() {
        return vsib::latencies(form, effects);
    }
    if form.mnemonic == "fxch" {
        return vec![Ok(stack::exchange(form, effects))];
    }
    let chains = Chains { form, effects };
    let (sources, destinations) = chains.places();
    let pairs = destinations.iter().flat_map(|&to| sources.iter().map(move |&from| (from, to)));
    // Flags that are read and written make a chain of their own, beside which no other into them shows.
    let own = |from, to| effects.flags.both() && to == Place::Flags && from != Place::Flags;
    pairs
        .filter(|&(from, to)| !own(from, to))
        .map(|(from, to)| {
            chains.pair(from, to).map_err(|reason| {
                let pair = format!("{} -> {}", chains.name(from), chains.name(to));
                Missing { pair, reason }
            })
        })
        .collect()
}

impl Chains<'_> {
    fn access(&self, place: Place) -> Access {
        let effects = self.effects;
        match place {
            Place::Operand(index) => effects.operands[index],
            Place::Address => Access { read: true, write: false },
            Place::Memory => {
                self.form.memory().map_or_else(Access::default, |(i, _)| effects.operands[i])
            }
            Place::Implicit(reg) => {
                let found = effects.implicit.iter().find(|(other, _)| *other == reg);
                found.map_or_else(Access::default, |(_, access)| *access)
            }
            Place::Flags => effects.flags,
        }
    }

    /// Everything that an instruction of the form may read or write.
    fn all(&self) -> Vec<Place> {
        let operands = 0..self.form.operands.len();
        let registers = operands.filter(|&i| self.form.register(i).is_some()).map(Place::Operand);
        let memory = self.form.memory().map(|_| [Place::Address, Place::Memory]);
        let implicit = self.effects.implicit.iter().map(|(reg, _)| *reg);
        let implicit = implicit.filter(|reg| !reg.is_pointer(self.form.bits)).map(Place::Implicit);
        let all = registers.chain(memory.into_iter().flatten()).chain(implicit);
        all.chain([Place::Flags]).collect()
    }

    /// Sources and destinations. Flags are a destination only if there is no other: almost all instructions write them.
    fn places(&self) -> (Vec<Place>, Vec<Place>) {
        let all = self.all();
        let of = |wanted: fn(Access) -> bool| -> Vec<Place> {
            all.iter().copied().filter(|&place| wanted(self.access(place))).collect()
        };
        let (sources, mut destinations) = (of(|a| a.read), of(|a| a.write));
        let carries = self.effects.flags.both();
        if destinations.len() > 1 && !carries {
            destinations.retain(|place| *place != Place::Flags);
        }
        (sources, destinations)
    }

    fn name(&self, place: Place) -> String {
        match place {
            Place::Operand(index) if self.is_mask(index) => "mask".to_string(),
            Place::Operand(index) => (index + 1).to_string(),
            Place::Address => "address".to_string(),
            Place::Memory => "memory".to_string(),
            Place::Implicit(reg) => self.form.named(reg),
            Place::Flags => "flags".to_string(),
        }
    }

    /// The mask of EVEX, which is no operand by number.
    fn is_mask(&self, index: usize) -> bool {
        matches!(self.form.operands[index], Operand::Mask { .. })
    }

    fn pair(&self, from: Place, to: Place) -> Result<Made, String> {
        let (form, effects) = (self.form, self.effects);
        if effects.hidden_memory {
            return Err(HIDDEN.to_string());
        }
        let mut free = Free::of(form, &effects.taken());
        let none = || "no register is left".to_string();
        let renamed = self.renamed(from, to);
        // Both names of one register have to be there.
        let shares: Vec<usize> = renamed.iter().flat_map(|&(one, other)| [one, other]).collect();
        let widths = shares.iter().filter_map(|&index| form.register(index));
        let least = widths.map(|(_, bits)| bits).min().unwrap_or_default();
        let mut registers = Vec::new();
        for index in 0..form.operands.len() {
            registers.push(match form.register(index) {
                Some((kind, bits)) => {
                    let bits = if shares.contains(&index) { least } else { bits };
                    Some(free.take((kind, bits)).ok_or_else(none)?)
                }
                None => None,
            });
        }
        if let Some((source, destination)) = renamed {
            registers[source] = registers[destination];
        }
        let chases = self.chases(from, to);
        let address = match (from, chases) {
            (Place::Address, Some(destination)) => registers[destination].ok_or_else(none)?,
            (Place::Address, None) => free.take((Kind::General, form.word())).ok_or_else(none)?,
            _ => form.pointer(),
        };
        let direct = from == to || renamed.is_some() || chases.is_some();
        let end = |place| self.end(place, &registers, address);
        let way = match direct {
            true => Way::default(),
            false => way::back(form, end(to)?, end(from)?, &mut free)?,
        };
        let (breaks, breaking) = self.breaks(from, &registers, &way)?;
        let instruction = form.with(&registers, form.at(address));
        let lines = std::iter::once(instruction).chain(way.lines).chain(breaks);
        let body = lines.collect::<Vec<_>>().join("\n");
        let mut init = self.init(&registers);
        if from == Place::Address {
            init += &format!("lea {}, [{}]\n", address.name(form.word()), form.base());
            if chases.is_some() && form.mnemonic == "mov" {
                init += &format!("mov [{0}], {0}\n", form.base());
            }
        }
        let (from, to) = (self.name(from), self.name(to));
        let kind = case::Kind::Latency { from, to, back: way.forms };
        Ok(Made { case: Case { form: form.to_string(), kind, breaking }, init, body })
    }

    fn init(&self, registers: &[Option<Reg>]) -> String {
        let used = registers.iter().enumerate().filter_map(|(index, reg)| {
            let (_, bits) = self.form.register(index)?;
            Some(((*reg)?, bits))
        });
        let used: Vec<_> = used.collect();
        let lines = usize::from(self.form.memory().is_some());
        start::init(self.form, self.effects, &used, lines)
    }

    /// A source operand that can have the register of the destination: both are operands of one kind, and nothing else
    /// reads the destination's old value. One register makes no such instruction independent of its sources.
    fn renamed(&self, from: Place, to: Place) -> Option<(usize, usize)> {
        let (Place::Operand(source), Place::Operand(destination)) = (from, to) else { return None };
        let kinds = [source, destination].map(|index| self.form.register(index).map(|r| r.0));
        // Some faults where a source is the destination too, as the complex multiplications of AVX512-FP16 do.
        if self.form.encoding.is_some_and(super::encoding::Encoding::unique) {
            return None;
        }
        let fresh = !self.access(to).read && !self.access(from).write;
        (source != destination && kinds[0] == kinds[1] && fresh).then_some((source, destination))
    }

    /// A load that can bring its own address, or LEA.
    fn chases(&self, from: Place, to: Place) -> Option<usize> {
        let Place::Operand(destination) = to else { return None };
        let register = self.form.register(destination)?;
        let whole = register == (Kind::General, self.form.word());
        let takes = matches!(&*self.form.mnemonic, "mov" | "lea");
        (from == Place::Address && whole && takes).then_some(destination)
    }

    fn end(&self, place: Place, registers: &[Option<Reg>], address: Reg) -> Result<End, String> {
        Ok(match place {
            Place::Operand(index) => {
                let reg = registers[index].ok_or("it is no register")?;
                let bits = self.form.register(index).map_or(64, |register| register.1);
                End::Register(reg, bits, true)
            }
            Place::Implicit(reg) => {
                let bits = if reg.kind == Kind::Vector { 128 } else { self.form.word() };
                End::Register(reg, bits, false)
            }
            Place::Address => End::Address(address),
            Place::Memory => {
                let bits = self.form.memory().and_then(|(_, bits)| bits);
                End::Memory(bits.ok_or("the size of its memory operand is not known")?)
            }
            Place::Flags => End::Flags,
        })
    }

    /// What else an instruction of the form hands to the next one is written anew, so that only one chain is left.
    fn breaks(
        &self,
        from: Place,
        registers: &[Option<Reg>],
        way: &Way,
    ) -> Result<(Vec<String>, Vec<String>), String> {
        let others = self.all().into_iter().filter(|&place| place != from);
        let (mut lines, mut names) = (Vec::new(), Vec::new());
        for place in others {
            let access = self.access(place);
            if access.both() && self.is_of_stack(place) {
                return Err(format!("{} cannot be written anew", self.name(place)));
            }
            let line = match place {
                Place::Operand(index) if access.both() => {
                    let bits = self.form.register(index).map_or(64, |register| register.1);
                    registers[index].map(|reg| start::load(self.form, reg, bits))
                }
                Place::Implicit(reg) if access.both() => Some(start::load_implicit(self.form, reg)),
                Place::Flags if access.read && (access.write || way.writes_flags) => {
                    Some(self.form.new_flags())
                }
                _ => None,
            };
            if let Some(line) = line {
                lines.push(line);
                names.push(self.name(place));
            }
        }
        Ok((lines, names))
    }

    /// A register of the x87 stack: loads push there, they do not overwrite.
    fn is_of_stack(&self, place: Place) -> bool {
        let kind = match place {
            Place::Operand(index) => self.form.register(index).map(|(kind, _)| kind),
            Place::Implicit(reg) => Some(reg.kind),
            Place::Address | Place::Memory | Place::Flags => None,
        };
        kind == Some(Kind::X87)
    }
}

/// A chain of the form in which all operands of the destination's kind are one register. Where the processor knows that
/// the result does not depend on it (XOR, SUB, PCMPEQ of a register with itself), it is shorter than the latency.
pub fn same_register(form: &Form, effects: &Effects) -> Option<Made> {
    let chains = Chains { form, effects };
    let (destination, kind) = (0..form.operands.len())
        .filter(|&index| effects.operands[index].write)
        .find_map(|index| Some((index, form.register(index)?)))?;
    if effects.needs_others() || effects.stack.is_moved() || form.indexed().is_some() {
        return None;
    }
    let unique = form.encoding.is_some_and(super::encoding::Encoding::unique);
    let same = |index: &usize| form.register(*index) == Some(kind);
    if unique || effects.hidden_memory || (0..form.operands.len()).filter(same).count() < 2 {
        return None;
    }
    let mut free = Free::of(form, &effects.taken());
    let shared = free.take(kind)?;
    let mut registers = Vec::new();
    for index in 0..form.operands.len() {
        registers.push(match form.register(index) {
            Some(_) if same(&index) => Some(shared),
            Some(other) => Some(free.take(other)?),
            None => None,
        });
    }
    let from = Place::Operand(destination);
    // The shared register is what the chain goes through: no operand of it is written anew.
    let apart: Vec<Option<Reg>> =
        registers.iter().map(|reg| reg.filter(|reg| *reg != shared)).collect();
    let (breaks, breaking) = chains.breaks(from, &apart, &Way::default()).ok()?;
    let lines = std::iter::once(form.with(&registers, form.place())).chain(breaks);
    let body = lines.collect::<Vec<_>>().join("\n");
    let init = chains.init(&registers);
    let case = Case { form: form.to_string(), kind: case::Kind::SameRegister, breaking };
    Some(Made { case, init, body })
}
