//! The permission maps of registers and of ports.

use super::block::{
    self, AT_VMMCALL, CLEAN, EXIT, INFO_1, INFO_2, IO_MAP, MSR_MAP, PORTS, REGISTERS, RIP, VECTORS,
};
use super::{EFER, WAYS, Way};
use crate::line;
use crate::machine::physical;
use crate::pmu::Unit;

#[repr(C, align(4096))]
struct Map<const BYTES: usize>([u8; BYTES]);
static mut MSR: Map<0x2000> = Map([0; 0x2000]);
static mut IO: Map<0x3000> = Map([0; 0x3000]);
const RDMSR: [u8; 2] = [0x0f, 0x32];
const WRMSR: [u8; 2] = [0x0f, 0x30];
const AT_MSR: u64 = 0x7c;
const AT_PORT: u64 = 0x7b;

fn fill(map: *mut u8, bytes: usize, set: &[(usize, u8)]) {
    // SAFETY: the map's bytes; no nested guest runs.
    unsafe {
        map.write_bytes(0, bytes);
        for &(at, bits) in set {
            *map.add(at) = bits;
        }
    }
}

fn with_maps() {
    block::put(MSR_MAP, physical(&raw const MSR as u64));
    block::put(IO_MAP, physical(&raw const IO as u64));
    block::put(VECTORS, block::get(VECTORS) | PORTS | REGISTERS);
}

/// The maps are each in one piece of physical memory.
fn are_contiguous() -> bool {
    let is = |start: u64, bytes: u64| {
        (0..bytes).step_by(4096).all(|at| physical(start + at) == physical(start) + at)
    };
    is(&raw const MSR as u64, 0x2000) && is(&raw const IO as u64, 0x3000)
}

pub fn run(unit: &Unit) {
    line!("case permissions.contiguous {} true", are_contiguous());
    for way in WAYS {
        registers(unit, way);
        ports(unit, way);
    }
    clean(unit);
}

fn register(unit: &Unit, way: Way, name: &str, msr: u32, code: &[u8], expected: u64) {
    block::prepare(&[code]);
    with_maps();
    block::set_registers([msr.into(), 0, 0, 0, 0]);
    let ends = u64::from(expected == AT_VMMCALL);
    let counted = way.run(unit, ends);
    let way = way.name;
    line!("case {way}.msr.{name}.exit {:#x} {expected:#x}", block::get(EXIT));
    line!("case {way}.msr.{name}.counted {counted} {ends}");
    if expected == AT_MSR {
        line!("case {way}.msr.{name}.info {} {}", block::get(INFO_1), u8::from(code == WRMSR));
        line!("case {way}.msr.{name}.rip {} {}", block::get(RIP), block::code());
    }
}

fn registers(unit: &Unit, way: Way) {
    const STAR: u32 = 0xc000_0081;
    // STAR: reads alone. The bits of EFER are in the same byte.
    fill((&raw mut MSR).cast(), 0x2000, &[(0x820, 0b0100)]);
    register(unit, way, "read", STAR, &RDMSR, AT_MSR);
    register(unit, way, "free_read", 0xc000_0082, &RDMSR, AT_VMMCALL);
    // What the hypervisor intercepts, and the guest does not.
    register(unit, way, "efer", EFER, &RDMSR, AT_VMMCALL);
    line!(
        "case {}.msr.efer.value {:#x} {:#x}",
        way.name,
        block::get(block::RAX),
        block::get(block::EFER)
    );
    register(unit, way, "counter", unit.counter, &RDMSR, AT_VMMCALL);
    fill((&raw mut MSR).cast(), 0x2000, &[(0x820, 0b1010)]);
    register(unit, way, "write", STAR, &WRMSR, AT_MSR);
    register(unit, way, "write_efer", EFER, &WRMSR, AT_MSR);
    register(unit, way, "read_beside", STAR, &RDMSR, AT_VMMCALL);
    register(unit, way, "outside", 0x4000_0000, &RDMSR, AT_MSR);
}

fn ports(unit: &Unit, way: Way) {
    const IN: [u8; 2] = [0xe4, 0x80];
    const OUT: [u8; 2] = [0xe7, 0x80];
    for (name, port, code, info) in [
        ("in", 0x80usize, IN, Some(0x80 << 16 | 1 << 4 | 1)),
        ("in_beside", 0x81, IN, None),
        ("out_4", 0x83, OUT, Some(0x80 << 16 | 1 << 6)),
        ("out_beside", 0x84, OUT, None),
    ] {
        fill((&raw mut IO).cast(), 0x3000, &[(port / 8, 1 << (port % 8))]);
        block::prepare(&[&[0x90], &code]);
        with_maps();
        let (expected, retired) = if info.is_some() { (AT_PORT, 1) } else { (AT_VMMCALL, 2) };
        let counted = way.run(unit, retired);
        let way = way.name;
        line!("case {way}.port.{name}.exit {:#x} {expected:#x}", block::get(EXIT));
        line!("case {way}.port.{name}.counted {counted} {retired}");
        if let Some(info) = info {
            // Bits of the address size and of the segment are left out.
            line!("case {way}.port.{name}.info {:#x} {info:#x}", block::get(INFO_1) & 0xffff_0071);
            line!("case {way}.port.{name}.next {} {}", block::get(INFO_2), block::code() + 3);
        }
    }
}

/// A map that is not said to be clean is looked at, and one that is stays in force.
fn clean(unit: &Unit) {
    let way = WAYS[0];
    let star = || register(unit, way, "before", 0xc000_0081, &RDMSR, AT_VMMCALL);
    fill((&raw mut MSR).cast(), 0x2000, &[]);
    star();
    fill((&raw mut MSR).cast(), 0x2000, &[(0x820, 0b0100)]);
    register(unit, way, "changed", 0xc000_0081, &RDMSR, AT_MSR);
    block::put(CLEAN, u32::MAX.into());
    block::put(RIP, block::code());
    block::enter();
    line!("case permissions.still.exit {:#x} {AT_MSR:#x}", block::get(EXIT));
}
