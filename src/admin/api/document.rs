//! The OpenAPI document, made from the routes: their handlers' signatures, the shapes in them, and their doc comments.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::describe::{Operation, Shapes};
use super::route::Route;
use crate::admin::problem::Problem;
use crate::record::word;

/// What any request may be answered with, whatever it asks for: no good `Host`, another name's, or not now.
const ANY: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::MISDIRECTED_REQUEST, StatusCode::SERVICE_UNAVAILABLE];

/// The whole document.
pub fn document(routes: &[Route]) -> Value {
    let mut shapes = Shapes::new();
    let mut paths = Map::new();
    let mut statuses = BTreeSet::new();
    for route in routes {
        let operation = operation(route, &mut shapes, &mut statuses);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(route.method.into(), operation);
        }
    }
    let problem = {
        let mut operation = Operation::new(&mut shapes);
        operation.gives::<Problem>(StatusCode::OK);
        json!({"$ref": "#/components/schemas/Problem"})
    };
    let responses: Map<String, Value> = statuses
        .into_iter()
        .map(|status| {
            let content = json!({"application/problem+json": {"schema": problem}});
            (name(status), json!({"description": meaning(status), "content": content}))
        })
        .collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Portcullis",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "See, decide and stop what agents ask for",
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}, {"session": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An approver's token. An agent's is not good here.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "portcullis-7071",
                    "description": "Set by login; named after the port, or `__Host-portcullis` under https. Counts \
                                    only with the header `X-Portcullis-Key`, whose value login answers. Requests that \
                                    change something must name this site as their Origin.",
                },
            },
            "responses": responses,
            "schemas": shapes.named(),
        },
    });
    read_without_rust(&mut document);
    document
}

const ABOUT: &str = "Errors are problem details (RFC 9457). Lists give the newest first and a cursor, `next`, for what \
                     follows. Times are RFC 3339 in UTC, durations milliseconds, ids opaque. A HEAD is answered as its GET, \
                     without the body. What cannot be read as HTTP at all, or has an address of more than 64 KiB, is \
                     answered with 400, 414 or 431 and no body.";

fn operation(route: &Route, shapes: &mut Shapes, statuses: &mut BTreeSet<StatusCode>) -> Value {
    let mut takes = Operation::new(shapes);
    (route.describe)(&mut takes);
    let mut problems: BTreeSet<StatusCode> =
        ANY.into_iter().chain(takes.problems).chain(route.problems.iter().copied()).collect();
    // Of another site's page, or without the role.
    if route.method != "get" || route.role.is_some() {
        problems.insert(StatusCode::FORBIDDEN);
    }
    let mut responses: Map<String, Value> =
        takes.answers.into_iter().map(|(status, to)| (status.to_string(), to)).collect();
    for status in problems {
        responses
            .entry(status.as_u16().to_string())
            .or_insert_with(|| json!({"$ref": format!("#/components/responses/{}", name(status))}));
        statuses.insert(status);
    }
    let variables = route.path.split('{').skip(1).filter_map(|part| part.split_once('}')).map(
        |(name, _)| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}}),
    );
    let parameters: Vec<Value> = variables.chain(takes.query).collect();
    let role = route.role.map(|role| format!("Needs the role {}.", word(role)));
    let text: Vec<&str> = route.text.into_iter().chain(role.as_deref()).collect();
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "responses": responses,
    });
    if let Some(fields) = operation.as_object_mut() {
        if !text.is_empty() {
            fields.insert("description".into(), text.join(" ").into());
        }
        if !parameters.is_empty() {
            fields.insert("parameters".into(), parameters.into());
        }
        if let Some(body) = takes.body {
            fields.insert("requestBody".into(), body);
        }
        if !takes.wants_login {
            fields.insert("security".into(), if route.open { json!([]) } else { json!([{}, {"bearer": []}]) });
        }
    }
    operation
}

/// A stable name for programs, such as `post_approvals_id_approve`.
fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/v1").replace(['{', '}'], "").replace(['/', '.'], "_");
    format!("{}{path}", route.method)
}

/// The name of a problem among the document's answers.
fn name(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("Other").chars().filter(char::is_ascii_alphabetic).collect()
}

/// What a problem's status means here.
fn meaning(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "The request does not say what it has to.",
        StatusCode::UNAUTHORIZED => "No credential, or one that is no good here.",
        StatusCode::FORBIDDEN => "Not your role, not yours to decide, or from another site's page.",
        StatusCode::NOT_FOUND => "Unknown, or not visible to you.",
        StatusCode::REQUEST_TIMEOUT => "The body did not arrive in time.",
        StatusCode::CONFLICT => "Decided otherwise, or not in a state for that.",
        StatusCode::GONE => "It has ended.",
        StatusCode::PRECONDITION_FAILED => "No longer what you were shown.",
        StatusCode::PAYLOAD_TOO_LARGE => "A body over 1 MiB.",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "A body of another type than JSON.",
        StatusCode::MISDIRECTED_REQUEST => "Sent to a name that is not the gateway's.",
        StatusCode::UNPROCESSABLE_ENTITY => "Understood, and refused: policy denies it, or the policy does not load.",
        StatusCode::SERVICE_UNAVAILABLE => {
            "The gateway cannot do it now: its store does not work, or it took too long."
        }
        _ => "",
    }
}

/// Doc comments are broken into lines and name Rust items in brackets; a reader of the document sees neither.
fn read_without_rust(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "description" => {
                        *text = text.replace("[`Self::", "`").replace("[`", "`").replace("`]", "`").replace('\n', " ");
                    }
                    other => read_without_rust(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(read_without_rust),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::table;
    use super::*;

    /// Each operation, by method and path.
    fn operations(document: &Value) -> Vec<(String, &Value)> {
        let paths = document["paths"].as_object().unwrap();
        let methods = paths.iter().flat_map(|(path, methods)| {
            methods.as_object().unwrap().iter().map(move |(method, operation)| (format!("{method} {path}"), operation))
        });
        methods.collect()
    }

    #[test]
    fn every_route_is_described_and_documented() {
        let document = document(&table());
        let operations = operations(&document);
        assert_eq!(operations.len(), table().len(), "a method of a path is there twice");
        let ids: BTreeSet<_> =
            operations.iter().map(|(_, operation)| operation["operationId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), operations.len());
        // The page names each, by its path or by its last word.
        let page = include_str!("../../../docs/api.md");
        for route in table() {
            let summary = route.summary;
            assert!(summary.len() >= 8 && summary.starts_with(char::is_uppercase), "{}: `{summary}`", route.path);
            assert!(!summary.ends_with('.'), "{}: a summary is one line without a full stop", route.path);
            assert!(
                !route.path.contains('{') || route.problems.contains(&StatusCode::NOT_FOUND),
                "{} {}: what is named may be missing: `.may([NOT_FOUND, …])`",
                route.method,
                route.path
            );
            let Some(path) = route.path.strip_prefix("/api/v1/") else { continue };
            let named = path.split("/{").next().unwrap();
            let last = path.rsplit('/').find(|part| !part.starts_with('{')).unwrap();
            assert!(page.contains(named) && page.contains(last), "{path} is not in docs/api.md");
        }
    }

    #[test]
    fn every_status_has_a_meaning_and_a_place() {
        let document = document(&table());
        for (name, response) in document["components"]["responses"].as_object().unwrap() {
            assert_ne!(response["description"], "", "{name} has no text in `meaning`");
        }
        for (name, operation) in operations(&document) {
            let responses = operation["responses"].as_object().unwrap();
            let is_good = |status: &String| status.starts_with('2');
            assert_eq!(responses.keys().filter(|status| is_good(status)).count(), 1, "{name}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_field_is_explained() {
        fn walk(at: &Value, document: &Value, found: &mut usize) {
            if let Some(to) = at.get("$ref").and_then(Value::as_str) {
                assert!(document.pointer(to.trim_start_matches('#')).is_some(), "{to}");
                *found += 1;
            }
            for (field, about) in at.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let is_said = ["description", "$ref", "const"].iter().any(|key| about.get(key).is_some());
                assert!(is_said, "`{field}` has no doc comment: {at}");
            }
            match at {
                Value::Object(fields) => fields.values().for_each(|field| walk(field, document, found)),
                Value::Array(items) => items.iter().for_each(|item| walk(item, document, found)),
                _ => {}
            }
        }
        let document = document(&table());
        let mut found = 0;
        walk(&document, &document, &mut found);
        assert!(found > 10);
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert!(!name.contains(char::is_numeric), "{name}: two shapes of one name");
        }
    }

    #[test]
    fn the_document_knows_every_field_of_the_shapes() {
        let document = document(&table());
        let example: crate::record::ApprovalView = serde_json::from_str(include_str!("approval.example.json")).unwrap();
        let example = serde_json::to_value(example).unwrap();
        for (shape, object) in [("Approval", &example), ("Call", &example["call"])] {
            let documented: BTreeSet<_> =
                document["components"]["schemas"][shape]["properties"].as_object().unwrap().keys().collect();
            let written: BTreeSet<_> = object.as_object().unwrap().keys().collect();
            assert_eq!(documented, written, "{shape}");
        }
    }
}
