//! Energy of a count.

use super::*;

#[test]
fn s4_energy_is_in_every_form_with_its_resolution() {
    let mut report = report(TaskEnd::Exit);
    let Record::Count(count) = &mut report.records[0].record else { panic!() };
    count.energy.push(protocol::record::CountedEnergy {
        event: "energy-pkg".into(),
        register: "MSR 0x611".into(),
        joules: 1.5,
        resolution: 0.0625,
        units: 24_576,
        unit: 14,
        ticks: 100_663_296,
        update: 1 << 20,
        ..Default::default()
    });
    let text = |format| {
        let text = render(&report, &Context::default(), format);
        anstream::adapter::strip_str(&text).to_string()
    };
    let line =
        "energy-pkg: 1.5 J ± 62.5 mJ in 100663296 TSC ticks, of everything that ran (MSR 0x611)";
    for format in [Format::Table, Format::Html] {
        assert!(text(format).contains(line), "{}", text(format));
    }
    let csv = text(Format::Csv);
    assert!(csv.contains(",energy-pkg,1.5,1.4375,1.5,1.5625,1,1,false,"), "{csv}");
    let tap = text(Format::Tap);
    assert!(tap.contains("joules: 1.5") && tap.contains("resolution: 0.0625"), "{tap}");
}
