//! Portcullis: a policy-driven approval gateway between an agent and its tool executors.
//!
//! A module imports only from lower layers (see `tests/` for the test that holds it to that).

pub mod clock;
pub mod diagnostic;
pub mod outbound;
pub mod pattern;
pub mod process;
pub mod secret;

pub mod config;
pub mod message;
pub mod record;

pub mod catalog;
pub mod identity;

pub mod facet;

pub mod approval;
pub mod policy;

pub mod audit;
pub mod metrics;
pub mod replay;
pub mod store;

pub mod gate;

pub mod admin;
pub mod listen;
pub mod tell;
pub mod upstream;

pub mod serve;

pub mod cli;
