//! Everything from outside: the built binary, real peers, real shells, a real browser. One binary, a module a feature.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod harness;

mod aggregate;
mod bad_input;
mod claims;
mod clarifications;
mod cli;
mod demo;
mod docs;
mod edit;
mod ends;
mod grants;
mod hold;
mod inbox;
mod inbox_actions;
mod inbox_many;
mod inward;
mod kill;
mod layers;
mod life;
mod limits;
mod openapi;
mod orders;
mod origin;
mod peers_everything;
mod peers_files;
mod peers_git;
mod people;
mod places;
mod quickstart;
mod readme;
mod reload;
mod replay;
mod schema;
mod shell;
mod shutdown;
mod tasks;
mod tell;
mod tools;
mod watch;
