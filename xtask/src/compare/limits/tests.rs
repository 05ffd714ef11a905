use super::*;
use crate::compare::CompareError;
use crate::limits::Worse;
use std::collections::{BTreeMap, BTreeSet};

fn file(text: &str) -> Result<LimitsFile, String> {
    LimitsFile::parse(text, "limits.toml").map_err(|error| error.to_string())
}

fn by(by: f64) -> Limit {
    Limit { by: Some(by), ..Limit::default() }
}

#[test]
fn a_limit_is_a_number_a_share_or_a_table() {
    let text = r#"[limits]
        a = 3
        b = 0.5
        c = "5 %"
        d = "0.1%"
        e = { by = 2, percent = 1, worse = "less" }
        f = { worse = "never" }"#;
    let table: BTreeMap<String, BTreeMap<String, Limit>> = toml::from_str(text).unwrap();
    let of = |name: &str| table["limits"][name];
    assert_eq!([of("a"), of("b")], [by(3.0), by(0.5)]);
    let percent = |name: &str| (of(name).percent, of(name).by);
    assert_eq!([percent("c"), percent("d")], [(Some(5.0), None), (Some(0.1), None)]);
    assert_eq!(of("e").worse, Some(Worse::Less));
    assert!(of("a").is_bound() && of("c").is_bound() && !of("f").is_bound());
    // The wider of the two holds, and a share is one of the size, not of the sign.
    assert_eq!(
        [of("e").allowed(10.0), of("e").allowed(1000.0), of("e").allowed(-1000.0)],
        [2.0, 10.0, 10.0]
    );
    let again: Limit = serde_json::from_value(serde_json::to_value(of("e")).unwrap()).unwrap();
    assert_eq!(again, of("e"));
}

#[test]
fn every_mistake_is_named_with_its_place() {
    for (text, parts) in [
        ("limit = 3", ["line 1", "unknown field `limit`"]),
        ("[limits]\na = { bye = 3 }", ["line 2", "unknown field `bye`"]),
        ("[limits]\na = { worse = 'up' }", ["line 2", "unknown variant `up`"]),
        ("[limits]\na = -1", ["line 2", "the limit is -1; it must be 0 or more"]),
        ("[limits]\na = nan", ["line 2", "the limit is NaN"]),
        ("[limits]\na = '-5%'", ["line 2", "percent is -5; it must be 0 to 100000"]),
        ("[limits]\na = '5'", ["line 2", "`5` is not a limit"]),
        ("[limits]\na = {}", ["line 2", "it is empty"]),
        ("[limits]\na = true", ["line 2", "a number, a text like"]),
        ("[[item]]\nlimits = { a = 1 }", ["line 1", "missing field `name`"]),
        ("[[item]]\nname = 'x'", ["line 1", "missing field `limits`"]),
        ("[[item]]\nname = 'x'\nlimits = {}\nmax = 3", ["line 4", "unknown field `max`"]),
        (
            "[[item]]\nname='x'\nlimits={a=1}\n[[item]]\nname='x'\nlimits={b=1}",
            ["two [[item]] are for `x`", ""],
        ),
        ("", ["it has no limits", ""]),
        ("= 3", ["line 1", ""]),
    ] {
        let error = file(text).map(|_| ()).unwrap_err();
        assert!(error.starts_with("limits.toml: "), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{text}\n{error}");
    }
    let missing = read(std::path::Path::new("/nonexistent/limits.toml")).map(|_| ());
    assert!(matches!(missing, Err(CompareError::Read { .. })));
}

#[test]
fn the_more_particular_goes_before_the_general() {
    let text = r#"
        [limits]
        "*" = 1
        tsc = 2
        "L1-*" = 3
        [[item]]
        name = "memcpy *"
        limits = { tsc = 4 }
        [[item]]
        name = "memcpy 6*"
        limits = { tsc = 5, "in*" = 6 }
        [[item]]
        name = "memcpy 64"
        limits = { instructions = 7 }"#;
    let own = |text: &str| toml::from_str::<LimitTable>(text).unwrap();
    let limits = Limits { job: own("tsc = 10\ncycles = 11"), file: file(text).unwrap() };
    let of =
        |item, figure| limits.find(item, &LimitTable::default(), figure).and_then(|limit| limit.by);
    assert_eq!(of("add", "tsc"), Some(2.0));
    assert_eq!(of("add", "L1-dcache-loads"), Some(3.0));
    assert_eq!(of("add", "anything"), Some(1.0));
    assert_eq!(of("memcpy 8", "tsc"), Some(4.0));
    assert_eq!(of("memcpy 65", "tsc"), Some(5.0));
    // An item's own entry says nothing of ticks, so the next one does.
    assert_eq!(of("memcpy 64", "tsc"), Some(5.0));
    assert_eq!(of("memcpy 64", "instructions"), Some(7.0));
    assert_eq!(of("memcpy 65", "instructions"), Some(6.0));
    // Without a file the item's own go before the job's.
    let job = Limits { file: LimitsFile::default(), ..limits };
    let of = |figure| job.find("add", &own("tsc = 12"), figure).and_then(|limit| limit.by);
    assert_eq!([of("tsc"), of("cycles"), of("loads")], [Some(12.0), Some(11.0), None]);
}

#[test]
fn a_name_with_wild_cards_in_it_is_itself_too() {
    let table: LimitTable = toml::from_str("'jmp *rax' = 1\n'jmp ?' = 2").unwrap();
    let of = |name| table.find(name).map(|(pattern, _)| pattern);
    assert_eq!(of("jmp *rax"), Some("jmp *rax"));
    assert_eq!(of("jmp x"), Some("jmp ?"));
    assert_eq!(of("jmp xy"), None);
}

#[test]
fn an_entry_that_is_for_nothing_is_refused_with_what_is_near() {
    let figures = BTreeSet::from(["tsc", "instructions"]);
    let known = [("memcpy 64", figures), ("task", BTreeSet::from(["turns, task a"]))];
    let check = |text: &str| file(text).unwrap().check(&known).map_err(|error| error.to_string());
    for good in [
        "[limits]\n'*' = 1\ntsc = 2",
        "[limits]\n'turns, *' = 1",
        "[[item]]\nname = 'mem*'\nlimits = { 'instr*' = 1 }",
    ] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    for (bad, parts) in [
        (
            "[limits]\ninstrutions = 1",
            ["`instrutions` of [limits]", "the most similar is `instructions`"],
        ),
        ("[limits]\n'xyz*' = 1", ["`xyz*` of [limits]", "no figure of the reports matches it"]),
        (
            "[[item]]\nname = 'mempcy 64'\nlimits = { tsc = 1 }",
            ["[[item]] `mempcy 64`", "the most similar is `memcpy 64`"],
        ),
        (
            "[[item]]\nname = 'task'\nlimits = { tsc = 1 }",
            ["`tsc` of [[item]] `task`", "no figure of such an item"],
        ),
    ] {
        let error = check(bad).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{bad}\n{error}");
    }
}
