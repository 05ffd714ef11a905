//! CPUID.

use crate::payload::guest::Guest;
use crate::payload::port::cpuid;
use crate::payload::{ibs, processors, retire};
use iced_x86::Mnemonic;
use pmu_model::qualify::OPCODES;
use pmu_model::{CpuidResult, Occurrence, msr};

/// Where our own leaves begin: hypervisor interfaces lie 0x100 apart from 0x4000_0000 on, the first of which is QEMU's.
const OWN: u32 = 0x4000_0100;
/// The leaf with the facts.
const FACTS: u32 = OWN + 1;
/// The leaf of the qualifiers, which is the last one.
const QUALIFIERS: u32 = OWN + 2;
/// `barecountPMU`, in EBX, ECX, EDX.
const SIGNATURE: [u32; 3] = [0x6572_6162, 0x6e75_6f63, 0x554d_5074];
/// CR4 bits that show in CPUID, and where: leaf 1 ECX bit 27 (OSXSAVE), leaf 7 ECX bit 4 (OSPKE).
const CR4_OSXSAVE: u64 = 1 << 18;
const CR4_PKE: u64 = 1 << 22;
/// The leaf of the topology whose EDX is the id of the local APIC; QEMU's processors have it.
const TOPOLOGY: u32 = 0xb;
/// Leaf 1 ECX: the x2APIC.
const X2APIC: u32 = 21;

pub(super) fn handle(guest: &mut Guest) {
    retire::plain(guest, Some(Occurrence::Cpuid));
    let (leaf, subleaf) = (guest.vmcb.rax as u32, guest.registers.rcx as u32);
    ibs::on_cpuid(guest, leaf);
    let answer = match leaf {
        OWN => {
            CpuidResult { eax: QUALIFIERS, ebx: SIGNATURE[0], ecx: SIGNATURE[1], edx: SIGNATURE[2] }
        }
        // The model's number, the clock's shift, and on how many processors it is. Bit 0 of EDX: the plugin in QEMU's translator
        // counts. Bit 1: it is a recorded processor, and the model the one whose behaviour it has.
        FACTS => CpuidResult {
            eax: guest.counting.model() as u32,
            ebx: u32::from(guest.calibration.shift),
            ecx: processors::count() as u32,
            edx: u32::from(guest.plugin.is_some()) | u32::from(guest.counting.is_recorded()) << 1,
        },
        // How many opcodes can be looked for, 0: there are no qualifiers; and how many the decoder knows, by which another list of
        // numbers can be told.
        QUALIFIERS if guest.counting.has_qualifiers() => CpuidResult {
            eax: OPCODES as u32,
            ebx: Mnemonic::values().count() as u32,
            ecx: msr::QUALIFIERS,
            edx: 0,
        },
        QUALIFIERS => CpuidResult::default(),
        _ => overlaid(guest, leaf, subleaf),
    };
    guest.vmcb.rax = u64::from(answer.eax);
    guest.registers.rbx = u64::from(answer.ebx);
    guest.registers.rcx = u64::from(answer.ecx);
    guest.registers.rdx = u64::from(answer.edx);
    guest.skip(2);
}

/// The processor's own answer, with what the model changes. Two bits mirror CR4, which here is the hypervisor's.
pub fn overlaid(guest: &mut Guest, leaf: u32, subleaf: u32) -> CpuidResult {
    let mut own: CpuidResult = cpuid(leaf, subleaf).into();
    let mirror = |register: &mut u32, bit: u32, cr4: u64| {
        *register &= !(1 << bit);
        *register |= u32::from(guest.vmcb.cr4 & cr4 != 0) << bit;
    };
    match (leaf, subleaf) {
        (1, _) => {
            mirror(&mut own.ecx, 27, CR4_OSXSAVE);
            // What is sent by that APIC's registers would not be seen; and QEMU has it without icount alone.
            own.ecx &= !(u32::from(processors::are_shared()) << X2APIC);
            own.ecx |= u32::from(guest.x2apic.is_offered()) << X2APIC;
        }
        (7, 0) => mirror(&mut own.ecx, 4, CR4_PKE),
        // Leaves of the topology that QEMU's processor may lack, and a recorded one has: the id of this one.
        (0x1f | 0x8000_0026, _) => own.edx = cpuid(TOPOLOGY, 0).edx,
        (0x8000_001e, _) => own.eax = cpuid(TOPOLOGY, 0).edx,
        _ => {}
    }
    guest.counting.peek().cpuid(leaf, subleaf, own)
}
