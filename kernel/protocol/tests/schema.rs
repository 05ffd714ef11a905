//! `docs/guide/report.md` describes the report for other readers; this keeps it true.
//!
//! Every table row of the document, `| field | type | ... |` below a heading that names a structure, is
//! compared with the JSON schema that schemars derives from the types, in both directions.

use protocol::record::Record;
use schemars::{Schema, schema_for};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Fields = BTreeMap<String, BTreeSet<(String, String)>>;

/// Structures and their fields, with types as the document writes them.
fn derived() -> Fields {
    let schema: Schema = schema_for!(Record);
    let root: Value = schema.to_value();
    let mut fields = Fields::new();
    for variant in root["oneOf"].as_array().expect("a record is one of several") {
        let tag = variant["properties"]["type"]["const"].as_str().expect("a tag");
        let whole = merge(variant, &root);
        collect(&format!("record `{tag}`"), &whole, &root, &mut fields);
    }
    for (name, definition) in root["$defs"].as_object().expect("definitions") {
        if definition.get("properties").is_some() && !is_record(&root, name) {
            collect(&format!("`{name}`"), &merge(definition, &root), &root, &mut fields);
        }
    }
    fields
}

/// Whether the definition is the body of a record, which is listed under the record's tag.
fn is_record(root: &Value, name: &str) -> bool {
    let reference = format!("#/$defs/{name}");
    root["oneOf"].as_array().unwrap().iter().any(|v| v["$ref"] == reference.as_str())
        // Flattened into the structure that has it.
        || name == "Aggregates"
}

/// A schema with what it refers to.
fn merge(schema: &Value, root: &Value) -> Value {
    let mut properties = serde_json::Map::new();
    let mut required: Vec<Value> = Vec::new();
    let mut parts = vec![schema.clone()];
    while let Some(part) = parts.pop() {
        if let Some(reference) = part["$ref"].as_str() {
            parts.push(root.pointer(reference.trim_start_matches('#')).unwrap().clone());
        }
        parts.extend(part["allOf"].as_array().into_iter().flatten().cloned());
        properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().into_iter().flatten().cloned());
    }
    serde_json::json!({ "properties": properties, "required": required })
}

fn collect(name: &str, schema: &Value, root: &Value, fields: &mut Fields) {
    let required = schema["required"].as_array().unwrap();
    let rows = fields.entry(name.to_string()).or_default();
    for (field, kind) in schema["properties"].as_object().unwrap() {
        if field == "type" {
            continue;
        }
        let optional = if required.contains(&Value::from(field.as_str())) { "" } else { "?" };
        rows.insert((format!("{field}{optional}"), type_name(kind, root)));
    }
}

/// A type as the document writes it.
fn type_name(kind: &Value, root: &Value) -> String {
    if let Some(reference) = kind["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        let name = reference.rsplit('/').next().unwrap();
        return if target.get("properties").is_some() { name.to_string() } else { words(target) };
    }
    if let Some(choices) = kind["anyOf"].as_array() {
        let real = choices.iter().find(|choice| choice["type"] != "null").unwrap();
        return type_name(real, root);
    }
    let base = match &kind["type"] {
        Value::Array(types) => types.iter().find(|t| *t != "null").unwrap().as_str().unwrap(),
        other => other.as_str().unwrap_or("?"),
    };
    match base {
        "array" => {
            let items = type_name(&kind["items"], root);
            match kind["maxItems"].as_u64() {
                Some(count) => format!("{count} x {items}"),
                None => format!("list of {items}"),
            }
        }
        "string" if kind["format"] == "hex" => "hex".to_string(),
        other => other.to_string(),
    }
}

/// The words of an enumeration.
fn words(target: &Value) -> String {
    if target["format"] == "hex" {
        return "hex".to_string();
    }
    let constants = target["oneOf"].as_array().into_iter().flatten().map(|one| &one["const"]);
    let listed = target["enum"].as_array().into_iter().flatten();
    let words: Vec<&str> = constants.chain(listed).filter_map(Value::as_str).collect();
    words.join(", ")
}

/// Structures and their fields as that page has them.
fn documented() -> Fields {
    let mut fields = Fields::new();
    let mut section = String::new();
    for line in include_str!("../../../docs/guide/report.md").lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            section = heading.trim().to_string();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", field, kind, meaning, ""] = cells[..]
            && field.starts_with('`')
        {
            assert!(!meaning.is_empty(), "{section}: {field} has no meaning");
            let row = (field.trim_matches('`').to_string(), kind.to_string());
            fields.entry(section.clone()).or_default().insert(row);
        }
    }
    fields
}

#[test]
fn the_document_lists_exactly_the_fields_of_the_types() {
    let (types, document) = (derived(), documented());
    for (name, rows) in &types {
        let none = BTreeSet::new();
        let seen = document.get(name).unwrap_or(&none);
        let missing: Vec<_> = rows.difference(seen).collect();
        let wrong: Vec<_> = seen.difference(rows).collect();
        assert!(
            missing.is_empty(),
            "docs/guide/report.md, {name}, lacks {missing:#?}; it has {wrong:#?}"
        );
        assert!(
            wrong.is_empty(),
            "docs/guide/report.md, {name}, has {wrong:#?}, which the types lack"
        );
    }
    let known: BTreeSet<_> = types.keys().collect();
    let named: BTreeSet<_> = document.keys().collect();
    assert_eq!(named, known);
}

#[test]
fn the_example_line_in_the_document_is_a_record() {
    let text = include_str!("../../../docs/guide/report.md");
    let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("{\"seq\":")).collect();
    assert!(!lines.is_empty());
    for line in lines {
        protocol::line::decode(line).unwrap_or_else(|error| panic!("{error}\n{line}"));
    }
}
