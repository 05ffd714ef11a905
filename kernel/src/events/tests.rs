use super::*;
use arch::cpu::{Topology, Vendor as Maker};
use events::encode::encode;
use events::pack::Sources;
use events::parse::parse_event;
use events::processor::Processor;
use protocol::job::{Job, OnEnd};
use protocol::ramdisk::pack_with;
use std::borrow::Cow;
use std::sync::OnceLock;

fn block() -> &'static [u8] {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    BLOCK.get_or_init(|| Sources::embedded().unwrap().pack().unwrap())
}

fn ramdisk(tables: &[u8]) -> Vec<u8> {
    let job = Job {
        name: Cow::Borrowed("test"),
        baud: 115_200,
        on_end: OnEnd::Halt,
        exit_port: None,
        self_test: None,
        requires: vec![],
        items: vec![],
        criteria: vec![],
        memory: vec![],
    };
    pack_with(&job, &[(SectionKind::EventTables, tables)]).unwrap()
}

fn cpu(text: &str, vendor: Maker, [family, model, stepping]: [u32; 3]) -> Identity {
    Identity {
        vendor,
        vendor_text: text.to_string(),
        brand: String::new(),
        family,
        model,
        stepping,
        hypervisor: None,
        core_type: None,
        topology: Topology {
            apic_id: 0,
            threads_per_core: 1,
            threads_per_package: 1,
            core_bits: 0,
            package_bits: 0,
        },
    }
}

fn skylake() -> Identity {
    cpu("GenuineIntel", Maker::Intel, [6, 0x5e, 3])
}

/// A processor of which only leaf 0x1A is asked.
fn leaf(leaf_1a: u32) -> impl Cpuid {
    move |number, _| {
        let eax = if number == 0x1a { leaf_1a } else { 0x20 };
        raw_cpuid::CpuIdResult { eax, ebx: 0, ecx: 0, edx: 0 }
    }
}

#[test]
fn i11_the_table_is_that_of_the_processor_and_of_its_core() {
    let ramdisk = ramdisk(block());
    let names = open(&ramdisk, &skylake(), &leaf(0)).unwrap();
    assert_eq!(names.record.table.as_deref(), Some("skylake"));
    assert!(names.record.source.unwrap().starts_with("perfmon:SKL/"));
    let core = names.core.unwrap();
    assert_eq!((names.record.events as usize, names.record.version), (core.len(), Some(2)));
    assert!(core.find("inst_retired.any").is_some() && names.error.is_none());
    // Arrow Lake: the kind of core decides.
    let hybrid = cpu("GenuineIntel", Maker::Intel, [6, 0xc6, 2]);
    for (leaf_1a, table) in [(0x4000_0003, "lioncove_arl"), (0x2000_0003, "skymont_arl")] {
        let names = open(&ramdisk, &hybrid, &leaf(leaf_1a)).unwrap();
        assert_eq!(names.record.table.as_deref(), Some(table));
    }
    // One that says that it is hybrid, and not which of its cores this is.
    let mute = |number, _| {
        let edx = if number == 7 { 1 << 15 } else { 0 };
        raw_cpuid::CpuIdResult { eax: if number == 0x1a { 0 } else { 0x20 }, ebx: 0, ecx: 0, edx }
    };
    let unknown = open(&ramdisk, &hybrid, &mute).unwrap();
    assert!(unknown.core.is_none() && unknown.record.absent.unwrap().contains("is hybrid"));
    // Without efficient cores it is not hybrid, and leaf 0x1A is 0. A hypervisor may have hidden that it is.
    let alone = open(&ramdisk, &hybrid, &leaf(0)).unwrap();
    assert_eq!(alone.record.table.as_deref(), Some("lioncove_arl"));
    let below = Identity { hypervisor: Some("KVMKVMKVM".to_string()), ..hybrid };
    let hidden = open(&ramdisk, &below, &leaf(0)).unwrap();
    assert!(hidden.core.is_none() && hidden.record.absent.unwrap().contains("is hybrid"));
}

#[test]
fn a_processor_without_a_table_is_no_error() {
    let ramdisk = ramdisk(block());
    for (identity, part) in [
        (cpu("GenuineIntel", Maker::Intel, [6, 0x0e, 0]), "Intel family 0x6 model 0xe"),
        (cpu("CentaurHauls", Maker::Other, [6, 0x0f, 0]), "CentaurHauls family 0x6 model 0xf"),
    ] {
        let names = open(&ramdisk, &identity, &leaf(0)).unwrap();
        assert!(names.core.is_none() && names.error.is_none());
        assert_eq!((names.record.version, names.record.events), (Some(2), 0));
        assert!(names.record.absent.as_ref().unwrap().contains(part), "{:?}", names.record);
    }
}

#[test]
fn a_damaged_table_is_refused_and_raw_events_still_work() {
    let mut damaged = block().to_vec();
    damaged[1000] ^= 0x10;
    let whole = ramdisk(block());
    let newer = [&block()[..8], &[9, 0], &block()[10..]].concat();
    for (ramdisk, part) in [
        (ramdisk(&damaged), "its checksum is"),
        (ramdisk(&block()[..5000]), "is truncated"),
        (ramdisk(&[]), "less than the"),
        (ramdisk(&[0; 100]), "not an event table"),
        (ramdisk(&newer), "layout version 9"),
        (whole[..whole.len() - 1].to_vec(), "section 0 of the ramdisk is truncated"),
    ] {
        let names = open(&ramdisk, &skylake(), &leaf(0)).unwrap();
        let error = names.error.expect(part);
        assert_eq!(error.code, ErrorCode::EventTables);
        assert!(error.text.contains(part) && error.text.contains("raw events"), "{}", error.text);
        assert!(names.record.absent.unwrap().contains(part));
        let processor = Processor::intel(4, 8, 3);
        for raw in ["r00c0", "cpu/event=0x3c,umask=1/", "fixed1", "instructions"] {
            let request = parse_event(raw).unwrap();
            assert!(encode(&request, &processor, names.core.as_ref()).is_ok(), "{raw}");
        }
        let request = parse_event("l2_rqsts.miss").unwrap();
        let refusal = encode(&request, &processor, names.core.as_ref()).unwrap_err();
        assert!(refusal.to_string().contains("no event table"), "{refusal}");
    }
}

#[test]
fn without_tables_or_without_a_job_there_is_nothing_to_say() {
    let whole = ramdisk(block());
    let none = protocol::ramdisk::pack(&protocol::ramdisk::unpack(&whole).unwrap()).unwrap();
    let mut no_job = whole.clone();
    no_job[12] ^= 1;
    for ramdisk in [&none[..], &no_job, &[]] {
        assert!(open(ramdisk, &skylake(), &leaf(0)).is_none());
    }
}
