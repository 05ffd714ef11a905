use crate::cli::Format;
use crate::collect::{Numbered, Report};
use crate::context::Context;
use crate::kinds::history::text as history;
use crate::render::render;
use proptest::prelude::*;
use protocol::record::{HistoryResult, Record};
use std::io::Write;
use std::process::{Command, Stdio};

/// A test point as a strict reader understands it.
#[derive(Debug, Default, PartialEq)]
struct Read {
    passed: bool,
    description: String,
    directive: Option<String>,
    /// Lines of its block, without the indentation.
    block: Vec<String>,
}

#[derive(Debug, Default, PartialEq)]
struct Document {
    points: Vec<Read>,
    bailed: Vec<String>,
}

/// Reads a document by TAP 14's grammar (testanything.org, "TAP 14 specification"), which lets a line that it does not
/// know pass; this reader does not.
fn read(text: &str) -> Result<Document, String> {
    let mut lines =
        text.strip_suffix('\n').ok_or("the last line has no end")?.split('\n').peekable();
    let mut document = Document::default();
    if lines.next() != Some("TAP version 13") {
        return Err("the first line is no version".into());
    }
    let plan = lines.next().and_then(|line| line.strip_prefix("1..")).ok_or("no plan second")?;
    let plan: usize = plan.split(" # ").next().unwrap_or("").parse().map_err(|_| "no plan")?;
    while let Some(line) = lines.next() {
        if let Some(reason) = line.strip_prefix("Bail out! ") {
            document.bailed.push(reason.to_string());
            continue;
        }
        if !document.bailed.is_empty() {
            return Err(format!("something follows the bail-out: {line:?}"));
        }
        let (passed, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(format!("no test point: {line:?}")),
        };
        let (number, rest) = rest.split_once(" - ").ok_or(format!("no description: {line:?}"))?;
        if number.parse() != Ok(document.points.len() + 1) {
            return Err(format!("the wrong number: {line:?}"));
        }
        let (description, directive) = match rest.split_once(" # ") {
            Some((description, directive)) => (description, Some(directive.to_string())),
            None => (rest, None),
        };
        let words = ["SKIP ", "TODO "];
        let known = directive.iter().all(|text| words.iter().any(|word| text.starts_with(word)));
        // KTAP takes no `#` in a description, and no escape in front of it.
        if !known || description.contains(['#', '\\']) || directive.iter().any(|d| d.contains('#'))
        {
            return Err(format!("a directive where there is none: {line:?}"));
        }
        let mut block = Vec::new();
        if lines.next_if_eq(&"  ---").is_some() {
            loop {
                let line = lines.next().ok_or("a block without an end")?;
                if line == "  ..." {
                    break;
                }
                let line = line.strip_prefix("  ").ok_or(format!("not in its block: {line:?}"))?;
                block.push(line.to_string());
            }
            if block.is_empty() {
                return Err("an empty block".into());
            }
        }
        let description = description.to_string();
        document.points.push(Read { passed, description, directive, block });
    }
    if document.points.len() != plan {
        return Err(format!("{} points of {plan} planned", document.points.len()));
    }
    Ok(document)
}

fn tap(records: Vec<Record>, context: &Context) -> String {
    let records = (0..).zip(records).map(|(seq, record)| Numbered { seq, record }).collect();
    render(&Report { records, ..Report::default() }, context, Format::Tap)
}

fn record(json: &str) -> Record {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// A record of every kind that is a point, all with `name` and `text`.
fn all(name: &str, text: &str) -> Vec<Record> {
    let [name, text] = [name, text].map(|text| serde_json::to_string(text).unwrap());
    let series = r#"{"min":1,"max":2,"distinct":2}"#;
    let metric = |event: &str| {
        format!(
            r#"{{"event":{event},"median":1.5,"min":-1.0,"mean":1.0,"max":2.0,"deterministic":false,
            "series":[{series},{series}]}}"#
        )
    };
    let metrics = format!("{},{}", metric("\"tsc\""), metric(&text));
    let check = |verdict: &str| {
        format!(
            r#"{{"type":"check","item":2,"name":{name},"verdict":"{verdict}","expected":{text},"seen":{text},
            "source":{text}}}"#
        )
    };
    let mut records: Vec<Record> = [
        format!(
            r#"{{"type":"result","item":0,"name":{name},"verdict":"none","per":1,"runs":1,"metrics":[{metrics}],
            "uncounted":[{{"event":{text},"reason":{text}}}],"tsc":[0,1]}}"#
        ),
        format!(
            r#"{{"type":"exact","item":1,"name":{name},"per":1,"counts":[
            {{"event":"a","value":1.0,"totals":[1,2]}},{{"event":"b","value":2.0,"totals":[2,4]}}],
            "opcodes":[],"listing":[],"listed":0,"tsc":[0,1]}}"#
        ),
        check("pass"),
        check("fail"),
        check("skip"),
        check("known_erratum"),
        format!(
            r#"{{"type":"suite","item":2,"name":{name},"passed":0,"failed":0,"skipped":0,"known_errata":0,
            "emulated":true,"reason":{text},"lacks":[]}}"#
        ),
        format!(r#"{{"type":"error","code":"device","item":3,"name":{name},"text":{text}}}"#),
    ]
    .iter()
    .map(|json| record(json))
    .collect();
    let name = serde_json::from_str(&name).unwrap();
    records.push(Record::History(HistoryResult { name, ..history::tests::example() }));
    records
}

#[test]
fn k2_a_document_is_read_by_the_grammar_of_tap_14() {
    let context = Context { complaint: Some("it # stopped".into()), ..Context::default() };
    let document = read(&tap(all("one # two", "x \\ # y"), &context)).unwrap();
    let passed: Vec<bool> = document.points.iter().map(|point| point.passed).collect();
    assert_eq!(passed, [true, true, true, false, true, false, true, false, true]);
    let first = &document.points[0];
    assert_eq!(first.description, "one \u{ff03} two");
    let metrics = first.block.iter().filter(|line| line.starts_with("  - event: ")).count();
    assert_eq!((first.block[0].as_str(), metrics), (r#"name: "one # two""#, 3), "{first:?}");
    let directives = document.points.iter().filter_map(|point| point.directive.clone());
    let expected = [
        "SKIP needs x \u{ff3c} \u{ff03} y",
        "TODO x \u{ff3c} \u{ff03} y",
        "SKIP x \u{ff3c} \u{ff03} y",
    ];
    assert_eq!(directives.collect::<Vec<_>>(), expected);
    assert_eq!(document.bailed, ["it # stopped"]);
}

#[test]
fn joules_of_an_execution_are_not_rounded_to_nothing() {
    let series = r#"{"min":1,"max":2,"distinct":2}"#;
    let metric = format!(
        r#"{{"event":"energy-pkg","median":1.5e-8,"min":1.25e-8,"mean":1.5e-8,"max":2e-8,"deterministic":false,
        "series":[{series},{series}],"energy":{{"unit":14,"resolution":1e-9,"ticks":[1,2],"update":9}}}}"#
    );
    let snippet = format!(
        r#"{{"type":"result","item":0,"name":"a","verdict":"none","per":1,"runs":1,"metrics":[{metric}],"tsc":[0,1]}}"#
    );
    let processors = format!(
        r#"{{"type":"processors","item":1,"name":"p","per":1,"runs":1,"tsc":[0,1],
        "processors":[{{"processor":0,"apic_id":0,"tsc_offset":0,"tsc_offset_error":0,"metrics":[{metric}],
        "snapshot_tsc":0,"snapshot":[]}}],"sums":[{{"event":"energy-pkg","value":3e-8,"processors":1}}],
        "start_skew":{{"min":0,"median":0,"max":0}},"snapshot":{{"deadline":0,"skew":0,"events":[]}}}}"#
    );
    let tap = tap(vec![record(&snippet), record(&processors)], &Context::default());
    for line in
        ["median: 0.000000015\n", "min: 0.0000000125\n", "max: 0.00000002\n", "sum: 0.00000003\n"]
    {
        assert!(tap.contains(line), "{line}: {tap}");
    }
}

/// What another reader makes of it: one point a line, `ok` or `not ok`, its number of blocks and of metrics.
const PERL: &str = r#"
    use TAP::Parser;
    my $parser = TAP::Parser->new({ tap => join("", <STDIN>) });
    while (my $one = $parser->next) {
        print $one->type eq "test" ? ($one->is_actual_ok ? "ok\n" : "not ok\n") : "";
        print "  ", join(",", sort keys %{ $one->data }), "\n" if $one->type eq "yaml";
        print "unknown ", $one->as_string, "\n" if $one->type eq "unknown";
    }
    print "errors: ", join("; ", $parser->parse_errors), "\n";
"#;

#[test]
fn k2_perls_tap_parser_reads_the_same() {
    let there = Command::new("perl").args(["-MTAP::Parser", "-e", "1"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine has no perl with TAP::Parser");
        return;
    }
    let mut perl = Command::new("perl");
    perl.args(["-e", PERL]);
    let mut child = perl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text = tap(all("one # two", "x \\ # \"y\""), &Context::default());
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let expected = "ok\n  metrics,name,uncounted\nok\n  exact,name\nok\n  expected,name,seen,source\n\
                    not ok\n  expected,name,seen,source\nok\n  name\nnot ok\n  expected,name,seen,source\n\
                    ok\n  name\nnot ok\n  message,name\nok\n  history,name,uncounted\nerrors: \n";
    assert_eq!(said, expected, "{text}");
}

proptest! {
    /// Whatever a name or a reason is.
    #[test]
    fn k2_every_name_leaves_the_document_readable(name in any::<String>(), text in any::<String>()) {
        let records = all(&name, &text);
        let count = records.len();
        let text = tap(records, &Context::default());
        let document = read(&text).map_err(|why| TestCaseError::fail(format!("{why}: {text}")))?;
        prop_assert_eq!(document.points.len(), count);
    }
}
