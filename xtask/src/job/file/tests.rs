use super::*;
use crate::job::JobError;
use proptest::prelude::*;
use protocol::job::{OnEnd, limits};

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
    let [ticks] = &second.criteria.expect[..] else { panic!() };
    let bounds = protocol::job::criteria::Bounds::between(1.0, 5.5);
    assert_eq!((&*ticks.figure, ticks.bounds), ("tsc", bounds));
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
    assert!(
        error.contains("`{a,b` is not an event: byte 0") && error.contains("line 3"),
        "{error}"
    );
}

#[test]
fn n1_engine_options_have_defaults_and_overrides() {
    let text = "[defaults]\ninitial-warmup = 9\nalignment-offset = 3\nno-memory = true\n\
                [[snippet]]\nasm = \"nop\"\n[[snippet]]\nasm = \"nop\"\nalignment-offset = 4\n\
                no-memory = false\ndrain-frontend = true\none-time-init = \"cld\"\nlate-init = \"stc\"";
    let mut job = parse(text, "x.toml").unwrap();
    let around =
        Around { initial_warmup: 9, alignment_offset: 3, no_memory: true, drain_frontend: false };
    assert_eq!(job.snippets[0].options.around, around);
    let other = Around { alignment_offset: 4, no_memory: false, drain_frontend: true, ..around };
    assert_eq!(job.snippets[1].options.around, other);
    assert_eq!(
        (job.snippets[1].one_time_init.as_str(), job.snippets[1].late_init.as_str()),
        ("cld", "stc")
    );
    let overrides = crate::job::Overrides {
        initial_warmup: Some(1),
        alignment_offset: Some(7),
        no_memory: true,
        drain_frontend: true,
        ..Default::default()
    };
    overrides.apply(&mut job).unwrap();
    let all =
        Around { initial_warmup: 1, alignment_offset: 7, no_memory: true, drain_frontend: true };
    assert!(job.snippets.iter().all(|snippet| snippet.options.around == all));
    let packed = crate::job::pack(&job, crate::job::Purpose::Qemu).unwrap();
    let protocol::job::Item::Snippet(snippet) = &packed.job.items[1] else { panic!() };
    assert_eq!(
        (&*snippet.setup.one_time_init, &*snippet.setup.late_init),
        (&[0xfc][..], &[0xf9][..])
    );
    assert_eq!((snippet.setup.initial_warmup, snippet.setup.alignment_offset), (1, 7));
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
        ("[[snippet]]\nasm = 'nop'\nexpect = 'x'", ["line 3, column 10", "a number, {"]),
    ] {
        let seen = message(text);
        assert!(seen.starts_with("job.toml: "), "{seen}");
        for part in expected {
            assert!(seen.contains(part), "{text}\n{seen}\nlacks {part}");
        }
    }
}

/// What is expected in words of job files, not by the names of types.
#[test]
fn no_mistake_is_told_by_the_name_of_a_type() {
    let snippet = "[[snippet]]\nasm = 'nop'";
    for text in ["defaults = 3", "[defaults]\nmachine = 3", "[defaults]\nonly = 3"] {
        let text = message(text);
        assert!(text.contains("invalid type: integer `3`, expected a table"), "{text}");
    }
    let keys = ["machine", "only", "exact", "history", "memory", "expect", "limits", "events"];
    let items = keys.map(|key| format!("{snippet}\n{key} = 3")).into_iter();
    let sections = ["snippet", "processors", "run", "count", "sample", "facts", "characterise"];
    for text in items.chain(sections.map(|section| format!("{section} = [3]"))) {
        let Err(error) = parse(&text, "x.toml") else { continue };
        let error = error.to_string();
        assert!(!error.contains("expected struct") && !error.contains("Raw"), "{error}");
    }
}

#[test]
fn a_section_with_too_few_brackets_is_named_with_both() {
    for (text, section) in [
        ("[snippet]\nasm = 'nop'", "[[snippet]]"),
        ("[sample]\nasm = 'nop'", "[[sample]]"),
        ("name = 'x'\n[run]\nname = 'y'", "[[run]]"),
    ] {
        let text = message(text);
        let hint = format!("there may be several of them: write {section}");
        assert!(text.contains("expected a sequence") && text.contains(&hint), "{text}");
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

#[test]
fn n5_options_of_the_machine_come_from_the_defaults_key_by_key() {
    let text = "[defaults]\nmachine = { ring = 3, tlb = \"flushed\" }\n\
                [[snippet]]\nasm = \"nop\"\n[[snippet]]\nasm = \"nop\"\nmachine = { ring = 0 }";
    let job = parse(text, "x.toml").unwrap();
    let decided = |index: usize| job.snippets[index].options.machine.decide().unwrap();
    use protocol::job::control::Ring;
    assert_eq!((decided(0).ring, decided(0).flush_tlb), (Ring::User, true));
    assert_eq!((decided(1).ring, decided(1).flush_tlb), (Ring::Kernel, true));
    let error = message("[[snippet]]\nasm = \"nop\"\nmachine = { ring = 3, colour = 1 }");
    assert!(error.contains("line 3") && error.contains("colour"), "{error}");
}

/// Nothing is done for an item before there are known to be as few as a job can have.
#[test]
fn too_many_items_are_refused_by_their_number_before_anything_is_done_for_them() {
    const MOST: usize = limits::MAX_ITEMS;
    let snippets = |count: usize| "[[snippet]]\nasm=''\n".repeat(count);
    let runs = "[[run]]\n".repeat(2);
    let forms = format!("[[characterise]]\nforms = [{}]\n", "'nop',".repeat(MOST + 1));
    for text in [snippets(MOST + 1), snippets(MOST - 1) + &runs, forms] {
        let error = parse(&text, "job.toml").map(|file| file.snippets.len()).unwrap_err();
        assert!(matches!(error, JobError::Limit { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("the number of items is 100001; it must be 0 to 100000"), "{text}");
    }
    assert_eq!(parse(&snippets(MOST), "job.toml").unwrap().snippets.len(), MOST);
}
