//! One file per command.

pub mod approvals;
pub mod audit;
pub mod calls;
pub mod client;
pub mod exit;
pub mod init;
pub mod policy;
pub mod token;
