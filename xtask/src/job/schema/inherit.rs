//! What the derived schema does not have by itself: a description for every key, and no `null`, which TOML has not.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Tables whose keys others have too, those that say it best first.
const FIRST: [&str; 6] = ["Defaults", "Snippet", "Run", "Task", "Sample", "Count"];

/// Gives each key without a description that of the same key of another table: keys that several tables have mean the same in each.
pub(super) fn descriptions(schema: &mut Value) {
    let Some(Value::Object(definitions)) = schema.get_mut("definitions") else { return };
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    for table in FIRST.iter().filter_map(|name| definitions.get(*name)) {
        for (key, property) in properties(table).into_iter().flatten() {
            if let Some(text) = property.get("description") {
                known.entry(key.clone()).or_insert_with(|| text.clone());
            }
        }
    }
    for table in definitions.values_mut() {
        let Some(Value::Object(properties)) = table.get_mut("properties") else { continue };
        for (key, property) in properties {
            let Value::Object(property) = property else { continue };
            if let (None, Some(text)) = (property.get("description"), known.get(key)) {
                // draft 7 ignores what stands beside a reference.
                if let Some(reference) = property.remove("$ref") {
                    property.insert("allOf".to_string(), json!([{ "$ref": reference }]));
                }
                property.insert("description".to_string(), text.clone());
            }
        }
    }
}

/// The keys of a table.
pub(super) fn properties(table: &Value) -> Option<&Map<String, Value>> {
    table.get("properties")?.as_object()
}

/// Takes `null` away from every type: what is optional is left out.
pub(super) fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(table) => {
            if let Some(Value::Array(types)) = table.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = &types[..] {
                    let one = one.clone();
                    table.insert("type".to_string(), one);
                }
            }
            if let Some(Value::Array(values)) = table.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(Value::Array(forms)) = table.get_mut("anyOf") {
                forms.retain(|form| form.get("type").is_none_or(|one| one != "null"));
                if let [Value::Object(one)] = &mut forms[..] {
                    let one = std::mem::take(one);
                    table.remove("anyOf");
                    // draft 7 ignores what stands beside a reference.
                    if one.contains_key("$ref") && !table.is_empty() {
                        table.insert("allOf".to_string(), Value::Array(vec![one.into()]));
                    } else {
                        table.extend(one);
                    }
                }
            }
            table.values_mut().for_each(without_null);
        }
        Value::Array(list) => list.iter_mut().for_each(without_null),
        _ => {}
    }
}
