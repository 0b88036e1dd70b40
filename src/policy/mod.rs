//! Pure policy over facets: the model, the loader, the judge.

mod advice;
mod approval;
mod args;
mod builtin;
mod decimal;
mod examples;
mod fields;
mod find;
pub mod judge;
mod link;
pub mod load;
pub mod model;
mod reach;
mod read;

pub use approval::{Grants, Requirement, Terms};
pub use judge::{FacetJudgement, Judgement, Subject, judge, needs_walk};
pub use load::{Loaded, load};
pub use model::{Policy, Rule};
