//! The ports of a block's micro-operations, where a port map is given.

use crate::facts::Facts;
use crate::tally::Tally;
use iced_x86::Instruction;
use pmu_model::Occurrence;
use pmu_model::uarch::{AccessKind, PortLoads, PortMap, UopClass};

/// Gives each instruction of a block its micro-operations and cycles. A repeated string instruction has none.
pub fn dispatch(map: &PortMap, block: &[Option<Instruction>], facts: &mut [Facts]) {
    let mut loads = PortLoads::default();
    for (instruction, facts) in block.iter().zip(facts) {
        let Some(instruction) = instruction.as_ref().filter(|_| facts.repeated.is_none()) else {
            continue;
        };
        let mut uops = Tally::NONE;
        let mut class = |class: UopClass| {
            for ports in map.uops(class) {
                uops.count(Occurrence::PORTS[loads.uop(ports)]);
            }
        };
        let reads = facts.touches.iter().filter(|touch| touch.kind != AccessKind::Store);
        reads.for_each(|_| class(UopClass::Load));
        step::uop_class(instruction).into_iter().for_each(&mut class);
        for _ in facts.touches.iter().filter(|touch| touch.kind != AccessKind::Load) {
            class(UopClass::StoreAddress);
            class(UopClass::StoreData);
        }
        let cycles = loads.instruction(map.issue);
        uops.more(Occurrence::PortCycle as usize, u8::try_from(cycles).unwrap_or(u8::MAX));
        facts.uops = uops;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Raw, decode};
    use crate::tally::Sums;
    use iced_x86::InstructionInfoFactory;
    use pmu_model::uarch::Parameters;

    fn sums(ports: &str, code: &[&[u8]]) -> Vec<(Occurrence, u64)> {
        let map = Parameters::parse(ports).unwrap().ports.unwrap();
        let mut linear = 0x1000;
        let mut raw = Vec::new();
        for bytes in code {
            raw.push(Raw { linear, bytes: bytes.to_vec() });
            linear += bytes.len() as u64;
        }
        let decoded = decode(&raw, false);
        let mut factory = InstructionInfoFactory::new();
        let mut facts: Vec<Facts> =
            decoded.iter().map(|one| Facts::of(&mut factory, one.as_ref().unwrap())).collect();
        dispatch(&map, &decoded, &mut facts);
        let mut sums = Sums::NONE;
        for facts in &facts {
            sums.add(&facts.tally(plugin_channel::Mode::PORTS, None), 1);
        }
        let all = Occurrence::ALL.into_iter().map(|one| (one, sums.0[one as usize]));
        all.filter(|(_, count)| *count > 0).collect()
    }

    #[test]
    fn d2_a_block_has_the_micro_operations_of_its_instructions_on_their_ports() {
        use Occurrence::*;
        // add [r8], r9; imul r9, r9; nop; mov r9, [r8]; rep movsb
        let code: [&[u8]; 5] = [
            &[0x4d, 0x01, 0x08],
            &[0x4d, 0x0f, 0xaf, 0xc9],
            &[0x90],
            &[0x4d, 0x8b, 0x08],
            &[0xf3, 0xa4],
        ];
        let ports = "ports=alu:01/mul:1+2*0/load:23/sta:7/std:4";
        let expected = [
            (Port0, 2),
            (Port1, 2),
            (Port2, 1),
            (Port3, 1),
            (Port4, 1),
            (Port7, 1),
            (PortCycle, 2),
        ];
        // ADD to port 0, IMUL to 1 and twice to 0.
        let mut all = sums(ports, &code);
        assert_eq!(all.iter().find(|(one, _)| *one == Port0), Some(&(Port0, 3)));
        all.retain(|(one, _)| !matches!(one, Port0 | Port1 | PortCycle));
        assert_eq!(all, expected[2..6]);
        // Four instructions of which the front end gives one a cycle.
        let slow = sums(&format!("{ports},issue=1"), &code);
        assert_eq!(slow.iter().find(|(one, _)| *one == PortCycle), Some(&(PortCycle, 4)));
    }
}
