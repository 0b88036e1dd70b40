//! The proof that a message may be forwarded.

use super::Executor;
use crate::facet::{FloorWhy, Touched};

/// May be forwarded once. Only the gate can make one, by judging or for the closed list of methods that pass; it is
/// taken by value at the one door to an executor, [`super::Link::send`].
#[derive(Debug)]
pub struct Permit {
    other_names: bool,
}

impl Permit {
    /// For the closed list; visible to the gate's own rooms only.
    pub(super) fn mint() -> Self {
        Self { other_names: false }
    }

    /// For what was judged.
    pub(super) fn judged(executor: &Executor, touched: &Touched) -> Self {
        let mut floors = touched.facets.iter().flat_map(|facet| &facet.floors);
        Self { other_names: !executor.config.hard_links_ask || floors.any(|floor| floor.why == FloorWhy::HardLink) }
    }

    /// Once more, where an executor has said that it ran nothing.
    pub(super) fn again(&self) -> Self {
        Self { other_names: self.other_names }
    }

    /// Whether a file that the call names may have other names (hard links): it had when the call was judged, or nobody
    /// minds. If not, one that has was put there since.
    pub fn other_names(&self) -> bool {
        self.other_names
    }

    /// A permit for tests of the edges, which only transport.
    #[cfg(test)]
    pub(crate) fn for_test(other_names: bool) -> Self {
        Self { other_names }
    }
}
