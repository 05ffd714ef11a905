use super::super::file::parse;
use super::super::{Overrides, Purpose, pack};
use super::*;
use protocol::job::Item;

fn snippet(lines: &str) -> Result<SnippetFile, String> {
    let text = format!("[[snippet]]\nasm = \"nop\"\n{lines}");
    let mut file = parse(&text, "x.toml").map_err(|error| error.to_string())?;
    Ok(file.snippets.remove(0))
}

fn options(value: &str) -> Result<Option<HistoryOptions>, String> {
    snippet(&format!("history = {value}")).map(|snippet| snippet.history)
}

#[test]
fn m16_a_history_is_read_and_what_is_wrong_with_it_has_its_place() {
    let plain = HistoryOptions::of(200);
    assert_eq!((plain.step, plain.clock.to_string()), (1, "cycles".to_string()));
    assert_eq!(options("200"), Ok(Some(plain.clone())));
    assert_eq!(options("{ cycles = 200 }"), Ok(Some(plain)));
    assert_eq!(options("false"), Ok(None));
    let all = "{ cycles = 90, step = 3, event = \"instructions:u\", end-to-end = true }";
    let all = options(all).unwrap().unwrap();
    assert_eq!((all.cycles, all.step, all.end_to_end), (90, 3, true));
    assert_eq!(all.clock.to_string(), "instructions:u");
    for (bad, part) in [
        ("true", "a number of cycles, false, or a table"),
        ("-1", "1 to 1000000 cycles"),
        ("\"200\"", "a number of cycles, false, or a table"),
        ("{ step = 2 }", "`cycles`"),
        ("{ cycle = 2 }", "`cycle`"),
        ("{ cycles = 2, event = \"a,b\" }", "the clock `a,b` names 2 events"),
        ("{ cycles = 2, event = \"{a\" }", "`{a` is not an event"),
    ] {
        let error = options(bad).unwrap_err();
        assert!(error.contains("line 3") && error.contains(part), "{bad}: {error}");
    }
}

#[test]
fn m16_a_history_runs_one_copy_unless_the_job_says_otherwise() {
    assert_eq!(snippet("history = 5").unwrap().options.unroll, 1);
    assert_eq!(snippet("history = 5\nunroll = 7").unwrap().options.unroll, 7);
    assert_eq!(snippet("").unwrap().options.unroll, 100);
    let line = HistoryOverrides { history: Some(9), ..Default::default() };
    let over = |lines: &str| {
        let mut snippet = snippet(lines).unwrap();
        line.apply(&mut snippet).unwrap();
        (snippet.options.unroll, snippet.history.unwrap().cycles)
    };
    assert_eq!((over(""), over("unroll = 100")), ((1, 9), (100, 9)));
    assert_eq!(over("history = 5"), (1, 9));
}

#[test]
fn m16_options_of_histories_need_one() {
    let line = HistoryOverrides { history_step: Some(2), ..Default::default() };
    let error = line.apply(&mut snippet("").unwrap()).unwrap_err().to_string();
    assert!(error.contains("--history-step") && error.contains("give --history too"), "{error}");
    let mut with = snippet("history = 8").unwrap();
    let clock = "branches".parse().ok();
    HistoryOverrides { end_to_end: true, history_event: clock, ..line }.apply(&mut with).unwrap();
    let history = with.history.unwrap();
    assert_eq!((history.cycles, history.step, history.end_to_end), (8, 2, true));
    assert_eq!(history.clock.to_string(), "branches");
}

#[test]
fn m16_what_a_history_does_not_go_with_is_refused() {
    let refused = |text: &str| {
        let file = parse(text, "x.toml").unwrap();
        pack(&file, Purpose::Qemu).unwrap_err().to_string()
    };
    for (text, part) in [
        ("[[snippet]]\nasm = \"nop\"\nhistory = 5\nexact = true", "give one of the two"),
        ("[[processors]]\nasm = \"nop\"\nhistory = 5", "[[processors]]"),
        ("[[snippet]]\nlatency = \"add r64, r64\"\nhistory = 5", "instruction forms"),
        ("[[snippet]]\nasm = \"nop\"\nhistory = 5\nvalues = true", "values"),
        ("[[snippet]]\nasm = \"nop\"\nhistory = 0", "history.cycles is 0"),
    ] {
        let error = refused(text);
        assert!(error.contains("x.toml:1:1") && error.contains(part), "{text}: {error}");
    }
}

#[test]
fn m16_the_item_says_what_the_job_says() {
    let text =
        "[[snippet]]\nasm = \"nop\"\nhistory = { cycles = 90, step = 3, event = \"branches\" }";
    let mut file = parse(text, "x.toml").unwrap();
    Overrides::default().apply(&mut file).unwrap();
    let packed = pack(&file, Purpose::Qemu).unwrap();
    let [Item::History(history)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
    assert_eq!((history.cycles, history.step, &*history.clock), (90, 3, "branches"));
    assert_eq!((history.snippet.unroll, history.end_to_end), (1, false));
}
