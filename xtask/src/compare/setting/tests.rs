use super::super::saved::tests::{document, saved};
use super::*;
use serde_json::{Value, json};

fn machine() -> Value {
    json!({ "type": "machine", "vendor": "GenuineIntel", "brand": "Core X", "family": 6, "model": 94, "stepping": 3,
        "microcode": "0x1", "topology": { "apic_id": 0, "threads_per_core": 1, "threads_per_package": 1 },
        "pmu": { "architecture": "intel", "version": 4, "counters": 8, "counter_bits": 48, "fixed_counters": 3,
                 "fixed_counter_bits": 48, "features": [], "errata": [], "conflicts": [] },
        "event_tables": { "version": 1, "table": "skylake", "source": "V59", "events": 5 },
        "tsc": { "hz": 2_000_000_000u64, "source": "cpuid", "invariant": true },
        "apic": { "mode": "xapic", "timer_hz": 1 }, "processors": [], "memory_bytes": 1 })
}

/// A report of `machine` whose run is changed by `change`.
fn report(machine: Value, change: impl Fn(&mut Value)) -> Saved {
    let mut value = document(vec![machine]);
    value["run"] = json!({
        "tools": { "barecount": "0.1.0", "rustc": "1.95.0", "qemu": "10.0.2" },
        "job": { "name": "j", "file": "j.toml", "text": "0x1", "items": [] },
    });
    change(&mut value["run"]);
    saved(&value)
}

fn told(old: &Saved, new: &Saved) -> Vec<String> {
    differences(old, new)
        .into_iter()
        .map(|one| format!("{}: {}, now {}", one.what, one.old, one.new))
        .collect()
}

#[test]
fn x4_everything_that_figures_depend_on_is_told_if_it_differs() {
    let same = report(machine(), |_| {});
    assert_eq!(told(&same, &same), [""; 0]);
    let changes: [(&str, Value, &str); 9] = [
        (
            "/model",
            json!(95),
            "processor: Core X (GenuineIntel family 0x6 model 0x5e stepping 3), now",
        ),
        ("/core_type", json!("atom"), "kind of core: not said, now atom"),
        ("/microcode", json!("0x2"), "microcode: 0x1, now 0x2"),
        (
            "/pmu/version",
            json!(5),
            "PMU: Intel version 4, 8 counters of 48 bits and 3 fixed of 48, now Intel version 5,",
        ),
        ("/emulated_pmu", json!({ "model": 1, "tsc_shift": 0 }), "now emulated, Intel version 4"),
        ("/pmu", Value::Null, "now none"),
        ("/event_tables/source", json!("V60"), "event table: skylake (V59), now skylake (V60)"),
        ("/hypervisor", json!("KVM"), "hypervisor: not said, now KVM"),
        ("/tsc/hz", json!(3_000_000_000u64), "rate of the TSC: 2000.00 MHz, now 3000.00 MHz"),
    ];
    for (place, value, part) in changes {
        let mut other = machine();
        let (parent, key) = place.rsplit_once('/').unwrap();
        other.pointer_mut(parent).unwrap()[key] = value;
        let all = told(&same, &report(other, |_| {}));
        assert!(all.len() == 1 && all[0].contains(part), "{place}: {all:?}");
    }
    let runs: [(&str, Value, &str); 8] = [
        ("/accelerator", json!("kvm"), "accelerator: not said, now kvm"),
        ("/boot", json!("uefi"), "boot: not said, now uefi"),
        ("/ticks_per_instruction", json!(64), "TSC ticks an instruction: not said, now 64"),
        ("/job/name", json!("k"), "job: j, now k"),
        ("/job/text", json!("0x2"), "job text: digest 0x1, now digest 0x2"),
        ("/tools/barecount", json!("0.2.0"), "barecount: 0.1.0, now 0.2.0"),
        ("/tools/rustc", json!("1.96.0"), "compiler: rustc 1.95.0, now rustc 1.96.0"),
        ("/tools/qemu", json!("11.1.3"), "QEMU: 10.0.2, now 11.1.3"),
    ];
    for (place, value, part) in runs {
        let (parent, key) = place.rsplit_once('/').unwrap();
        let other = report(machine(), |run| run.pointer_mut(parent).unwrap()[key] = value.clone());
        assert_eq!(told(&same, &other), [part], "{place}");
    }
}

#[test]
fn a_report_that_says_less_is_told_to() {
    let same = report(machine(), |_| {});
    let bare = report(machine(), |run| *run = json!({}));
    let all = told(&same, &bare);
    assert!(all.contains(&"compiler: rustc 1.95.0, now not said".to_string()), "{all:?}");
    assert!(all.contains(&"job text: digest 0x1, now not said".to_string()), "{all:?}");
}

#[test]
fn ticks_are_compared_where_they_are_the_same() {
    let with = |change: &dyn Fn(&mut Value), ticks: Option<u64>| {
        let mut own = machine();
        change(&mut own);
        report(own, |run| run["ticks_per_instruction"] = json!(ticks))
    };
    let same = with(&|_| {}, None);
    let told = |new: &Saved| ticks_differ(&same, new).unwrap_or_default();
    assert_eq!(told(&same), "");
    // The rate was measured again.
    assert_eq!(told(&with(&|own| own["tsc"]["hz"] = json!(2_001_000_000u64), None)), "");
    assert!(
        told(&with(&|own| own["tsc"]["hz"] = json!(2_100_000_000u64), None))
            .contains("another rate")
    );
    assert!(told(&with(&|own| own["brand"] = json!("Core Y"), None)).contains("another machine"));
    assert!(
        told(&with(&|_| {}, Some(1)))
            .contains("those of a clock in the old report, 1 for each instruction in the new one")
    );
    // Counted instructions are that on every machine and at every rate.
    let counted = with(&|_| {}, Some(1));
    let elsewhere = with(&|own| own["brand"] = json!("Core Y"), Some(1));
    assert_eq!(ticks_differ(&counted, &elsewhere), None);
    assert!(ticks_differ(&counted, &with(&|_| {}, Some(64))).is_some());
    assert!(
        ticks_differ(&saved(&json!({ "run": {}, "exit_code": 0, "records": [] })), &same).is_some()
    );
}
