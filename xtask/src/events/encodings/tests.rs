use super::*;
use crate::events::Block;

fn on<T>(table: &str, see: impl FnOnce(&Core<'_>) -> T) -> T {
    see(&Block::embedded().tables().named(table).unwrap())
}

#[test]
fn p2_an_event_as_it_is_written_becomes_registers() {
    for (table, text, control, counters, msr) in [
        ("skylake", "l2_rqsts.miss:c=1", "0x1433f24", "0xff", ""),
        ("skylake", "L2_RQSTS_MISS:u", "0x413f24", "0xff", ""),
        ("skylake", "r20c4", "0x4320c4", "0xff", ""),
        ("skylake", "cpu/event=0xc4,umask=0x20,inv,cmask=2/k", "0x2c220c4", "0xff", ""),
        ("zen4", "ls_dispatch.ld_dispatch", "0x430129", "0x3f", ""),
    ] {
        let rows = on(table, |core| encoded(core, text)).unwrap_or_else(|e| panic!("{e}"));
        let general = rows.iter().find(|row| row.fixed.is_none()).unwrap();
        let seen = (general.control.as_str(), general.counters.as_str(), general.msr.as_str());
        assert_eq!(seen, (control, counters, msr), "{text}");
    }
    let rows = on("skylake", |core| encoded(core, "inst_retired.any:u")).unwrap();
    assert_eq!((rows[0].fixed, rows[0].control.as_str()), (Some(0), "0x2"));
}

#[test]
fn what_cannot_be_had_says_why() {
    for (text, part) in [
        ("l2_rqsts.mis", "near it are L2_RQSTS.MISS"),
        ("l2_rqsts.miss:c=999", "999"),
        ("zen4::cycles", "zen4"),
        ("a,,b", "byte 2: an event is missing"),
        ("zen4::a,skylake::b", "make two lists"),
    ] {
        let error = on("skylake", |core| encoded(core, text)).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

/// Every register that the list shows is read back to the event that it was shown for.
#[test]
fn every_listed_register_decodes_to_its_event() {
    for table in ["skylakex", "sapphirerapids", "zen4", "lioncove_arl"] {
        on(table, |core| {
            for row in list::events(core, None) {
                if row.select.is_empty() {
                    continue;
                }
                let event = core.find(&row.name).unwrap();
                if event.ways().len() > 1 && row.msr.is_empty() {
                    // An offcore event without a value of its own: the MSR alone says what is counted.
                    continue;
                }
                let msrs: Vec<MsrValue> = event.ways()[0]
                    .msr
                    .map(|address| MsrValue { address, value: event.msr_value })
                    .into_iter()
                    .collect();
                let Number(value) = row.select.parse().unwrap();
                let readings = decoded(core, value, &msrs).unwrap();
                let found = readings.iter().any(|r| r.event == row.name && r.closeness == "exact");
                assert!(found, "{table} {}: {:?}", row.name, readings.first());
            }
        });
    }
}

#[test]
fn a_register_that_names_nothing_is_read_as_its_code() {
    let readings = on("skylakex", |core| decoded(core, 0x43_00ff, &[])).unwrap();
    assert_eq!(readings.last().unwrap().closeness, "raw");
    // What no text can say, and what this processor refuses, is told.
    let readings = on("zen4", |core| decoded(core, 0x100_0053_00c0, &[])).unwrap();
    assert_eq!((readings[0].text.as_str(), readings[0].closeness), ("ex_ret_instr", "modified"));
    assert_eq!(readings[0].differs, "INT, guest only");
    let word = readings.last().unwrap();
    assert_eq!((word.text.as_str(), word.differs.as_str()), ("0x100005300c0", ""));
    let readings = on("zen4", |core| decoded(core, 0x4000c0, &[])).unwrap();
    assert!(readings.iter().all(|row| row.differs == "USR, OS" && row.refused.is_empty()));
    let readings = on("icelake", |core| decoded(core, 0x63_00c0, &[])).unwrap();
    assert!(readings[0].refused.contains("no event of its table uses it"), "{readings:?}");
    let error = on("zen4", |core| decoded(core, 1 << 21, &[])).unwrap_err().to_string();
    assert!(
        error.contains("--decode: 0x200000") && error.contains("reserved in an AMD"),
        "{error}"
    );
}

#[test]
fn numbers_and_msrs_have_their_forms() {
    assert_eq!("0x4300c0".parse(), Ok(Number(0x43_00c0)));
    assert_eq!("12".parse(), Ok(Number(12)));
    assert!("0x".parse::<Number>().is_err() && "x".parse::<Number>().is_err());
    let msr = MsrValue { address: 0x1a6, value: 0x10003 };
    assert_eq!("0x1a6=0x10003".parse(), Ok(Msr(msr)));
    for bad in ["0x1a6", "0x1ffffffff=1", "=1", "1="] {
        assert!(bad.parse::<Msr>().is_err(), "{bad}");
    }
}

#[test]
fn p2_a_list_shows_each_event_its_group_and_what_cannot_be_had() {
    let text = "skx::inst_retired.any_p:u,{r20c4,nosuch},uops_issued.s*:k,{a}";
    let rows = on("skylakex", |core| encoded(core, text)).unwrap();
    let seen: Vec<_> = rows
        .iter()
        .filter(|row| row.fixed.is_none())
        .map(|row| (row.text.as_str(), row.group, row.control.as_str(), row.refused.is_empty()))
        .collect();
    assert_eq!(
        seen,
        [
            ("skx::inst_retired.any_p:u", None, "0x4100c0", true),
            ("r20c4", Some(1), "0x4320c4", true),
            ("nosuch", Some(1), "", false),
            ("UOPS_ISSUED.SLOW_LEA:k", None, "0x42200e", true),
            ("UOPS_ISSUED.STALL_CYCLES:k", None, "0x1c2010e", true),
            ("a", None, "", false),
        ]
    );
    assert!(rows.iter().any(|row| row.refused.contains("there is no event \"nosuch\"")));
}
