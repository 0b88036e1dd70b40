//! One case, as a line of a `*.jsonl` file says it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One line of a case file. Fields that only tell where a case comes from are not read.
#[derive(Debug, Deserialize)]
pub struct Case {
    pub id: String,
    pub why: String,
    pub expect: Expect,
    #[serde(default)]
    pub setup: Vec<String>,
    #[serde(default)]
    pub policy: Map<String, Value>,
    pub policy_raw: Option<String>,
    pub policy_raw_b64: Option<String>,
    pub policy_raw_gen: Option<Value>,
    pub call: Option<Call>,
    pub call_raw: Option<String>,
    pub call_raw_b64: Option<String>,
    pub call_raw_gen: Option<Value>,
    #[serde(default)]
    pub transport: Map<String, Value>,
    #[serde(default)]
    pub swap_between_check_and_use: Vec<String>,
    #[serde(default)]
    pub reload: bool,
    #[serde(default)]
    pub steps: Vec<Map<String, Value>>,
    pub must_hold: Option<String>,
}

/// A tool call that JSON can hold.
#[derive(Debug, Deserialize)]
pub struct Call {
    pub tool: String,
    #[serde(default)]
    pub arguments: Value,
}

/// The safe answers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Expect {
    One(String),
    Any(Vec<String>),
}

impl Expect {
    /// Whether an answer is one of the safe ones.
    pub fn accepts(&self, got: &str) -> bool {
        match self {
            Self::One(one) => one == got,
            Self::Any(any) => any.iter().any(|one| one == got),
        }
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(one) => f.write_str(one),
            Self::Any(any) => f.write_str(&any.join(" or ")),
        }
    }
}

/// A long text said briefly: `prefix`, `open` n times, `middle`, `close` n times, `suffix`; or `prefix`, `repeat` n times
/// with `{i}` (or `%d`) counted up, `suffix`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gen {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    open: String,
    #[serde(default)]
    middle: String,
    #[serde(default)]
    close: String,
    #[serde(default)]
    repeat: String,
    #[serde(default)]
    suffix: String,
    #[serde(alias = "count", alias = "times")]
    n: usize,
}

impl Gen {
    fn text(&self) -> String {
        let numbered = |i: usize| self.repeat.replace("{i}", &i.to_string()).replace("%d", &i.to_string());
        let repeated: String = (0..self.n).map(numbered).collect();
        let (open, close) = (self.open.repeat(self.n), self.close.repeat(self.n));
        [&self.prefix, &open, &self.middle, &repeated, &close, &self.suffix].map(String::as_str).concat()
    }
}

impl Case {
    /// The policy file's bytes, where the case gives a whole file.
    pub fn policy_bytes(&self) -> Result<Option<Vec<u8>>, String> {
        bytes(self.policy_raw.as_deref(), self.policy_raw_b64.as_deref(), self.policy_raw_gen.clone())
    }

    /// The request's bytes, where the case gives them.
    pub fn call_bytes(&self) -> Result<Option<Vec<u8>>, String> {
        bytes(self.call_raw.as_deref(), self.call_raw_b64.as_deref(), self.call_raw_gen.clone())
    }
}

fn bytes(raw: Option<&str>, b64: Option<&str>, generated: Option<Value>) -> Result<Option<Vec<u8>>, String> {
    match (raw, b64, generated) {
        (Some(raw), ..) => Ok(Some(raw.as_bytes().to_vec())),
        (None, Some(b64), _) => STANDARD.decode(b64).map(Some).map_err(|e| format!("bad base64: {e}")),
        (None, None, None) => Ok(None),
        (None, None, Some(generated)) => match serde_json::from_value::<Gen>(generated) {
            Ok(generated) => Ok(Some(generated.text().into_bytes())),
            Err(error) => Err(format!("a generated text of another form: {error}")),
        },
    }
}
