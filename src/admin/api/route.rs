//! One route of the API: where it is, who serves it, and what a reader of the document is told that the handler's
//! signature does not say.

use std::sync::Arc;

use axum::routing::{self, MethodRouter};
use http::StatusCode;

use super::super::Admin;
use super::super::auth::Role;
use super::describe::{Described, Operation, Shapes};

/// A method of a path.
pub struct Route {
    /// In lower case, as the document writes it.
    pub method: &'static str,
    /// With its variables in braces.
    pub path: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What else there is to know.
    pub text: Option<&'static str>,
    /// The role that it needs, where being an approver at all is not enough.
    pub role: Option<Role>,
    /// Whether it is open to whoever reaches the address.
    pub open: bool,
    /// The problems that it may answer with, beside those that follow from its signature and its role.
    pub problems: Vec<StatusCode>,
    /// Serves it.
    pub handler: MethodRouter<Arc<Admin>>,
    /// Describes what the handler takes and gives.
    pub describe: fn(&mut Operation<'_>),
}

/// A route that changes nothing.
pub fn get<H: Described<T>, T: 'static>(path: &'static str, handler: H, summary: &'static str) -> Route {
    Route::new("get", path, routing::get(handler), H::describe, summary)
}

/// A route that does something.
pub fn post<H: Described<T>, T: 'static>(path: &'static str, handler: H, summary: &'static str) -> Route {
    Route::new("post", path, routing::post(handler), H::describe, summary)
}

/// A route that ends what it names.
pub fn delete<H: Described<T>, T: 'static>(path: &'static str, handler: H, summary: &'static str) -> Route {
    Route::new("delete", path, routing::delete(handler), H::describe, summary)
}

impl Route {
    fn new(
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<Arc<Admin>>,
        describe: fn(&mut Operation<'_>),
        summary: &'static str,
    ) -> Self {
        Self { method, path, summary, text: None, role: None, open: false, problems: Vec::new(), handler, describe }
    }

    /// Whether the handler reads the query.
    pub fn takes_query(&self) -> bool {
        let mut shapes = Shapes::new();
        let mut operation = Operation::new(&mut shapes);
        (self.describe)(&mut operation);
        !operation.query.is_empty()
    }

    /// With more to know than the summary.
    pub fn says(self, text: &'static str) -> Self {
        Self { text: Some(text), ..self }
    }

    /// For approvers with that role only; the handler asks for it by [`Who::require`](super::super::auth::Who::require).
    pub fn needs(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }

    /// Open without a credential, though one may be looked at.
    pub fn open(self) -> Self {
        Self { open: true, ..self }
    }

    /// May answer with these problems.
    pub fn may<const N: usize>(self, problems: [StatusCode; N]) -> Self {
        Self { problems: problems.into(), ..self }
    }
}
