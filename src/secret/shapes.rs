//! Shapes of tokens, found in any text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Shapes of tokens as their makers publish them. What the group `keep` holds stays readable.
static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shapes = [
        // AWS key ids
        r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b",
        // GitHub, GitLab, Slack, npm, PyPI, Google, Stripe
        r"\bgh[pousr]_[A-Za-z0-9]{20,}",
        r"\bgithub_pat_[A-Za-z0-9_]{20,}",
        r"\bglpat-[A-Za-z0-9_-]{20,}",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"\bnpm_[A-Za-z0-9]{30,}",
        r"\bpypi-[A-Za-z0-9_-]{40,}",
        r"\bAIza[A-Za-z0-9_-]{35}",
        r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
        // OpenAI, Anthropic
        r"\bsk-[A-Za-z0-9_-]{20,}",
        // our own
        r"\bpc_[a-z]+_[A-Za-z0-9_-]{20,}",
        // JSON web tokens
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        // private keys, cut off ones too: lines of Base64 after headers, and nothing that could be text for a reader
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?:[ \t\r\n]|\\[rn])*(?:(?:Proc-Type|DEK-Info): [A-Z0-9,-]+|[A-Za-z0-9+/=]{24,}))*(?:(?:[ \t\r\n]|\\[rn])*[A-Za-z0-9+/=]{0,24}(?:[ \t\r\n]|\\[rn])*-----END [A-Z ]*PRIVATE KEY-----)?",
        // credentials after their scheme, in a header or alone
        r"(?i:(?<scheme>\bbearer[ \t]+)[A-Za-z0-9._~+/=-]{12,})",
        r#"(?i:(?<header>\bauthorization["']?[ \t]*[:=][ \t]*["']?(?:(?:basic|bearer|digest|token)[ \t]+)?)[A-Za-z0-9._~+/=-]{12,})"#,
        // user information of a URL; here and below nothing is hidden that a shell would run
        r"(?i:(?<url>\b[a-z][a-z0-9+.-]*://)[^/\s:@`$;|&<>(){}]*:[^/\s@`$;|&<>(){}]+(?<at>@))",
        // parameters of a URL, options and environment of a command
        r#"(?i:(?<pair>(?:[?&]|--)[\w-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|signature)=["']?)[^\s"'#`$;|&<>(){}]+)"#,
        r#"(?<env>\b[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_KEY|ACCESS_KEY)=["']?)[^\s"'`$;|&<>(){}]+"#,
    ];
    // ASCII word boundaries keep the search linear in one pass. A test compiles the expression.
    Regex::new(&shapes.join("|").replace(r"\b", r"(?-u:\b)").replace(r"\w", "A-Za-z0-9_")).ok()
});

/// Where secrets of a known shape stand in a text, in order; not what tells them: `Bearer `, the `--token=` of an option.
pub(super) fn find(text: &str) -> impl Iterator<Item = Range<usize>> {
    SHAPES.iter().flat_map(|shapes| shapes.captures_iter(text)).filter_map(|found| secret(&found))
}

fn secret(found: &Captures<'_>) -> Option<Range<usize>> {
    let whole = found.get(0)?;
    let before = ["scheme", "header", "url", "pair", "env"].iter().filter_map(|name| found.name(name));
    let start = before.map(|kept| kept.end()).max().unwrap_or_else(|| whole.start());
    let end = found.name("at").map_or_else(|| whole.end(), |kept| kept.start());
    Some(start..end)
}
