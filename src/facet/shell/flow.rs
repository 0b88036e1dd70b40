//! Where commands run: what `cd` leaves behind, whether it works or not.

/// More directories than this are none that is known.
const MAX: usize = 4;
/// Names in one that is known.
const MAX_DEEP: usize = 64;

/// The directories that a command may run in, from where the call starts (`""`); `None` is one that is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bases(Vec<Option<String>>);

impl Bases {
    pub fn start() -> Self {
        Self(vec![Some(String::new())])
    }

    pub fn unknown() -> Self {
        Self(vec![None])
    }

    pub fn all(&self) -> &[Option<String>] {
        &self.0
    }

    /// Either these or those.
    pub fn or(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        all.extend(other.0.iter().filter(|base| !self.0.contains(base)).cloned());
        if all.len() > MAX { Self::unknown() } else { Self(all) }
    }

    /// After a change to `directory`.
    pub fn into(&self, directory: &str) -> Self {
        let into = |base: &str| (!is_deep(base)).then(|| below(base, directory));
        Self(self.0.iter().map(|base| into(base.as_deref()?)).collect())
    }
}

/// Whether a directory was changed to so often that it is followed no further.
pub(super) fn is_deep(directory: &str) -> bool {
    directory.matches('/').count() >= MAX_DEEP
}

/// A path that starts at a directory, nothing folded.
pub(super) fn below(base: &str, path: &str) -> String {
    match (base, path) {
        (_, path) if path.starts_with('/') => path.to_owned(),
        ("", path) => path.to_owned(),
        (base, path) => format!("{base}/{path}"),
    }
}

/// Where what follows runs: after success, and after failure.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub ok: Bases,
    pub err: Bases,
}

impl Flow {
    /// Nothing changes.
    pub fn same(bases: &Bases) -> Self {
        Self { ok: bases.clone(), err: bases.clone() }
    }

    /// Either way.
    pub fn any(&self) -> Bases {
        self.ok.or(&self.err)
    }
}
