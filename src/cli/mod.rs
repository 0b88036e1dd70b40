//! One file per command.

pub mod approvals;
pub mod calls;
pub mod client;
pub mod exit;
