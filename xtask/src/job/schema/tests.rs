use super::*;
use crate::job::file;
use jsonschema::Validator;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the checkout")
}

fn validator() -> Validator {
    jsonschema::validator_for(&job()).expect("it is a schema")
}

/// A job as JSON, as editors see it.
fn json(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    serde_json::to_value(table).expect("TOML is JSON but for dates")
}

fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files(&path, end, found);
        } else if path.extension().is_some_and(|extension| extension == end) {
            found.push(path);
        }
    }
}

/// Every job that ships, and every one of the README and the guide.
fn jobs() -> Vec<(String, String)> {
    let (mut shipped, mut pages) = (Vec::new(), vec![root().join("README.md")]);
    files(&root().join("xtask/jobs"), "toml", &mut shipped);
    files(&root().join("docs"), "md", &mut pages);
    let read = |path: &PathBuf| (path.display().to_string(), fs::read_to_string(path).unwrap());
    let mut all: Vec<_> = shipped.iter().map(read).collect();
    for (path, page) in pages.iter().map(read) {
        let mut inside = None;
        for event in Parser::new(&page) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(name))) if &*name == "toml" => {
                    inside = Some(String::new());
                }
                Event::Text(text) => inside.iter_mut().for_each(|block| block.push_str(&text)),
                Event::End(TagEnd::CodeBlock) => {
                    // A file of limits is no job.
                    let job = inside.take().filter(|text| !text.starts_with("[limits]"));
                    all.extend(job.map(|text| (path.clone(), text)));
                }
                _ => {}
            }
        }
    }
    all
}

#[test]
fn every_job_that_ships_and_every_one_of_the_guide_is_valid() {
    let (validator, jobs) = (validator(), jobs());
    assert!(jobs.len() >= 20, "{}", jobs.len());
    for (path, text) in jobs {
        let errors: Vec<String> =
            validator.iter_errors(&json(&text)).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0], "{path}\n{text}");
    }
}

/// What the host tool refuses for its names and types, the schema refuses too.
#[test]
fn broken_jobs_are_invalid() {
    let validator = validator();
    for broken in [
        "colour = 1",
        "name = 1",
        "on-end = \"explode\"",
        "kind = \"snippet\"",
        "cpus = \"two\"",
        "[snippet]\nasm = \"nop\"",
        "[[snippet]]\nasm = 1",
        "[[snippet]]\nasm = \"nop\"\nunrol = 3",
        "[[snippet]]\nasm = \"nop\"\nunroll = -1",
        "[[snippet]]\nasm = \"nop\"\nsyntax = \"Intel\"",
        "[[snippet]]\nasm = \"nop\"\nbits = 16",
        "[[snippet]]\nasm = \"nop\"\nevents = \"cycles\"",
        "[[snippet]]\nasm = \"nop\"\nexpect = \"3\"",
        "[[snippet]]\nasm = \"nop\"\nexpect = { loads = { least = 1 } }",
        "[[snippet]]\nasm = \"nop\"\nhistory = true",
        "[[snippet]]\nasm = \"nop\"\nhistory = { step = 2 }",
        "[[snippet]]\nasm = \"nop\"\nexact = { opcode = \"nop\" }",
        "[[snippet]]\nasm = \"nop\"\nmachine = { ring = \"3\" }",
        "[[snippet]]\nasm = \"nop\"\nmachine = { page-size = \"8k\" }",
        "[[snippet]]\nasm = \"nop\"\nlimits = { tsc = \"5\" }",
        "[[snippet]]\nasm = \"nop\"\nlimits = { tsc = { by = 1, worse = \"up\" } }",
        "[[snippet]]\nasm = \"nop\"\nargs = [1.5]",
        "[[snippet]]\nasm = \"nop\"\n[[snippet.memory]]\nsize = 1",
        "[[snippet]]\nasm = \"nop\"\n[[snippet.memory]]\nname = \"a\"\nsize = 1\nfill = \"one\"",
        "[[characterise]]\nunroll = 1",
        "[[run]]\n[[run.task]]\nasm = \"nop\"",
        "[[run]]\n[[run.task]]\nname = \"a\"\nasm = \"nop\"\nring = 2",
        "[[count]]\nevents = [{ every = 1 }]",
        "[[count]]\nbind = { cpu = 1, task = \"a\" }",
        "[[count]]\nbind = \"all\"",
        "[[count]]\n[[count.set]]\nname = \"a\"",
        "[[sample]]\nasm = \"nop\"\nkeep = \"all\"",
        "[[sample]]\nasm = \"nop\"\nevents = [{ event = \"cycles\", rate = 1 }]",
    ] {
        assert!(file::parse(broken, "broken.toml").is_err(), "the host tool takes it\n{broken}");
        assert!(!validator.is_valid(&json(broken)), "the schema takes it\n{broken}");
    }
}

#[test]
fn every_key_is_described() {
    fn visit(path: &str, schema: &Value, missing: &mut Vec<String>) {
        for (key, property) in inherit::properties(schema).into_iter().flatten() {
            if property["description"].as_str().is_none_or(str::is_empty) {
                missing.push(format!("{path}.{key}"));
            }
        }
    }
    let (schema, mut missing) = (job(), Vec::new());
    visit("job", &schema, &mut missing);
    for (name, definition) in schema["definitions"].as_object().expect("definitions") {
        visit(name, definition, &mut missing);
    }
    assert_eq!(missing, [""; 0]);
}

/// They are written by `cargo xtask schema`, as their texts say.
#[test]
fn the_files_that_ship_are_those_of_the_types() {
    let schema = job();
    let ships = |name: &str| fs::read_to_string(root().join(name)).unwrap_or_default();
    let command = "type: cargo xtask schema";
    let json = format!("{schema:#}\n");
    assert!(ships("docs/job.schema.json") == json, "{command} --out docs/job.schema.json");
    let page = page(&schema);
    let is_same = ships("docs/guide/job.md") == page;
    assert!(is_same, "{command} --format markdown --out docs/guide/job.md");
    // A definition without a section is written out where it is used.
    assert!(!page.contains("any |"), "{page}");
}
