//! What a handler's signature says of its route: each thing that it takes and what it gives, as the OpenAPI document
//! describes them.
//!
//! Whatever a handler takes has [`Takes`], whatever it gives has [`Gives`]; one that does not, does not compile as a
//! route. So the document cannot name another body, query or answer than the handler has.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::handler::Handler;
use http::{HeaderMap, StatusCode};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::super::Admin;
use super::super::auth::Who;
use super::super::problem::Problem;
use super::take::{Body, Params, Path, Text};

/// The shapes that are described so far, by name.
pub struct Shapes {
    taken: SchemaGenerator,
    given: SchemaGenerator,
}

impl Shapes {
    /// None yet.
    pub fn new() -> Self {
        // OpenAPI 3.1 speaks the same dialect, but keeps its shapes elsewhere.
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self {
            taken: settings.clone().for_deserialize().into_generator(),
            given: settings.for_serialize().into_generator(),
        }
    }

    /// All shapes with a name. One that is taken and given reads the same in both ways, or it has two names.
    pub fn named(&mut self) -> Map<String, Value> {
        let mut all = self.taken.take_definitions(true);
        for (name, shape) in self.given.take_definitions(true) {
            debug_assert!(
                all.get(&name).is_none_or(|other| *other == shape),
                "two shapes are called {name}: `#[schemars(inline)]` for one that is not the same both ways"
            );
            all.insert(name, shape);
        }
        all
    }
}

/// One operation of the document, as far as the handler says.
pub struct Operation<'a> {
    shapes: &'a mut Shapes,
    /// What the query may say.
    pub query: Vec<Value>,
    /// Its request body.
    pub body: Option<Value>,
    /// Whether it wants an approver's credential.
    pub wants_login: bool,
    /// Its answers that are no problems.
    pub answers: BTreeMap<u16, Value>,
    /// Statuses of problems.
    pub problems: Vec<StatusCode>,
}

impl<'a> Operation<'a> {
    /// Of nothing and to nothing.
    pub fn new(shapes: &'a mut Shapes) -> Self {
        Self {
            shapes,
            query: Vec::new(),
            body: None,
            wants_login: false,
            answers: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// It may give that JSON.
    pub fn gives<T: JsonSchema>(&mut self, status: StatusCode) {
        let schema = self.shapes.given.subschema_for::<T>();
        self.gives_kind(status, "application/json", &schema);
    }

    /// It may give that text.
    pub fn gives_text(&mut self, status: StatusCode, kind: &str) {
        let schema = self.shapes.given.subschema_for::<String>();
        self.gives_kind(status, kind, &schema);
    }

    fn gives_kind(&mut self, status: StatusCode, kind: &str, schema: &Schema) {
        let answer = json!({"description": "As it is now.", "content": {kind: {"schema": schema}}});
        self.answers.insert(status.as_u16(), answer);
    }

    /// It may give an answer without a body.
    pub fn gives_nothing(&mut self, status: StatusCode) {
        self.answers.insert(status.as_u16(), json!({"description": "Done."}));
    }

    fn takes_body<T: JsonSchema>(&mut self) {
        // Not by its name: `Claim` is what an approver sends, and what an approval has.
        let schema = T::json_schema(&mut self.shapes.taken);
        // An empty body counts as `{}`: one is needed where something in it is.
        let is_object = schema.get("type").is_some_and(|kind| kind == "object");
        let required = !is_object || required(&schema).next().is_some();
        self.body = Some(json!({"required": required, "content": {"application/json": {"schema": schema}}}));
        self.problems.extend([
            StatusCode::BAD_REQUEST,
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ]);
    }

    fn takes_query<T: JsonSchema>(&mut self) {
        let schema = T::json_schema(&mut self.shapes.taken);
        for (name, about) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mut about = about.clone();
            let description = about.as_object_mut().and_then(|about| about.remove("description"));
            self.query.push(json!({
                "name": name,
                "in": "query",
                "required": required(&schema).any(|needed| needed == name),
                "description": description,
                "schema": without_null(about),
            }));
        }
        self.problems.push(StatusCode::BAD_REQUEST);
    }
}

/// The names that an object must have.
fn required(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// A parameter that is left out is not `null`: the query has no such value.
fn without_null(mut schema: Value) -> Value {
    let null = json!("null");
    if let Some(kind) = schema.get_mut("type") {
        let mut others = kind.as_array().into_iter().flatten().filter(|kind| **kind != null);
        if let (Some(only), None) = (others.next().cloned(), others.next()) {
            *kind = only;
        }
    }
    if let Some(forms) = schema.get("anyOf").and_then(Value::as_array) {
        let mut others = forms.iter().filter(|form| form.get("type") != Some(&null));
        if let (Some(only), None) = (others.next(), others.next()) {
            return only.clone();
        }
    }
    schema
}

/// Something that a handler takes from the request.
#[diagnostic::on_unimplemented(
    message = "the API's document does not know what a handler takes with `{Self}`",
    note = "use `Body`, `Params`, `Path` or `Text` of `admin::api`, or describe it by `impl Takes`"
)]
pub trait Takes {
    /// Adds what it takes.
    fn describe(_: &mut Operation<'_>) {}
}

impl Takes for State<Arc<Admin>> {}
impl Takes for HeaderMap {}
/// The variables of a path are named by the route.
impl<T> Takes for Path<T> {}

impl Takes for Who {
    fn describe(operation: &mut Operation<'_>) {
        operation.wants_login = true;
        operation.problems.push(StatusCode::UNAUTHORIZED);
    }
}

impl<T: JsonSchema> Takes for Body<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_body::<T>();
    }
}

impl<T: JsonSchema> Takes for Text<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_body::<T>();
    }
}

impl<T: JsonSchema> Takes for Params<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_query::<T>();
    }
}

/// Something that a handler answers with.
#[diagnostic::on_unimplemented(
    message = "the API's document does not know what a handler gives with `{Self}`",
    note = "give `Json` of a type with `JsonSchema`, or describe it by `impl Gives`"
)]
pub trait Gives {
    /// Adds what it gives.
    fn describe(operation: &mut Operation<'_>);
}

impl<T: JsonSchema> Gives for Json<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives::<T>(StatusCode::OK);
    }
}

/// Which problems there are, the route says.
impl<T: Gives> Gives for Result<T, Problem> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
    }
}

/// A handler whose signature describes it.
pub trait Described<T>: Handler<T, Arc<Admin>> {
    /// Adds what it takes and gives.
    fn describe(operation: &mut Operation<'_>);
}

macro_rules! described {
    ([$($marker:ident)?], $($taken:ident),*) => {
        impl<F, Answer, Given, $($marker,)? $($taken),*> Described<described!(@ [$($marker)?], $($taken),*)> for F
        where
            F: FnOnce($($taken),*) -> Answer + Handler<described!(@ [$($marker)?], $($taken),*), Arc<Admin>>,
            Answer: Future<Output = Given>,
            Given: Gives,
            $($taken: Takes,)*
        {
            fn describe(operation: &mut Operation<'_>) {
                $($taken::describe(operation);)*
                Given::describe(operation);
            }
        }
    };
    (@ [], ) => { ((),) };
    (@ [$marker:ident], $($taken:ident),*) => { ($marker, $($taken,)*) };
}

described!([],);
described!([M], A);
described!([M], A, B);
described!([M], A, B, C);
described!([M], A, B, C, D);
described!([M], A, B, C, D, E);
