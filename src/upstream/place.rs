//! What tells two executors of one name apart: what is started, where, and with which environment.

use std::ffi::{OsStr, OsString};

use sha2::{Digest, Sha256};

use crate::gate::Place;

/// Variables that differ between two starts of the same thing and say nothing of what it does.
const PASSING: [&str; 14] = [
    "_",
    "COLUMNS",
    "HOSTNAME",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "MAINPID",
    "OLDPWD",
    "SHLVL",
    "SYSTEMD_EXEC_PID",
    "TERM",
    "TERM_SESSION_ID",
    "WINDOWID",
    "XDG_SESSION_ID",
];

/// The environment that children are started with: the gateway's own without its variables (`PORTCULLIS_*`).
pub(super) fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !is_ours(name))
}

/// Whether a variable is the gateway's own, which no child is given.
pub(super) fn is_ours(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"PORTCULLIS_")
}

/// A place of these parts, with or without an environment; `shown` is what people may see of the parts.
pub(super) fn place<'a>(
    kind: &str,
    parts: impl IntoIterator<Item = &'a [u8]>,
    shown: &str,
    environment: bool,
) -> Place {
    let of_parts = digest(parts);
    let of_environment = environment.then(environment_digest);
    let whole = [kind, of_parts.as_str(), of_environment.as_deref().unwrap_or_default()];
    let shown = match &of_environment {
        Some(digest) => format!("{shown}, environment {}", digest.get(..8).unwrap_or_default()),
        None => shown.to_owned(),
    };
    Place { digest: digest(whole.map(str::as_bytes)), shown }
}

fn environment_digest() -> String {
    let mut variables: Vec<_> =
        environment().filter(|(name, _)| !PASSING.iter().any(|passing| name == passing)).collect();
    variables.sort();
    digest(variables.iter().flat_map(|(name, value)| [name.as_encoded_bytes(), value.as_encoded_bytes()]))
}

/// Over the parts and where each ends.
pub(super) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn only_the_gateways_own_variables_are_kept_back() {
        assert!(is_ours(OsStr::new("PORTCULLIS_CONFIG")));
        assert!(!is_ours(OsStr::new("PATH")) && !is_ours(OsStr::new("MY_PORTCULLIS_X")));
    }

    #[test]
    fn a_place_is_of_every_part_and_of_where_each_ends() {
        let of = |parts: &[&str]| place("stdio", parts.iter().map(|part| part.as_bytes()), "/work", true);
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["a", "b"]).digest, of(&["ab"]).digest);
        assert_ne!(of(&["a", "b"]).digest, of(&["b", "a"]).digest);
        let other = place("http", ["a", "b"].map(str::as_bytes), "/work", true);
        assert_ne!(of(&["a", "b"]).digest, other.digest);
        assert!(of(&[]).shown.starts_with("/work, environment "));
    }
}
