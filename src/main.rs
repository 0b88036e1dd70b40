//! The command line; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    portcullis::cli::main()
}
