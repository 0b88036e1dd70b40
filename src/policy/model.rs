//! A checked policy.

/// All rules in force, compiled once at load.
#[derive(Debug)]
pub struct Policy {
    /// `sha256:…` over the files' names and bytes and the switched-off built-ins.
    pub version: String,
}
