use super::*;
use proptest::prelude::*;

const GOOD: &str = r#"
name = "example"
baud = 9600
on-end = "power-off"

[defaults]
runs = 7
unroll = 10

[[snippet]]
asm = "add rax, rbx"

[[snippet]]
name = "chase"
init = "mov [r14], r14"
asm = '''
mov r14, [r14]
'''
syntax = "intel"
unroll = 20
loop = 3
difference = "empty"
values = true
expect = { min = 1, max = 5.5 }
"#;

#[test]
fn defaults_apply_unless_a_snippet_says_otherwise() {
    let job = parse(GOOD, "x/example.toml").unwrap();
    assert_eq!((job.name.as_str(), job.baud, job.on_end), ("example", 9600, OnEnd::PowerOff));
    let [first, second] = &job.snippets[..] else { panic!() };
    assert_eq!(first.name, "add rax, rbx");
    assert_eq!((first.options.runs, first.options.unroll, first.options.loop_count), (7, 10, 0));
    assert_eq!((second.options.runs, second.options.unroll, second.options.loop_count), (7, 20, 3));
    assert_eq!(second.options.difference, Difference::Empty);
    assert_eq!(second.expect, Some(Expect { min: 1.0, max: 5.5 }));
    assert_eq!(second.asm.trim(), "mov r14, [r14]");
}

#[test]
fn a_file_without_name_is_named_after_itself() {
    assert_eq!(parse("", "some/where/probe.toml").unwrap().name, "probe");
}

#[test]
fn k1_a_job_can_be_for_the_conformance_suite() {
    let job = parse("kind = \"conformance\"", "x.toml").unwrap();
    assert_eq!(job.checks, Some(vec![]));
    let job = parse("kind = \"conformance\"\nchecks = [\"pmi.*\"]", "x.toml").unwrap();
    assert_eq!(job.checks, Some(vec!["pmi.*".to_string()]));
    assert_eq!(parse(GOOD, "x.toml").unwrap().checks, None);
    let error = message("name = \"x\"\nchecks = [\"pmi.*\"]");
    assert!(error.contains("line 2, column 10: checks needs kind = \"conformance\""), "{error}");
}

#[test]
fn p2_events_are_names_or_raw_numbers() {
    let text = "[defaults]\nevents = [\"cycles\"]\n[[snippet]]\nasm = \"\"\n[[snippet]]\nasm = \"\"\n\
                events = [\"instructions\", \"0xc4.0x20\"]";
    let job = parse(text, "x.toml").unwrap();
    let events = |index: usize| -> Vec<String> {
        job.snippets[index].options.events.iter().map(ToString::to_string).collect()
    };
    assert_eq!(events(0), ["cycles"]);
    assert_eq!(events(1), ["instructions", "0xc4.0x20"]);
    let error = message("[[snippet]]\nasm = \"\"\nevents = [\"cycles:u\", \"{a,b\"]");
    assert!(error.contains("`{a,b` is no event: byte 0") && error.contains("line 3"), "{error}");
}

fn message(text: &str) -> String {
    parse(text, "job.toml").unwrap_err().to_string()
}

#[test]
fn every_mistake_names_its_line_and_column() {
    for (text, expected) in [
        ("name = ", ["line 1, column 8", ""]),
        ("\nnamme = 'x'", ["line 2, column 1", "unknown field `namme`"]),
        ("[[snippet]]\nasm = 'nop'\nunrol = 3", ["line 3, column 1", "unknown field `unrol`"]),
        ("[[snippet]]\nasm = 'nop'\nunroll = -3", ["line 3, column 10", "-3"]),
        ("[[snippet]]\nasm = 'nop'\nunroll = 'x'", ["line 3, column 10", "invalid type"]),
        ("[[snippet]]\nname = 'x'", ["line 1", "missing field `asm`"]),
        ("\n\nbaud = 12345", ["line 3, column 8", "must divide 115200"]),
        ("on-end = 'explode'", ["line 1, column 10", "unknown variant `explode`"]),
        ("[defaults]\nname = 'x'", ["line 2, column 1", "unknown field `name`"]),
        ("[[snippet]]\nasm = 'nop'\nexpect = 'x'", ["line 3, column 10", "a number, or"]),
    ] {
        let seen = message(text);
        assert!(seen.starts_with("job.toml: "), "{seen}");
        for part in expected {
            assert!(seen.contains(part), "{text}\n{seen}\nlacks {part}");
        }
    }
}

#[test]
fn a_job_for_a_newer_version_is_refused_by_its_number() {
    assert!(parse("version = 1", "j").is_ok());
    assert_eq!(
        message("version = 2"),
        "job.toml: the job has version 2; this barecount knows up to 1"
    );
}

#[test]
fn places_of_texts_count_their_own_lines() {
    let job = parse(GOOD, "j").unwrap();
    let spans = job.snippets[1].spans.as_ref().unwrap();
    assert_eq!((spans.whole.line, spans.init.line), (13, 15));
    assert_eq!((spans.asm.line, spans.asm.first_line), (16, Some(17)));
    assert_eq!(spans.init.first_line, None);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,300}") {
        let _ = parse(&text, "j");
    }

    #[test]
    fn no_cut_of_a_good_job_makes_it_panic(at in 0..GOOD.len()) {
        let _ = parse(&GOOD[..at], "j");
    }
}
