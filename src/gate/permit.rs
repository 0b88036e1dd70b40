//! The proof that a message may be forwarded.

/// May be forwarded once. Only the gate can make one, by judging or for the closed list of methods that pass; it is
/// taken by value at the one door to an executor, [`super::Link::send`].
#[derive(Debug)]
pub struct Permit(());

impl Permit {
    /// Mints a permit; visible to the gate's own rooms only.
    pub(super) fn mint() -> Self {
        Self(())
    }

    /// A permit for tests of the edges, which only transport.
    #[cfg(test)]
    pub(crate) fn for_test() -> Self {
        Self(())
    }
}
