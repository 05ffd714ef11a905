//! Energy (RAPL): that the registers are there, count upwards, and agree with each other.

use super::check::{All, Check, Finding, Outcome};
use super::context::Context;
use super::machine::Work;
use arch::msr::Msr;
use arch::pmu::energy::{Domain, Energy, NoEnergy};
use arch::pmu::workload::Ring0Code;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "energy.registers",
        source: "SDM vol. 3, 15.10.1: MSR_RAPL_POWER_UNIT; AMD APM vol. 3, E.4.7: CPUID 0x80000007 EDX[14]",
        run: registers,
    },
    Check {
        name: "energy.width",
        source: "SDM vol. 3, 15.10.3: total energy consumed, bits 31:0; the others are reserved",
        run: width,
    },
    Check {
        name: "energy.moves",
        source: "SDM vol. 3, 15.10.3: updated about once in a millisecond",
        run: moves,
    },
    Check {
        name: "energy.parts",
        source: "SDM vol. 3, 15.10.2: the cores are a part of the package",
        run: parts,
    },
    Check {
        name: "energy.read_only",
        source: "SDM vol. 4, MSR_PKG_ENERGY_STATUS: read-only; AMD PPR, MSRC001_029B",
        run: read_only,
    },
];

const NEEDS: &str = "RAPL";
/// Turns of the TSC within which a register has to move: some 13 ms of a processor of 5 GHz, 67 of one of 1 GHz.
const PATIENCE: u64 = 1 << 26;
/// Updates that are awaited.
const UPDATES: u32 = 3;
/// The package's register on Intel's processors.
const PACKAGE: Msr = Msr(0x611);

fn registers(context: &mut Context) -> Outcome {
    let found = Energy::probe(context.registers());
    let expected = "an energy unit, and a package register that counts in it";
    Ok(match found {
        Ok(energy) => {
            let list: alloc::vec::Vec<_> = energy.domains().collect();
            let seen = alloc::format!("{list:?} in 2^-{} J", energy.unit(Domain::Package));
            Finding::when(list.contains(&Domain::Package), expected, seen)
        }
        // AMD's CPUID says that they are there.
        Err(error @ NoEnergy::Faults(_)) if !context.has().is_intel() => {
            Finding::fail(expected, error)
        }
        // A unit of 0 with a register that counts is none. Below hypervisors both read 0.
        Err(error @ NoEnergy::NoUnit(_)) => match context.registers().rdmsr(PACKAGE) {
            Ok(0) | Err(_) => Finding::skip(NEEDS),
            Ok(_) => Finding::fail(expected, error),
        },
        Err(_) => Finding::skip(NEEDS),
    })
}

fn width(context: &mut Context) -> Outcome {
    let Ok(energy) = Energy::probe(context.registers()) else { return Ok(Finding::skip(NEEDS)) };
    let mut all = All::of("bits 63:32 read 0");
    for domain in energy.domains() {
        let Ok(register) = energy.register(domain) else { continue };
        let value = context.registers().rdmsr(register).unwrap_or(u64::MAX);
        all.same(format_args!("bits 63:32 of MSR {:#x}", register.0), 0, value >> 32);
    }
    Ok(all.finish())
}

/// How far the domain's register has moved by each of the others' side, as the package is updated some times; `None`: it stands still.
fn moved(context: &mut Context, energy: &Energy, domains: [Domain; 2]) -> Option<[u64; 2]> {
    let read = |context: &mut Context| {
        domains.map(|domain| match energy.register(domain) {
            Ok(register) => context.registers().rdmsr(register).unwrap_or_default() as u32,
            Err(_) => 0,
        })
    };
    let mut total = [0; 2];
    let mut last = read(context);
    for _ in 0..UPDATES {
        let begin = context.machine.tsc();
        let now = loop {
            context.run(Work::kernel(Ring0Code::Straight, 1));
            let now = read(context);
            if now[0] != last[0] {
                break now;
            }
            if context.machine.tsc().wrapping_sub(begin) > PATIENCE {
                return None;
            }
        };
        for (total, (now, last)) in total.iter_mut().zip(now.iter().zip(last)) {
            *total += u64::from(now.wrapping_sub(last));
        }
        last = now;
    }
    Some(total)
}

fn moves(context: &mut Context) -> Outcome {
    let Ok(energy) = Energy::probe(context.registers()) else { return Ok(Finding::skip(NEEDS)) };
    let expected = "the package's register grows, by less than 1,000 J in one update";
    let Some([units, _]) = moved(context, &energy, [Domain::Package; 2]) else {
        return Ok(Finding::fail(expected, "it does not change"));
    };
    let unit = energy.unit(Domain::Package);
    let seen = alloc::format!("{units} units of 2^-{unit} J in {UPDATES} updates");
    // A register that runs backwards seems to have used nearly all of its 2^32 units.
    Ok(Finding::when(units >> unit < 1000 * u64::from(UPDATES), expected, seen))
}

fn parts(context: &mut Context) -> Outcome {
    let Ok(energy) = Energy::probe(context.registers()) else { return Ok(Finding::skip(NEEDS)) };
    let domains = [Domain::Package, Domain::Cores];
    if domains.iter().any(|domain| energy.register(*domain).is_err()) {
        return Ok(Finding::skip("registers of the package and of the cores"));
    }
    let Some([package, cores]) = moved(context, &energy, domains) else {
        return Ok(Finding::skip("a register that changes"));
    };
    let seen = alloc::format!("{cores} units of {package}");
    Ok(Finding::when(cores <= package, "the cores use no more than the package", seen))
}

fn read_only(context: &mut Context) -> Outcome {
    let Ok(energy) = Energy::probe(context.registers()) else { return Ok(Finding::skip(NEEDS)) };
    let mut all = All::of("a write raises #GP");
    for domain in energy.domains() {
        if let Ok(register) = energy.register(domain) {
            all.faults(context.registers(), register, 0);
        }
    }
    Ok(all.finish())
}
