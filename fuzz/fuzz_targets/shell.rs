//! A shell text: what is allowed is run by bash and by dash among stubs, and must have done nothing that is not.
#![no_main]
#![allow(dead_code)]

#[path = "../../tests/integration/shell/gate.rs"]
mod gate;
#[path = "../../tests/integration/shell/policy.rs"]
mod policy;
#[path = "../../tests/integration/shell/sandbox.rs"]
mod sandbox;

use std::sync::LazyLock;

use gate::Gate;
use libfuzzer_sys::fuzz_target;
use portcullis::record::Verdict;
use sandbox::Sandbox;

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(Sandbox::new);
static GATE: LazyLock<Gate> = LazyLock::new(|| Gate::new(SANDBOX.root(), policy::GENEROUS));

fuzz_target!(|text: &str| {
    if GATE.verdict(text) == Verdict::Allow {
        let wrong = SANDBOX.wrong(text);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
});
