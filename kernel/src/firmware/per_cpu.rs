//! The machine's processors as a set that runs one snippet together.

use super::counters::Counters;
use super::probe::Machine;
use super::programs::{Owner, Programs};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::cpu::{Identity, native};
use arch::memory::arena::{Arena, Code};
use arch::memory::space::MapError;
use arch::memory::{Frames, Space, cache};
use arch::pmu::{self, Capabilities, Ownership};
use arch::smp::{self, Offset};
use kernel::events::{self, Known};
use kernel::processors::{Member, kind, place_of};
use spin::Mutex;
use x86_64::registers::control::Cr3;
use x86_64::structures::paging::PhysFrame;

/// What belongs to one processor. The others do not touch it while that one works.
pub(super) struct PerCpu {
    pub(super) counters: Counters,
    ownership: Ownership,
    /// Its address space; the boot processor's is the target's.
    pub(super) space: Option<Space>,
}

/// All processors in use, made ready once.
pub struct AllProcessors {
    pub(super) members: Vec<Member>,
    pub(super) per_cpu: Vec<Mutex<PerCpu>>,
    /// What is known of those whose PMU is not the boot processor's.
    known: Vec<Option<Known<'static>>>,
}

/// Held while a processor's PMU is tried.
static TRIAL: Mutex<()> = Mutex::new(());

/// What is known of this processor, at `place`, if its PMU is not the boot processor's: the cores of a hybrid package have tables
/// of their own, which leaf 0x1A of each names.
fn own_kind(
    machine: &Machine,
    place: usize,
    pmu: Option<&Capabilities>,
    registers: &mut pmu::Machine,
) -> Option<Known<'static>> {
    let has = pmu.filter(|has| place > 0 && machine.pmu.as_ref().ok() != Some(*has))?;
    let cpuid = native();
    let identity = Identity::read(&cpuid);
    let names = machine.ramdisk.and_then(|ramdisk| events::open(ramdisk, &identity, &cpuid));
    Some(Known::new(has, names.and_then(|names| names.core), registers))
}

/// Calls of other processors fail only where they do not come from the boot processor.
pub(super) const BOOT: &str = "called from the boot processor";

impl AllProcessors {
    /// Reads each processor's PMU, takes it over, and gives each an arena.
    ///
    /// # Errors
    /// Out of memory.
    pub fn prepare(
        machine: &Machine,
        arena: &mut Arena,
        space: &mut Space,
        frames: &mut Frames,
    ) -> Result<Self, MapError> {
        let found = smp::on_all(|place| {
            // SAFETY: ring 0, interrupt table loaded, the firmware owns the PMU; the boot processor's was claimed before.
            let mut registers = unsafe { pmu::Machine::new() };
            let pmu = if place == 0 { machine.pmu.clone() } else { pmu::find(&mut registers) };
            let claim = |has: &Capabilities| Ownership::claim(&mut registers, has);
            let others = pmu.as_ref().ok().filter(|_| place > 0);
            let ownership = others.map(claim).unwrap_or_default();
            let pmu = match place {
                0 => pmu,
                // One at a time: the handler of the freeze is one for all.
                _ => pmu.and_then(|has| {
                    let _alone = TRIAL.lock();
                    pmu::trial::run(&has, &mut registers)
                }),
            };
            // SAFETY: as above; these are the processor's own.
            let counters = unsafe { Counters::new(pmu.clone().ok()) };
            let known = own_kind(machine, place, pmu.as_ref().ok(), &mut registers);
            let core = kind::of(&native());
            (pmu, PerCpu { counters, ownership, space: None }, (known, core))
        })
        .expect(BOOT);
        let offsets = smp::offsets().expect(BOOT);
        let (mut members, mut per_cpu, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for ((processor, (pmu, mut own, (known, core))), offset) in
            smp::in_use().zip(found).zip(offsets)
        {
            let number = processor.index() as u32;
            if number > 0 {
                let alike = pmu.is_ok() == machine.pmu.is_ok();
                let code = if alike { Code::Shared } else { Code::Second };
                let second = arena.copy_for_processor(space, frames, code)?;
                let root = PhysFrame::containing_address(second.root());
                let flags = Cr3::read().1;
                // SAFETY: the space has everything that the one in use has, and an arena.
                let change = || unsafe { Cr3::write(root, flags) };
                smp::run_on(processor.index(), change).expect(BOOT);
                own.space = Some(second);
            }
            let covered = machine.emulated.map_or(u32::MAX, |emulated| emulated.processors);
            let pmu = pmu.map_err(|missing| match number < covered {
                true => format!("there is no PMU: {missing}"),
                false => format!("the emulated PMU does not reach this processor ({missing})"),
            });
            members.push(Member { number, apic_id: processor.apic_id(), core, pmu, offset });
            per_cpu.push(Mutex::new(own));
            kinds.push(known);
        }
        Ok(Self { members, per_cpu, known: kinds })
    }

    /// As [`place_of`].
    #[must_use]
    pub fn place(&self, number: u32) -> Option<usize> {
        place_of(&self.members, number)
    }

    /// What is known of a processor whose PMU is not the boot processor's; `None` if it is.
    #[must_use]
    pub fn known(&self, place: usize) -> Option<&Known<'static>> {
        self.known.get(place)?.as_ref()
    }

    /// Gives every other processor program `number`, with its data as they were linked.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn provide(
        &self,
        programs: &mut Programs,
        number: u16,
        frames: &mut Frames,
    ) -> Result<(), String> {
        for (place, own) in self.per_cpu.iter().enumerate() {
            let mut own = own.lock();
            let Some(space) = &mut own.space else { continue };
            programs.select(Owner::Processor(place), (number, false), space, frames)?;
            // SAFETY: ring 0; what is mapped stays mapped.
            let forget = || unsafe { cache::flush_tlb() };
            smp::run_on(self.members[place].number as usize, forget).expect(BOOT);
        }
        Ok(())
    }

    /// The processors, in the order of their numbers.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// How far their time stamp counters are apart.
    pub fn offsets(&self) -> Vec<Offset> {
        self.members.iter().map(|member| member.offset).collect()
    }

    /// Calls `each` with the address space of every other processor.
    pub fn each_space(&self, mut each: impl FnMut(&mut Space)) {
        for own in &self.per_cpu {
            own.lock().space.iter_mut().for_each(&mut each);
        }
    }

    /// Gives the PMUs back as they were found; the boot processor's goes with the machine's.
    pub fn release(&self) {
        let restore = |place: usize| {
            // SAFETY: ring 0, interrupt table loaded; nothing counts any more.
            let mut registers = unsafe { pmu::Machine::new() };
            self.per_cpu[place].lock().ownership.restore(&mut registers);
        };
        smp::on_all(restore).expect(BOOT);
    }
}
