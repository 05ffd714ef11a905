//! What the code of a job's items needs of the processor, found in the assembled code.

use iced_x86::{CpuidFeature, Decoder, DecoderOptions};
use protocol::bits::Bits;
use protocol::job::workload::Workload;
use protocol::job::{Item, Job, Requirement, Snippet};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

const EAX: u8 = 0;
const EBX: u8 = 1;
const ECX: u8 = 2;
const EDX: u8 = 3;

/// Name, leaf, subleaf, register, bit: SDM vol. 2, CPUID, tables 3-8 and following; AMD APM vol. 3, appendix E.
type Row = (CpuidFeature, &'static str, u32, u32, u8, u8);

/// Features that a program may use or not. What every x86-64 processor has is not here, and neither is what belongs to
/// hypervisors and operating systems (VMX, SVM, SMX, CET, user interrupts, key locker), where a snippet may be meant to
/// see the exception.
const FEATURES: &[Row] = &[
    (CpuidFeature::SSE3, "SSE3", 1, 0, ECX, 0),
    (CpuidFeature::PCLMULQDQ, "PCLMULQDQ", 1, 0, ECX, 1),
    (CpuidFeature::MONITOR, "MONITOR", 1, 0, ECX, 3),
    (CpuidFeature::SSSE3, "SSSE3", 1, 0, ECX, 9),
    (CpuidFeature::FMA, "FMA", 1, 0, ECX, 12),
    (CpuidFeature::CMPXCHG16B, "CMPXCHG16B", 1, 0, ECX, 13),
    (CpuidFeature::SSE4_1, "SSE4.1", 1, 0, ECX, 19),
    (CpuidFeature::SSE4_2, "SSE4.2", 1, 0, ECX, 20),
    (CpuidFeature::MOVBE, "MOVBE", 1, 0, ECX, 22),
    (CpuidFeature::POPCNT, "POPCNT", 1, 0, ECX, 23),
    (CpuidFeature::AES, "AESNI", 1, 0, ECX, 25),
    (CpuidFeature::XSAVE, "XSAVE", 1, 0, ECX, 26),
    (CpuidFeature::AVX, "AVX", 1, 0, ECX, 28),
    (CpuidFeature::F16C, "F16C", 1, 0, ECX, 29),
    (CpuidFeature::RDRAND, "RDRAND", 1, 0, ECX, 30),
    (CpuidFeature::FSGSBASE, "FSGSBASE", 7, 0, EBX, 0),
    (CpuidFeature::BMI1, "BMI1", 7, 0, EBX, 3),
    (CpuidFeature::HLE, "HLE", 7, 0, EBX, 4),
    (CpuidFeature::AVX2, "AVX2", 7, 0, EBX, 5),
    (CpuidFeature::BMI2, "BMI2", 7, 0, EBX, 8),
    (CpuidFeature::INVPCID, "INVPCID", 7, 0, EBX, 10),
    (CpuidFeature::RTM, "RTM", 7, 0, EBX, 11),
    (CpuidFeature::AVX512F, "AVX512F", 7, 0, EBX, 16),
    (CpuidFeature::AVX512DQ, "AVX512DQ", 7, 0, EBX, 17),
    (CpuidFeature::RDSEED, "RDSEED", 7, 0, EBX, 18),
    (CpuidFeature::ADX, "ADX", 7, 0, EBX, 19),
    (CpuidFeature::SMAP, "SMAP", 7, 0, EBX, 20),
    (CpuidFeature::AVX512_IFMA, "AVX512_IFMA", 7, 0, EBX, 21),
    (CpuidFeature::CLFLUSHOPT, "CLFLUSHOPT", 7, 0, EBX, 23),
    (CpuidFeature::CLWB, "CLWB", 7, 0, EBX, 24),
    (CpuidFeature::AVX512PF, "AVX512PF", 7, 0, EBX, 26),
    (CpuidFeature::AVX512ER, "AVX512ER", 7, 0, EBX, 27),
    (CpuidFeature::AVX512CD, "AVX512CD", 7, 0, EBX, 28),
    (CpuidFeature::SHA, "SHA", 7, 0, EBX, 29),
    (CpuidFeature::AVX512BW, "AVX512BW", 7, 0, EBX, 30),
    (CpuidFeature::AVX512VL, "AVX512VL", 7, 0, EBX, 31),
    (CpuidFeature::PREFETCHWT1, "PREFETCHWT1", 7, 0, ECX, 0),
    (CpuidFeature::AVX512_VBMI, "AVX512_VBMI", 7, 0, ECX, 1),
    (CpuidFeature::WAITPKG, "WAITPKG", 7, 0, ECX, 5),
    (CpuidFeature::AVX512_VBMI2, "AVX512_VBMI2", 7, 0, ECX, 6),
    (CpuidFeature::GFNI, "GFNI", 7, 0, ECX, 8),
    (CpuidFeature::VAES, "VAES", 7, 0, ECX, 9),
    (CpuidFeature::VPCLMULQDQ, "VPCLMULQDQ", 7, 0, ECX, 10),
    (CpuidFeature::AVX512_VNNI, "AVX512_VNNI", 7, 0, ECX, 11),
    (CpuidFeature::AVX512_BITALG, "AVX512_BITALG", 7, 0, ECX, 12),
    (CpuidFeature::AVX512_VPOPCNTDQ, "AVX512_VPOPCNTDQ", 7, 0, ECX, 14),
    (CpuidFeature::RDPID, "RDPID", 7, 0, ECX, 22),
    (CpuidFeature::MOVDIRI, "MOVDIRI", 7, 0, ECX, 27),
    (CpuidFeature::MOVDIR64B, "MOVDIR64B", 7, 0, ECX, 28),
    (CpuidFeature::AVX512_4VNNIW, "AVX512_4VNNIW", 7, 0, EDX, 2),
    (CpuidFeature::AVX512_4FMAPS, "AVX512_4FMAPS", 7, 0, EDX, 3),
    (CpuidFeature::AVX512_VP2INTERSECT, "AVX512_VP2INTERSECT", 7, 0, EDX, 8),
    (CpuidFeature::SERIALIZE, "SERIALIZE", 7, 0, EDX, 14),
    (CpuidFeature::TSXLDTRK, "TSXLDTRK", 7, 0, EDX, 16),
    (CpuidFeature::AMX_BF16, "AMX-BF16", 7, 0, EDX, 22),
    (CpuidFeature::AVX512_FP16, "AVX512_FP16", 7, 0, EDX, 23),
    (CpuidFeature::AMX_TILE, "AMX-TILE", 7, 0, EDX, 24),
    (CpuidFeature::AMX_INT8, "AMX-INT8", 7, 0, EDX, 25),
    (CpuidFeature::SHA512, "SHA512", 7, 1, EAX, 0),
    (CpuidFeature::SM3, "SM3", 7, 1, EAX, 1),
    (CpuidFeature::SM4, "SM4", 7, 1, EAX, 2),
    (CpuidFeature::RAO_INT, "RAO-INT", 7, 1, EAX, 3),
    (CpuidFeature::AVX_VNNI, "AVX-VNNI", 7, 1, EAX, 4),
    (CpuidFeature::AVX512_BF16, "AVX512_BF16", 7, 1, EAX, 5),
    (CpuidFeature::CMPCCXADD, "CMPCCXADD", 7, 1, EAX, 7),
    (CpuidFeature::AMX_FP16, "AMX-FP16", 7, 1, EAX, 21),
    (CpuidFeature::AVX_IFMA, "AVX-IFMA", 7, 1, EAX, 23),
    (CpuidFeature::AVX_VNNI_INT8, "AVX-VNNI-INT8", 7, 1, EDX, 4),
    (CpuidFeature::AVX_NE_CONVERT, "AVX-NE-CONVERT", 7, 1, EDX, 5),
    (CpuidFeature::AMX_COMPLEX, "AMX-COMPLEX", 7, 1, EDX, 8),
    (CpuidFeature::AVX_VNNI_INT16, "AVX-VNNI-INT16", 7, 1, EDX, 10),
    (CpuidFeature::XSAVEOPT, "XSAVEOPT", 0xd, 1, EAX, 0),
    (CpuidFeature::XSAVEC, "XSAVEC", 0xd, 1, EAX, 1),
    (CpuidFeature::XSAVES, "XSAVES", 0xd, 1, EAX, 3),
    (CpuidFeature::PTWRITE, "PTWRITE", 0x14, 0, EBX, 4),
    (CpuidFeature::LZCNT, "LZCNT", 0x8000_0001, 0, ECX, 5),
    (CpuidFeature::SSE4A, "SSE4A", 0x8000_0001, 0, ECX, 6),
    (CpuidFeature::XOP, "XOP", 0x8000_0001, 0, ECX, 11),
    (CpuidFeature::FMA4, "FMA4", 0x8000_0001, 0, ECX, 16),
    (CpuidFeature::TBM, "TBM", 0x8000_0001, 0, ECX, 21),
    (CpuidFeature::MONITORX, "MONITORX", 0x8000_0001, 0, ECX, 29),
    (CpuidFeature::RDTSCP, "RDTSCP", 0x8000_0001, 0, EDX, 27),
    (CpuidFeature::D3NOWEXT, "3DNOWEXT", 0x8000_0001, 0, EDX, 30),
    (CpuidFeature::D3NOW, "3DNOW", 0x8000_0001, 0, EDX, 31),
    (CpuidFeature::CLZERO, "CLZERO", 0x8000_0008, 0, EBX, 0),
    (CpuidFeature::RDPRU, "RDPRU", 0x8000_0008, 0, EBX, 4),
    (CpuidFeature::MCOMMIT, "MCOMMIT", 0x8000_0008, 0, EBX, 8),
];

/// What the items of a job need, in the order of the table.
#[must_use]
pub fn of(items: &[Item]) -> Vec<Requirement<'static>> {
    let mut found: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
    for (index, item) in (0..).zip(items) {
        for (code, bits) in codes(item) {
            for row in needed(code, bits) {
                found.entry(row).or_default().insert(index);
            }
        }
    }
    let requirement = |(row, items): (usize, BTreeSet<u32>)| {
        let (_, feature, leaf, subleaf, register, bit) = FEATURES[row];
        let (feature, items) = (Cow::Borrowed(feature), items.into_iter().collect());
        Requirement { feature, leaf, subleaf, register, bit, items }
    };
    found.into_iter().map(requirement).collect()
}

/// What is left of a job's requirements and memory without its first `done` items.
pub fn drop_first(job: &mut Job, done: u32) {
    let left = |items: &mut Vec<u32>| {
        items.retain_mut(|item| {
            let left = item.checked_sub(done);
            *item = left.unwrap_or_default();
            left.is_some()
        });
    };
    job.requires.iter_mut().for_each(|requirement| left(&mut requirement.items));
    job.requires.retain(|requirement| !requirement.items.is_empty());
    job.memory.iter_mut().for_each(|memory| left(&mut memory.items));
    job.memory.retain(|memory| !memory.items.is_empty());
}

/// All code of an item.
fn codes<'a>(item: &'a Item) -> Vec<(&'a [u8], Bits)> {
    let snippet = |snippet: &'a Snippet| -> Vec<(&'a [u8], Bits)> {
        let parts: [&'a [u8]; 4] =
            [&snippet.setup.one_time_init, &snippet.init, &snippet.setup.late_init, &snippet.body];
        parts.map(|code| (code, snippet.setup.bits)).to_vec()
    };
    let workload = |workload: &'a Workload| -> Vec<(&'a [u8], Bits)> {
        let parts = |task: &'a protocol::job::workload::Task| {
            let parts: [&'a [u8]; 2] = [&task.init, &task.body];
            parts.map(|code| (code, task.bits))
        };
        workload.tasks.iter().flat_map(parts).collect()
    };
    let of_snippet = item.part().snippet().map(snippet).unwrap_or_default();
    let of_tasks = item.part().workload().map(workload).unwrap_or_default();
    [of_snippet, of_tasks].concat()
}

/// Rows of the table whose features the code needs. What does not decode needs nothing: it is an exception anywhere.
fn needed(code: &[u8], bits: Bits) -> BTreeSet<usize> {
    let decoder = Decoder::with_ip(bits.number().into(), code, 0, DecoderOptions::NONE);
    let features = decoder.into_iter().flat_map(|instruction| instruction.cpuid_features());
    features.filter_map(|feature| FEATURES.iter().position(|row| row.0 == *feature)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Purpose, file, pack};

    fn names(code: &[u8]) -> Vec<&'static str> {
        needed(code, Bits::SixtyFour).into_iter().map(|row| FEATURES[row].1).collect()
    }

    #[test]
    fn instructions_need_what_the_manuals_say() {
        assert_eq!(names(&[0xf3, 0x48, 0x0f, 0xb8, 0xc1]), ["POPCNT"]); // popcnt rax, rcx
        assert_eq!(names(&[0xf2, 0x0f, 0x7c, 0xc1]), ["SSE3"]); // haddps xmm0, xmm1
        assert_eq!(names(&[0xf3, 0x0f, 0xbc, 0xc1]), ["BMI1"]); // tzcnt eax, ecx
        assert_eq!(names(&[0xf3, 0x0f, 0xbd, 0xc1]), ["LZCNT"]); // lzcnt eax, ecx
        assert_eq!(names(&[0xc5, 0xfd, 0xfe, 0xc1]), ["AVX2"]); // vpaddd ymm0, ymm0, ymm1
        assert_eq!(names(&[0x62, 0xf1, 0x7d, 0x28, 0xfe, 0xc1]), ["AVX512F", "AVX512VL"]);
        // add, imul, addps, addpd, cpuid, rdtsc; what does not decode.
        let base: [&[u8]; 7] = [
            &[0x48, 0x01, 0xd8],
            &[0x48, 0x0f, 0xaf, 0xc1],
            &[0x0f, 0x58, 0xc1],
            &[0x66, 0x0f, 0x58, 0xc1],
            &[0x0f, 0xa2],
            &[0x0f, 0x31],
            &[0x06],
        ];
        for code in base {
            assert!(names(code).is_empty(), "{code:x?}");
        }
    }

    #[test]
    fn each_bit_stands_in_the_table_once() {
        let bits: BTreeSet<_> = FEATURES.iter().map(|&(_, _, l, s, r, b)| (l, s, r, b)).collect();
        assert_eq!(bits.len(), FEATURES.len());
        assert!(FEATURES.iter().all(|row| row.4 <= EDX && row.5 < 32));
    }

    #[test]
    fn every_kind_of_item_with_code_is_looked_into() {
        let toml = "[[snippet]]\nasm = \"nop\"\n\
             [[snippet]]\ninit = \"popcnt rax, rcx\"\nasm = \"nop\"\n\
             [[processors]]\nasm = \"popcnt rax, rcx\"\n\
             [[run]]\n[[run.task]]\nname = \"a\"\nasm = \"popcnt rax, rcx; haddps xmm0, xmm1\"\n";
        let file = file::parse(toml, "test.toml").unwrap();
        let packed = pack(&file, Purpose::Qemu).unwrap();
        let found = |job: &Job| -> Vec<(String, Vec<u32>)> {
            job.requires.iter().map(|one| (one.feature.to_string(), one.items.clone())).collect()
        };
        let expected = [("SSE3".to_string(), vec![3]), ("POPCNT".to_string(), vec![1, 2, 3])];
        assert_eq!(found(&packed.job), expected);
        let rest = packed.rest(2, None).unwrap();
        let expected = [("SSE3".to_string(), vec![1]), ("POPCNT".to_string(), vec![0, 1])];
        assert_eq!(found(&rest.job), expected);
        assert_eq!(found(&packed.rest(4, None).unwrap().job), []);
    }
}
