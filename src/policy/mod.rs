//! Pure policy over facets: the model, the loader, the judge.

pub mod judge;
pub mod load;
pub mod model;

pub use judge::{FacetJudgement, Judgement, Requirement, Subject, judge};
pub use load::{Loaded, load};
pub use model::Policy;
