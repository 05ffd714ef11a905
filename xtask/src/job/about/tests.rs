use crate::job::{About, JobError, Packed, Purpose, file, pack};
use crate::limits::Worse;

const ALL: &str = "name = \"j\"
kind = \"conformance\"
limits = { tsc = \"5 %\" }

[[snippet]]
name = \"a\"
asm = \"nop\"
events = [\"loads\"]
limits = { loads = 3, \"in*\" = 1 }

[[characterise]]
forms = [\"neg r64\"]
limits = { tsc = { worse = \"never\" } }

[[processors]]
asm = \"nop\"
limits = { \"tsc on cpu 0\" = 1 }

[[run]]
limits = { ticks = 1 }
[[run.task]]
name = \"t\"
asm = \"nop\"

[[count]]
events = [\"cycles\"]
limits = { \"cycles, task t\" = 1 }
[[count.task]]
name = \"t\"
asm = \"nop\"

[[sample]]
asm = \"nop\"
events = [\"loads\"]
period = 100
limits = { \"loads, overflows\" = 1 }
";

fn packed(text: &str) -> Result<Packed, String> {
    let said = |error: JobError| error.to_string();
    pack(&file::parse(text, "j.toml").map_err(said)?, Purpose::Qemu).map_err(said)
}

fn about(text: &str) -> About {
    packed(text).unwrap_or_else(|error| panic!("{error}")).about()
}

/// The line on which `what` stands in the job.
fn line(what: &str) -> Option<usize> {
    ALL.lines().position(|line| line == what).map(|line| line + 1)
}

#[test]
fn every_item_has_its_line_its_digest_and_its_limits() {
    let packed = packed(ALL).unwrap();
    let about = packed.about();
    assert_eq!((&*about.name, &*about.file), ("j", "j.toml"));
    assert_eq!(about.limits.find("tsc").unwrap().1.percent, Some(5.0));
    assert_eq!(about.items.len(), packed.job.items.len());
    let lines: Vec<_> = about.items.iter().map(|item| item.line).collect();
    let forms = lines.len() - 6;
    assert!(forms >= 2, "latency and throughput: {lines:?}");
    let mut expected = vec![None, line("[[snippet]]")];
    expected.extend(vec![line("[[characterise]]"); forms]);
    expected.extend(["[[processors]]", "[[run]]", "[[count]]", "[[sample]]"].map(line));
    assert_eq!(lines, expected);
    let by = |item: usize, figure: &str| {
        about.items[item].limits.find(figure).and_then(|(_, limit)| limit.by)
    };
    assert_eq!([by(1, "loads"), by(1, "instructions")], [Some(3.0), Some(1.0)]);
    assert_eq!(about.items[2].limits.find("tsc").unwrap().1.worse, Some(Worse::Never));
    let last = about.items.len() - 1;
    assert_eq!(by(last - 1, "cycles, task t"), Some(1.0));
    assert_eq!(by(last, "loads, overflows"), Some(1.0));
    let again: About = serde_json::from_str(&serde_json::to_string(&about).unwrap()).unwrap();
    assert_eq!(again, about);
}

#[test]
fn a_digest_is_of_code_and_options_and_not_of_where_the_item_stands() {
    let of = |text: &str| about(text).items.iter().map(|item| item.digest).collect::<Vec<_>>();
    let base =
        "[[snippet]]\nname = \"a\"\nasm = \"nop\"\n[[snippet]]\nname = \"b\"\nasm = \"nop\"\n";
    let same = of(base);
    assert_ne!(same[0], same[1], "their names are told apart");
    assert_eq!(of(&format!("# a comment\n\n{base}")), same);
    assert_eq!(
        of(&format!("[defaults]\nvalues = true\n{base}")),
        same,
        "listing runs changes none"
    );
    let other = of(&base.replace("\"b\"\nasm = \"nop\"", "\"b\"\nasm = \"cld\""));
    assert_eq!((other[0] == same[0], other[1] == same[1]), (true, false));
    assert_ne!(of(&format!("[defaults]\nruns = 11\n{base}"))[0], same[0]);
    // The text's own digest tells any change of the file.
    assert_ne!(about(base).text, about(&format!("#\n{base}")).text);
}

#[test]
fn values_are_asked_for_where_the_job_does_not_and_there_are_not_too_many() {
    let mut packed = packed(
        "[[snippet]]\nasm = \"nop\"\n[[snippet]]\nasm = \"nop\"\nvalues = true\n\
         [[snippet]]\nasm = \"nop\"\nruns = 1001\n[[processors]]\nasm = \"nop\"\n[[snippet]]\nasm = \"nop\"\nexact = true\n",
    )
    .unwrap();
    assert_eq!(packed.list_values(), [0, 4]);
    assert_eq!(packed.list_values(), [0; 0]);
    // The boot gets the changed job.
    let rest = packed.rest(0, None).unwrap();
    let protocol::job::Item::Snippet(first) = &rest.job.items[0] else { panic!() };
    assert!(first.values);
}

#[test]
fn limits_in_a_job_are_refused_as_everything_else_in_it() {
    let snippet = "[[snippet]]\nasm = \"nop\"\nevents = [\"loads\"]\n";
    for (text, part) in [
        (
            format!("{snippet}limits = {{ stores = 1 }}"),
            "limits names `stores`, which is no figure here; there are: tsc, loads",
        ),
        (format!("{snippet}limits = {{ loads = {{ max = 1 }} }}"), "unknown field `max`"),
        (format!("{snippet}limits = 3"), "line 4, column 10"),
        (format!("{snippet}limit = {{ loads = 3 }}"), "unknown field `limit`"),
        (format!("limits = {{ tsc = -1 }}\n{snippet}"), "the limit is -1; it must be 0 or more"),
        (
            format!("limits = {{ tsc = {{ by = -1 }} }}\n{snippet}"),
            "by is -1; it must be 0 or more",
        ),
        (
            "[[run]]\nlimits = { tsc = 1 }\n[[run.task]]\nname = \"t\"\nasm = \"nop\"".to_string(),
            "limits bounds TSC ticks, which are no figure here",
        ),
    ] {
        let error = packed(&text).map(|_| ()).unwrap_err();
        assert!(error.starts_with("j.toml") && error.contains(part), "{error}");
    }
    // Wild cards may fit what only the machine knows.
    assert!(packed(&format!("{snippet}limits = {{ \"*\" = 1, \"L1*\" = 2 }}")).is_ok());
}
