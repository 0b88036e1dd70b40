//! The JSON Schema of policy files, made of the tables that the reader reads by.

use serde_json::{Map, Value, json};

use super::read::shape::{self, Field, Shape, Table};

/// The schema (draft 2020-12), for editors and for tools that write policies. What only all files together can tell, and
/// whether a pattern is one, `portcullis policy check` says.
pub fn schema() -> Value {
    let mut definitions = Map::new();
    let mut root = object(&shape::FILE, &mut definitions);
    let mut head = Map::new();
    head.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    head.insert("title".into(), "Portcullis policy".into());
    head.append(&mut root);
    head.insert("$defs".into(), Value::Object(definitions));
    Value::Object(head)
}

/// A mapping of these fields.
fn object(table: &Table, definitions: &mut Map<String, Value>) -> Map<String, Value> {
    let mut properties = Map::new();
    for Field { name, about, shape, .. } in table.fields() {
        let mut value = of(shape, definitions);
        if let Value::Object(value) = &mut value {
            value.insert("description".into(), (*about).into());
        }
        properties.insert((*name).into(), value);
    }
    let required: Vec<&str> = table.fields().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("additionalProperties".into(), false.into());
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    if !table.one_of.is_empty() {
        let each: Vec<Value> = table.one_of.iter().map(|field| json!({ "required": [field.name] })).collect();
        schema.insert("anyOf".into(), json!(each));
    }
    schema
}

fn of(shape: &Shape, definitions: &mut Map<String, Value>) -> Value {
    match shape {
        Shape::Text => json!({ "type": "string", "minLength": 1 }),
        Shape::TextSuchAs(known) => json!({ "type": "string", "minLength": 1, "examples": known() }),
        Shape::Word(words) => json!({ "enum": words() }),
        Shape::Truth => json!({ "type": "boolean" }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Exactly(number) => json!({ "const": number }),
        Shape::Scalar => json!({ "type": ["string", "number", "boolean"] }),
        Shape::Span => json!({ "type": "string", "pattern": span(), "examples": ["50s", "15m", "8h", "2d"] }),
        Shape::OneOrMore(one) => {
            let one = of(one, definitions);
            json!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] })
        }
        Shape::List(one) => json!({ "type": "array", "items": of(one, definitions) }),
        Shape::Named(one) => json!({ "type": "object", "additionalProperties": of(one, definitions) }),
        Shape::Fields(table) => reference(table, definitions),
        Shape::NameOr(table) => {
            json!({ "anyOf": [{ "type": "string", "minLength": 1 }, reference(table, definitions)] })
        }
        Shape::TextOr(names) => {
            let any: Map<String, Value> = names().into_iter().map(|name| (name.to_owned(), json!({}))).collect();
            json!({ "anyOf": [
                { "type": "string", "minLength": 1 },
                { "type": "object", "additionalProperties": false, "properties": any },
            ] })
        }
    }
}

/// A definition is written once, however often it is used.
fn reference(table: &Table, definitions: &mut Map<String, Value>) -> Value {
    if !definitions.contains_key(table.name) {
        definitions.insert(table.name.into(), Value::Null);
        let schema = object(table, definitions);
        definitions.insert(table.name.into(), Value::Object(schema));
    }
    json!({ "$ref": format!("#/$defs/{}", table.name) })
}

/// A number greater than 0 and a unit, as the reader has them.
fn span() -> String {
    let units: Vec<&str> = crate::config::yaml::SPANS.iter().map(|(unit, _)| *unit).collect();
    format!("^0*[1-9][0-9]*({})$", units.join("|"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_file_in_the_repository_is_the_readers() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/policy.schema.json");
        let committed = std::fs::read_to_string(file).unwrap_or_default();
        // As values: the order of keys is a matter of what else is built with it.
        let committed: Value = serde_json::from_str(&committed).unwrap_or_default();
        assert!(committed == schema(), "write it anew: portcullis policy schema > policies/policy.schema.json");
    }

    #[test]
    fn it_knows_what_the_reader_knows() {
        let schema = schema();
        let rule = &schema["$defs"]["rule"];
        assert_eq!(rule["additionalProperties"], false);
        assert_eq!(rule["properties"]["verdict"]["enum"], json!(["allow", "ask", "deny"]));
        assert_eq!(schema["$defs"]["guardrail"]["properties"]["verdict"]["enum"], json!(["ask", "deny"]));
        assert!(rule["anyOf"].as_array().unwrap().contains(&json!({ "required": ["path"] })), "{rule:#}");
        assert!(rule["properties"]["tool"].to_string().contains("@fs_read"));
        assert!(regex::Regex::new(&span()).unwrap().is_match("15m"));
    }
}
