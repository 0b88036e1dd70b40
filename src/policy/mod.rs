//! Pure policy over facets: the model, the loader, the judge.

mod advice;
mod approval;
mod args;
mod decimal;
mod fields;
pub mod judge;
pub mod load;
pub mod model;
mod reach;

pub use approval::{Grants, Requirement, Terms};
pub use judge::{FacetJudgement, Judgement, Subject, judge, needs_walk};
pub use load::{Loaded, load};
pub use model::{Policy, Rule};
