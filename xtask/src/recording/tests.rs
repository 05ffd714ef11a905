use super::*;
use ::recorded::cores;

fn text_of(name: &str) -> String {
    let core = cores::named(name).unwrap_or_else(|| panic!("{name}"));
    let line = |(leaf, [a, b, c, d]): (recorded::Leaf, recorded::Registers)| {
        format!(
            "CPUID {:08X}: {a:08X}-{b:08X}-{c:08X}-{d:08X} [SL {:02X}]\n",
            leaf.leaf, leaf.subleaf
        )
    };
    core.leaves.all().map(line).collect()
}

fn read(content: &str) -> Result<Recorded, RecordingError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.txt");
    std::fs::write(&file, content).unwrap();
    Recorded::read(&file)
}

#[test]
fn x10_a_recording_is_named_and_what_is_inferred_is_listed() {
    let zen4 = read(&text_of("amd-zen4-amd-ryzen-5-7600x-6-core-processor")).unwrap();
    assert_eq!(zen4.name, "AMD Ryzen 5 7600X 6-Core Processor");
    assert_eq!((zen4.nearest, zen4.own, zen4.counters), (Model::Zen4, true, 6));
    assert_eq!(zen4.vendor(), Vendor::Amd);
    assert!(
        zen4.inferred.iter().any(|line| line == "events: those of zen4"),
        "{:?}",
        zen4.inferred
    );
    let atom = read(&text_of("intel-x86-atom-silvermont-intel-celeron-cpu-j1900")).unwrap();
    assert_eq!((atom.nearest, atom.own, atom.counters), (Model::Haswell, false, 2));
    let said = "events: the architectural ones; those of its microarchitecture count nothing";
    assert!(atom.inferred.iter().any(|line| line == said), "{:?}", atom.inferred);
}

#[test]
fn x10_processors_that_differ_in_their_numbers_alone_are_stored_once() {
    let one = text_of("intel-x86-64-skylake-intel-core-i5-6400t-cpu");
    let other = text_of("intel-x86-64-nehalem-intel-core-i7-cpu-920");
    let twice = read(&format!(
        "{one}{}",
        one.replace("CPUID 00000001: 000506E3-0", "CPUID 00000001: 000506E3-1")
    ));
    assert_eq!(twice.unwrap().processors.len(), 1);
    let mixed = read(&format!("{one}{other}{other}")).unwrap();
    assert_eq!(mixed.processors.len(), 2);
    assert!(mixed.inferred.iter().any(|line| line.starts_with("3 processors are recorded")));
}

#[test]
fn x10_what_is_no_recording_is_refused_with_the_reason() {
    let cases = [
        ("hello", "it has no line of CPUID"),
        ("CPUID 00000000: 1-2-3", "line 1: it has 3 registers"),
        ("{\"report\":1,\"run\":{},\"exit_code\":0,\"records\":[]}", "has no machine record"),
    ];
    for (content, part) in cases {
        let error = read(content).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let old = read(&text_of("intel-ia-32-netburst-intel-celeron-cpu-215")).unwrap_err().to_string();
    assert!(old.contains("processor 0 cannot be emulated: it is a 32-bit processor"), "{old}");
    let error = Recorded::read(Path::new("/nowhere/x")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nowhere/x: "), "{error}");
    let one = text_of("intel-x86-64-skylake-intel-core-i5-6400t-cpu");
    let other = text_of("intel-x86-64-nehalem-intel-core-i7-cpu-920");
    let many = read(&format!("{one}{other}").repeat(20)).unwrap_err().to_string();
    assert!(many.contains("40 processors with different CPUID values do not fit"), "{many}");
}

#[test]
fn x10_a_reports_machine_record_is_a_recording_of_less() {
    let log = include_str!("machine.log");
    let zen2 = read(log).unwrap();
    assert_eq!(zen2.nearest, Model::Zen2);
    let less = "CPUID from the machine record; every other leaf is 0";
    assert!(zen2.inferred.iter().any(|line| line == less), "{:?}", zen2.inferred);
}

#[test]
fn x10_a_file_without_the_slot_is_no_hypervisor() {
    let zen4 = read(&text_of("amd-zen4-amd-ryzen-5-7600x-6-core-processor")).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = zen4.fill(file.path()).unwrap_err().to_string();
    assert!(error.contains("has no place for it"), "{error}");
    let mut bytes = slot::MARK.to_vec();
    bytes.resize(slot::BYTES, 0);
    std::fs::write(file.path(), bytes).unwrap();
    zen4.fill(file.path()).unwrap();
    assert_eq!(std::fs::read(file.path()).unwrap()[16..20], [1, 0, 0, 0]);
}
