//! Lints: what loads, and is hardly meant so. Each has a stable code, a page in `docs/lints/` and a fixture.

pub(super) mod arguments;
mod places;
mod standing;
mod tools;
mod trust;
mod wider;

use places::{Bench, Sources};

use super::load::Loaded;
use crate::clock::Timestamp;
use crate::config::Config;
use crate::config::yaml::{Mark, Report};

/// A lint.
pub struct Lint {
    /// Its stable code, which names its page: `docs/lints/CODE.md`.
    pub code: &'static str,
    /// What it finds, in a few words; the title of its page.
    pub title: &'static str,
    find: fn(&Bench<'_>, &mut Findings),
}

/// Every lint.
pub const LINTS: [Lint; 17] = [
    Lint { code: "P001", title: "a rule that can never decide", find: wider::never_decides },
    Lint { code: "P002", title: "an allow that is wider than a deny", find: wider::holes },
    Lint { code: "P003", title: "a tool that nobody knows", find: tools::unknown_tools },
    Lint { code: "P004", title: "an argument that no tool has", find: tools::unknown_arguments },
    Lint { code: "P005", title: "a path that is not there", find: standing::missing_paths },
    Lint { code: "P006", title: "a group that no agent uses", find: standing::unused_groups },
    Lint { code: "P007", title: "a deny without a reason", find: trust::no_reason },
    Lint { code: "P008", title: "a bare file extension", find: trust::bare_extension },
    Lint { code: "P009", title: "everything else is allowed", find: trust::otherwise_allow },
    Lint { code: "P010", title: "a date that is near or past", find: standing::dates },
    Lint { code: "P011", title: "an upstream that is not configured", find: tools::unknown_upstreams },
    Lint { code: "P012", title: "arguments whose meaning is guessed", find: tools::guessed },
    Lint { code: "P013", title: "an allow on a program that runs others", find: trust::interpreters },
    Lint { code: "P014", title: "an allow on every tool", find: trust::allow_any },
    Lint { code: "P015", title: "a group that no policy has", find: standing::unknown_groups },
    Lint { code: "P016", title: "a limit of a rule without a name", find: trust::unnamed_limit },
    Lint { code: "P017", title: "an agent that is not configured", find: standing::unknown_agents },
];

impl Loaded {
    /// Fills `warnings` with what the lints find, in file order. Those that look at upstreams, agents and files need the
    /// configuration. Reads it and looks at the upstreams' folders: not on a thread that serves others.
    pub fn lint(&mut self, config: Option<&Config>, now: Timestamp) {
        let (sources, reports) = Sources::read(std::mem::take(&mut self.sources), config);
        let bench = Bench::new(&self.policy, &sources, config, now);
        let mut findings = Findings { reports, code: "" };
        for lint in &LINTS {
            findings.code = lint.code;
            (lint.find)(&bench, &mut findings);
        }
        self.warnings = findings.reports.into_iter().flat_map(Report::into_diagnostics).collect();
    }
}

/// What was found, by file.
struct Findings {
    reports: Vec<Report>,
    code: &'static str,
}

impl Findings {
    /// Whether more findings in a file would only be counted.
    fn is_full(&self, file: usize) -> bool {
        self.reports.get(file).is_none_or(Report::is_full)
    }

    fn add(&mut self, file: usize, at: Mark, message: impl AsRef<str>, help: impl AsRef<str>) {
        if let Some(report) = self.reports.get_mut(file) {
            report.lint(self.code, at, message).help(help.as_ref());
        }
    }
}
