//! The schema as a page of the guide: a table for each table of the job.

use super::inherit::properties;
use serde_json::Value;
use std::fmt::Write;

/// The page's sections: heading, and the definition whose keys it lists.
const SECTIONS: [(&str, &str); 20] = [
    ("`[defaults]`", "Defaults"),
    ("`[[snippet]]` and `[[processors]]`", "Snippet"),
    ("`[[characterise]]`", "Characterise"),
    ("`[[run]]`", "Run"),
    ("`[[run.task]]`, `[[count.task]]` and `[[sample.task]]`", "Task"),
    ("`[[count]]`", "Count"),
    ("`[[count.set]]`", "Set"),
    ("an event of a count", "CountedEvent"),
    ("`[[sample]]`", "Sample"),
    ("an event of a sample", "SampledEvent"),
    ("`[[….memory]]`", "Memory"),
    ("`chase`", "Chase"),
    ("`machine`", "Machine"),
    ("`exact`", "ExactTable"),
    ("`history`", "HistoryTable"),
    ("`expect`", "Expect"),
    ("bounds", "Bounds"),
    ("`limits`", "Limits"),
    ("a limit", "LimitTable"),
    ("an event", "Event"),
];

const HEAD: &str = "\
# The job file

A job is a TOML file. This page lists every table and every key. It is made of the types that read jobs, by
`cargo xtask schema --format markdown --out docs/guide/job.md`; a test compares the two. [Measuring a snippet](snippets.md) explains the
most common keys with examples. A key that is not listed in its table is an error.

Editors complete and check a job by its JSON schema. Write this as the first line of the job, with the path from the job to the schema.
Taplo understands it, and so do the TOML extensions of editors that use Taplo:

```
#:schema docs/job.schema.json
```

`cargo xtask schema --out job.schema.json` writes the schema of your version. It is as strict as the host tool about the names of keys and
about their types. What depends on several keys is checked by the host tool alone, which names line and column.

";

/// The page.
///
/// # Panics
/// If a section's table is not in the schema.
#[must_use]
pub fn page(schema: &Value) -> String {
    let mut page = Page { text: HEAD.to_string(), definitions: &schema["definitions"] };
    page.section("The job", schema);
    for (heading, name) in SECTIONS {
        let definition = &page.definitions[name];
        assert!(definition.is_object(), "the schema has no {name}");
        page.section(heading, definition);
    }
    page.text.truncate(page.text.trim_end().len());
    page.text + "\n"
}

struct Page<'a> {
    text: String,
    definitions: &'a Value,
}

impl Page<'_> {
    fn section(&mut self, heading: &str, table: &Value) {
        let about = said(table);
        let heading = format!("{}{}", heading[..1].to_uppercase(), &heading[1..]);
        let _ = write!(self.text, "## {heading}\n\n{about}\n\n");
        let Some(keys) = properties(table) else {
            let form = self.form(table);
            let _ = write!(self.text, "{form}\n\n");
            return;
        };
        self.text.push_str("| key | value | meaning |\n| --- | --- | --- |\n");
        let required = table["required"].as_array();
        for (key, property) in keys {
            let is_required = required.is_some_and(|all| all.iter().any(|one| one == key));
            let must = if is_required { " Required." } else { "" };
            let form = self.form(property).replace('|', "\\|");
            let _ = writeln!(self.text, "| `{key}` | {form} | {}{must} |", said(property));
        }
        self.text.push('\n');
    }

    /// What a value may be, in words.
    fn form(&self, schema: &Value) -> String {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return section_of(name).unwrap_or_else(|| self.form(&self.definitions[name]));
        }
        if let Some(only) = schema["allOf"].as_array().and_then(|all| all.first()) {
            return self.form(only);
        }
        if let Some(value) = schema.get("const") {
            return format!("`{value}`");
        }
        let all = |values: &Vec<Value>, form: &dyn Fn(&Value) -> String| {
            values.iter().map(form).collect::<Vec<_>>().join(", ")
        };
        if let Some(values) = schema["enum"].as_array() {
            return all(values, &|value| format!("`{value}`"));
        }
        let either = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
        if let Some(forms) = either {
            return all(forms, &|schema| self.form(schema));
        }
        match schema["type"].as_str() {
            Some("array") => format!("list of: {}", self.form(&schema["items"])),
            Some("boolean") => "`true`, `false`".to_string(),
            Some("string") => "text".to_string(),
            Some("object") => self.object(schema),
            Some(other) => other.to_string(),
            None => "any".to_string(),
        }
    }

    fn object(&self, schema: &Value) -> String {
        if let Some(each) = schema.get("additionalProperties").filter(|each| each.is_object()) {
            return format!("a table of names, each with: {}", self.form(each));
        }
        let keys = properties(schema).into_iter().flatten();
        let keys: Vec<String> =
            keys.map(|(key, property)| format!("{key} = {}", self.form(property))).collect();
        // As text, as links do not work in code.
        format!("{{ {} }}", keys.join(", "))
    }
}

/// A description on one line.
fn said(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

/// A link to the section of a definition, if it has one.
fn section_of(name: &str) -> Option<String> {
    let (heading, _) = SECTIONS.iter().find(|(_, one)| *one == name)?;
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    };
    let anchor: String = heading.chars().filter_map(kept).collect();
    let shown = heading.trim_start_matches("an ").trim_start_matches("a ");
    Some(format!("[{shown}](#{anchor})"))
}
