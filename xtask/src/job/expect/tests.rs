use super::super::file::{JobFile, parse};
use super::*;
use crate::job::{Purpose, pack};

fn job(text: &str) -> Result<JobFile, String> {
    parse(text, "x.toml").map_err(|error| error.to_string())
}

fn snippet(expect: &str) -> Result<Vec<(String, Bounds)>, String> {
    let text =
        format!("[[snippet]]\nasm = \"nop\"\nevents = [\"instructions\"]\nexpect = {expect}");
    let criteria = job(&text)?.snippets.remove(0).criteria;
    Ok(criteria.expect.into_iter().map(|one| (one.figure.into_owned(), one.bounds)).collect())
}

#[test]
fn an_expectation_is_of_ticks_or_of_named_figures() {
    let tsc = |bounds| Ok(vec![("tsc".to_string(), bounds)]);
    assert_eq!(snippet("3"), tsc(Bounds::exactly(3.0)));
    assert_eq!(snippet("{ min = 2.9, max = 3 }"), tsc(Bounds::between(2.9, 3.0)));
    assert_eq!(snippet("{ max = 3 }"), tsc(Bounds { min: None, max: Some(3.0) }));
    let several =
        snippet("{ instructions = 3, tsc = 4.5, \"L1-dcache-load-misses\" = { max = 1 } }");
    let expected = [
        ("L1-dcache-load-misses", Bounds { min: None, max: Some(1.0) }),
        ("instructions", Bounds::exactly(3.0)),
        ("tsc", Bounds::exactly(4.5)),
    ];
    assert_eq!(several, Ok(expected.map(|(name, bounds)| (name.to_string(), bounds)).to_vec()));
    for (bad, part) in [
        ("{ min = 1, loads = 2 }", "min and max stand beside `loads`"),
        ("{ loads = { least = 2 } }", "unknown field `least`"),
        ("\"3\"", "a number, { min = ..., max = ... }, or a table"),
        ("{ min = { max = 3 } }", "min and max are numbers"),
        ("{ loads = \"x\" }", "a number, or { min = ..., max = ... }"),
    ] {
        let error = snippet(bad).unwrap_err();
        assert!(error.contains(part) && error.contains("line 4"), "{bad}: {error}");
    }
}

/// Figures are floating point numbers, and nothing of an expectation is rounded.
#[test]
fn a_whole_number_that_no_figure_can_be_is_refused() {
    let largest = 1_u64 << 53;
    for form in ["N", "{ max = N }", "{ loads = N }", "{ loads = { min = N } }"] {
        let with = |number: u64| snippet(&form.replace('N', &number.to_string()));
        let error = with(largest + 1).unwrap_err();
        assert!(error.contains("9007199254740993 has too many digits"), "{form}: {error}");
        assert!(error.contains("line 4"), "{form}: {error}");
        assert!(with(largest).is_ok() && with(largest + 2).is_ok(), "{form}");
    }
}

fn refused(text: &str) -> Option<String> {
    pack(&job(text).unwrap(), Purpose::Qemu).err().map(|error| error.to_string())
}

const TASK: &str = "name = \"t\"\nasm = \"nop\"\n";

#[test]
fn c7_a_figure_that_there_cannot_be_is_refused_where_it_stands() {
    let snippet = "[[snippet]]\nasm = \"nop\"\nevents = [\"{loads,stores}:u\", \"cycles\"]\n";
    let exact = "[[snippet]]\nasm = \"nop\"\nexact = true\n";
    let history = "[[snippet]]\nasm = \"nop\"\nevents = [\"loads\"]\nhistory = 9\n";
    let processors = "[[processors]]\nasm = \"nop\"\nevents = [\"loads\"]\n";
    let count = "[[count]]\nevents = [\"loads:u\"]\nEXPECT\n[[count.task]]\n";
    let sets =
        "[[count]]\nEXPECT\n[[count.set]]\nname = \"s\"\nevents = [\"loads:u\"]\n[[count.task]]\n";
    let run = "[[run]]\nEXPECT\n[[run.task]]\n";
    let sample = "[[sample]]\nasm = \"nop\"\nevents = [\"loads\"]\nperiod = 99\n";
    let with = |item: &str, figure: &str| {
        let expect = format!("expect = {{ \"{figure}\" = 1 }}\n");
        match item.contains("EXPECT") {
            true => format!("{}{TASK}", item.replace("EXPECT", &expect)),
            false => format!("{item}{expect}"),
        }
    };
    for (item, good, bad) in [
        (snippet, &["tsc", "cycles", "loads"][..], "load"),
        (exact, &["loads", "imul", "instructions_32"], "tsc"),
        (history, &["loads", "loads, row 3"], "stores"),
        (processors, &["tsc", "loads", "loads on cpu 1", "loads, sum"], "loads, task t"),
        (count, &["loads:u", "loads:u, task t", "loads:u, kernel", "groups", "ticks"], "starts"),
        (sets, &["s: loads:u", "s: loads:u, cpu 0", "s: groups", "ticks"], "loads:u"),
        (run, &["turns, task t", "instructions:u", "ticks"], "turns, task u"),
        (sample, &["loads", "loads, samples", "loads, dropped"], "loads, kernel"),
    ] {
        for figure in good {
            assert_eq!(refused(&with(item, figure)), None, "{item} {figure}");
        }
        let error = refused(&with(item, bad)).unwrap();
        let names = match bad {
            "tsc" => "expect bounds TSC ticks, which are no figure here".to_string(),
            _ => format!("expect names `{bad}`, which is no figure here; there are: "),
        };
        assert!(error.starts_with("x.toml:1:1") && error.contains(&names), "{error}");
    }
}

#[test]
fn an_item_may_say_otherwise_than_the_job_and_the_command_line_has_the_last_word() {
    let text = format!(
        "allow-uncounted = true\n[[snippet]]\nasm = \"nop\"\n[[snippet]]\nasm = \"nop\"\nallow-uncounted = false\n\
         [[characterise]]\nforms = [\"nop\"]\nallow-uncounted = false\n\
         [[run]]\nallow-uncounted = false\n[[run.task]]\n{TASK}\
         [[count]]\nevents = [\"loads\"]\nallow-uncounted = false\n[[count.task]]\n{TASK}\
         [[sample]]\nasm = \"nop\"\nevents = [\"loads\"]\nperiod = 99\nallow-uncounted = false\n"
    );
    let mut file = job(&text).unwrap();
    let allowed = |file: &mut JobFile| {
        let base = file.allow_uncounted;
        {
            let all = file.items_mut().into_iter();
            all.map(|one| one.criteria().criteria(base).allow_uncounted).collect::<Vec<_>>()
        }
    };
    assert_eq!(allowed(&mut file), [true, false, false, false, false, false]);
    let line = crate::job::Overrides { allow_uncounted: true, ..Default::default() };
    line.apply(&mut file).unwrap();
    assert_eq!(allowed(&mut file), [true; 6]);
}

/// What the target gets, item by item, and what is left of it for another boot.
#[test]
fn criteria_travel_beside_the_items_that_they_are_for() {
    let text = "[[snippet]]\nasm = \"nop\"\n[[snippet]]\nasm = \"nop\"\nexpect = 7\n[[snippet]]\nasm = \"nop\"\n";
    let packed = pack(&job(text).unwrap(), Purpose::Qemu).unwrap();
    assert_eq!(packed.job.criteria.len(), 2, "items beyond the end have the default");
    let expected = |job: &protocol::job::Job| -> Vec<usize> {
        (0..3).map(|index| job.criteria(index).expect.len()).collect()
    };
    assert_eq!(expected(&packed.job), [0, 1, 0]);
    assert_eq!(expected(&packed.rest(1, None).unwrap().job), [1, 0, 0]);
    assert_eq!(expected(&packed.rest(2, None).unwrap().job), [0, 0, 0]);
    let unpacked = protocol::ramdisk::unpack(&packed.bytes).unwrap();
    assert_eq!(unpacked.criteria, packed.job.criteria);
    let error = refused("[[snippet]]\nasm = \"nop\"\nexpect = { min = 2, max = 1 }").unwrap();
    assert!(error.contains("expects `tsc` to be at least 2 and at most 1"), "{error}");
}

/// What is expected of a throughput is so of each instruction, of which the body has several.
#[test]
fn n3_what_is_expected_of_a_form_is_so_of_each_instruction() {
    let text = "[[snippet]]\nthroughput = \"add r64, r64\"\nexpect = { max = 2 }";
    let packed = pack(&job(text).unwrap(), Purpose::Qemu).unwrap();
    assert_eq!(packed.job.criteria(0).expect[0].bounds.max, Some(16.0));
}
