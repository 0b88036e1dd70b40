//! Pure policy over facets: the model, the loader, the judge.

mod advice;
mod approval;
mod args;
mod bench;
mod builtin;
mod called;
mod claimed;
mod closed;
mod commands;
mod decimal;
mod examples;
mod explain;
mod fields;
mod find;
mod hosts;
mod index;
pub mod judge;
mod limit;
mod link;
pub mod lint;
pub mod load;
pub mod model;
mod near;
mod outlook;
mod reach;
mod read;
mod request;
mod schema;
mod statements;
pub mod suite;
#[cfg(test)]
mod tests;

pub use approval::{Grants, Requirement, Terms};
pub use claimed::{Claim, Claimed};
pub use closed::passes;
pub use decimal::Decimal;
pub use explain::{Executor, Unanswerable, explain, malformed};
pub use judge::{FacetJudgement, Judgement, Shadow, Subject, judge, needs_walk};
pub use limit::{Charge, Period, Then};
pub use load::{Loaded, files, load, own_files, test};
pub use model::{Policy, Rule};
pub use outlook::{Prospect, outlook};
pub use schema::schema;
