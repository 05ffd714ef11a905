use super::*;
use crate::events::Block;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    events: Events,
}

/// What the command shows for these arguments, and its exit code.
fn shown(arguments: &[&str]) -> std::result::Result<(String, u8), String> {
    let line = Line::try_parse_from([&["events"], arguments].concat());
    let events = line.map_err(|error| error.to_string())?.events;
    let block = Block::embedded();
    let listings = listings(&events, &block.tables()).map_err(|error| error.to_string())?;
    let code = listings.iter().any(|listing| !listing.refused.is_empty());
    Ok((show::together(&listings, events.format), u8::from(code)))
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let (text, _) = shown(&[arguments, &["--format", "json"]].concat()).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn p4_generic_names_come_first_in_a_list() {
    let list = json(&["--cpu", "skx", "branch"]);
    let names: Vec<&str> = list["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["branches", "branch-misses"]);
    assert!(names.iter().skip(4).all(|name| name.contains("BR")), "{names:?}");
    let all = json(&["--cpu", "zen4"]);
    assert_eq!(all["events"][0]["name"], "cycles");
    assert_eq!(all["events"][0]["stands_for"], "ls_not_halted_cyc");
}

#[test]
fn i11_a_hybrid_parts_cores_are_shown_one_after_the_other() {
    let (text, code) = shown(&["--cpu", "alderlake", "inst_retired.any_p"]).unwrap();
    assert!(text.starts_with("goldencove (Intel") && text.contains("\ngracemont (Intel"), "{text}");
    assert_eq!(code, 0);
    let both = json(&["--cpu", "adl", "inst_retired.any_p:u"]);
    let tables: Vec<&str> = both["cores"]
        .as_array()
        .unwrap()
        .iter()
        .map(|core| core["cpu"]["table"].as_str().unwrap())
        .collect();
    assert_eq!(tables, ["goldencove", "gracemont"]);
    let (text, _) = shown(&["--cpu", "adl", "--format", "csv", "inst_retired.any_p"]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("cpu,name,select"), "{text}");
    assert!(lines[1].starts_with("goldencove,INST_RETIRED.ANY_P") && text.contains("\ngracemont,"));
    // What one of them does not have is shown for the other.
    let (text, _) = shown(&["--cpu", "adl", "topdown_be_bound.all:u"]).unwrap();
    assert!(text.starts_with("gracemont") && !text.contains("goldencove"), "{text}");
    let plan = ["--cpu", "adl", "--plan", "topdown_fe_bound.all", "--format", "csv"];
    let (text, code) = shown(&plan).unwrap();
    assert!(text.starts_with("cpu,pass,text,") && text.contains("\ngracemont,"), "{text}");
    assert!(!text.contains("goldencove") && code == 1, "{text}");
    assert!(shown(&["--cpu", "adl", "nosuch_event:u"]).unwrap_err().contains("nosuch_event"));
}

#[test]
fn p2_the_events_may_name_the_processor() {
    for arguments in [&["skx::l2_rqsts.miss:u"][..], &["{skx::l2_rqsts.miss,cycles}"]] {
        let (text, code) = shown(arguments).unwrap();
        assert!(text.starts_with("skylakex (Intel") && code == 0, "{text}");
        assert!(text.contains("L2_RQSTS.MISS"), "{text}");
    }
    let (text, _) = shown(&["spr::l2_rqsts.mis*"]).unwrap();
    assert!(text.starts_with("sapphirerapids") && text.contains("L2_RQSTS.MISS"), "{text}");
    let (text, code) = shown(&["--plan", "zen4::cycles,instructions"]).unwrap();
    assert!(text.starts_with("zen4 (AMD") && code == 0, "{text}");
    assert!(text.contains("2 events fit into one pass"), "{text}");
}

#[test]
fn m1_a_list_with_an_unknown_event_shows_the_rest_and_fails() {
    let (text, code) = shown(&["--cpu", "skx", "cycles,nosuch"]).unwrap();
    assert_eq!(code, 1);
    assert!(text.contains("CPU_CLK_UNHALTED") && text.contains("refused: there is no event"));
    assert!(shown(&["--cpu", "skx", "nosuch"]).unwrap_err().contains("there is no event"));
    let (text, code) = shown(&["--cpu", "skx", "--plan", "cycles,nosuch"]).unwrap();
    assert!(code == 1 && text.contains("refused: nosuch"), "{text}");
    // Rows for another program are rows and nothing else.
    let arguments = ["--cpu", "skx", "--plan", "cycles", "--format", "csv"];
    assert_eq!(shown(&arguments).unwrap().0.lines().count(), 2);
    let plan = json(&["--cpu", "skx", "--plan", "cycles,instructions", "--counters", "4"]);
    assert_eq!((&plan["fits"], &plan["passes"]), (&serde_json::json!(true), &serde_json::json!(1)));
}

#[test]
fn p4_wild_cards_with_modifiers_show_registers() {
    let (text, _) = shown(&["--cpu", "skx", "uops_issued.s*:u"]).unwrap();
    assert!(text.contains("0x41200e") && text.contains("0x1c1010e"), "{text}");
    assert!(shown(&["--cpu", "skx", "nothing*:u"]).unwrap_err().contains("fits \"nothing*\""));
}

#[test]
fn s3_the_metrics_of_a_processor_are_listed_with_why_some_cannot_be_had() {
    let list = json(&["--cpu", "skylake", "--metrics"]);
    let rows = list["metrics"].as_array().unwrap();
    let named = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(rows.len(), 207 + 13, "perfmon's and our own for all");
    assert_eq!(named("Memory_Bound")["parent"], "Backend_Bound");
    assert_eq!((&named("Retiring")["refused"], &named("ipc")["refused"]), (&"".into(), &"".into()));
    // Of joules; what needs a counter of the uncore is refused by its name.
    assert_eq!(named("Info_System_Power")["refused"], "");
    let arbiter = &named("Info_System_DRAM_BW_Use");
    assert_eq!(arbiter["refused"], "");
    assert_eq!(arbiter["events"], "UNC_ARB_TRK_REQUESTS.ALL, UNC_ARB_COH_TRK_REQUESTS.ALL");
    let refused = |cpu: &str| {
        let list = json(&["--cpu", cpu, "--metrics"]);
        let rows = list["metrics"].as_array().unwrap().clone();
        let texts = rows.iter().filter_map(|row| row["refused"].as_str());
        texts.filter(|why| why.contains("UNC_")).count()
    };
    assert_eq!([refused("lioncove_arl"), refused("lioncove_lnl")], [0, 2]);
    let here = rows.iter().filter(|row| row["refused"] == "").count();
    assert!(here > 150, "{here}");
    let (text, _) = shown(&["--cpu", "icelake", "--metrics", "Info_System_Power"]).unwrap();
    assert!(!text.contains("not here"), "{text}");
    // Its formula has the fields of PERF_METRICS, which are read.
    let (text, _) = shown(&["--cpu", "icelake", "--metrics", "Retiring"]).unwrap();
    assert!(text.contains("fraction of slots") && !text.contains("not here"), "{text}");
    let none = shown(&["--cpu", "zen2", "--metrics", "nosuch"]).unwrap_err();
    assert!(none.contains("nosuch"), "{none}");
}

#[test]
fn what_nothing_fits_is_called_what_was_asked_for() {
    for (option, text) in [
        ("--metrics", "no metric of skylakex fits \"nosuch\""),
        ("--generic", "no generic event of skylakex fits \"nosuch\""),
    ] {
        assert_eq!(shown(&["--cpu", "skx", option, "nosuch"]), Err(text.to_string()));
    }
}

#[test]
fn a_misspelled_generic_event_is_refused_with_what_is_near_it() {
    let error = shown(&["--cpu", "skx", "cycels"]).unwrap_err();
    assert!(
        error.contains("there is no event \"cycels\" on skylakex; near it are cycles"),
        "{error}"
    );
    let list = json(&["--cpu", "skx", "cycels,instructions"]);
    assert!(list["encodings"][0]["refused"].as_str().unwrap().contains("near it are cycles"));
}

/// What is refused is said once, and no table has only a head.
#[test]
fn a_plan_of_nothing_has_no_table() {
    let (text, code) = shown(&["--cpu", "skx", "--plan", "cycels"]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [_, nothing, refused] = &lines[..] else { panic!("{text}") };
    assert!(*nothing == "nothing can be counted" && code == 1, "{text}");
    assert!(
        refused.starts_with("refused: cycels") && refused.contains("near it are cycles"),
        "{text}"
    );
    for (format, told) in [("table", true), ("csv", false), ("json", false)] {
        let words = ["events", "--cpu", "skx", "--plan", "cycels", "--format", format];
        let events = Line::try_parse_from(words).unwrap().events;
        let listings = listings(&events, &Block::embedded().tables()).unwrap();
        assert_eq!((listings[0].told, listings[0].refused.len()), (told, 1), "{format}");
    }
}
