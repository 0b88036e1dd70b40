//! `portcullis token new`: a credential, shown once.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::client::{self, Format};
use super::exit::Exit;
use crate::clock::Clock;
use crate::config::yaml::{Core, Scalar};
use crate::config::{expiry, is_name};
use crate::secret::{TokenHash, random_id};

/// Bytes of randomness in a token.
const BYTES: usize = 32;

/// Make credentials.
#[derive(Subcommand, Debug)]
pub enum Token {
    /// Make a token: it is shown once, with the line of its hash for portcullis.yaml
    ///
    /// The token goes to whoever is to use it; the line, which holds only its hash, goes into portcullis.yaml. Nothing
    /// is written or kept here: a lost token cannot be shown again, make another.
    New(New),
}

/// Whose token, and for how long.
#[derive(Args, Debug)]
pub struct New {
    /// For an agent of this name: good for calls and nothing else (without a name: for an entry that is there already)
    #[arg(long, value_name = "NAME", value_parser = name)]
    agent: Option<String>,
    /// For an approver of this name: good for decisions
    #[arg(long, value_name = "NAME", value_parser = name, conflicts_with = "agent")]
    approver: Option<String>,
    /// Let it end at the beginning of a day in UTC (2027-01-01), or at a moment (2027-01-01T12:00:00Z)
    #[arg(long, value_name = "DATE", value_parser = date)]
    expires: Option<String>,
    /// For people, or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// A new token, as it is printed.
#[derive(Serialize, Debug)]
struct Made {
    /// The token itself; kept nowhere.
    token: String,
    /// `agent` or `approver`.
    kind: &'static str,
    name: Option<String>,
    /// What portcullis.yaml holds of it.
    sha256: String,
    expires: Option<String>,
}

impl Token {
    /// Runs the command.
    pub fn run(self) -> Exit {
        let Self::New(new) = self;
        let format = new.format;
        let made = new.make();
        let text = match format {
            Format::Human => made.human(),
            Format::Json => match serde_json::to_string(&made) {
                Ok(json) => json,
                Err(_) => return Exit::Failed,
            },
        };
        client::print(&text).map_or_else(|failure| failure.report(), |()| Exit::Done)
    }
}

impl New {
    fn make(self) -> Made {
        let (kind, name) = match self.approver {
            Some(name) => ("approver", Some(name)),
            None => ("agent", self.agent),
        };
        let token = random_id(&format!("pc_{kind}_"), BYTES);
        let sha256 = TokenHash::of(&token).to_hex();
        Made { token, kind, name, sha256, expires: self.expires }
    }
}

impl Made {
    fn human(&self) -> String {
        let Self { token, kind, .. } = self;
        let place = if self.name.is_some() { format!("`{kind}s:`") } else { format!("the `tokens:` of an {kind}") };
        let line = self.line();
        let roles = match (self.kind, &self.name) {
            ("approver", Some(_)) => {
                "\nwhoever is also to accept tools, reload the policy and stop calls needs `roles: [approver, operator]`\n"
            }
            _ => "",
        };
        format!(
            "the token, for the {kind}; it is shown this once and kept nowhere:\n\n  {token}\n\n\
             its hash, for portcullis.yaml, below {place} (the token itself does not go there):\n\n  {line}\n{roles}"
        )
    }

    /// The entry for portcullis.yaml.
    fn line(&self) -> String {
        let expires = self.expires.as_ref().map(|date| format!(", expires: {date}")).unwrap_or_default();
        let token = format!("{{ sha256: {}{expires} }}", self.sha256);
        let what = if self.kind == "agent" { "group: default" } else { "roles: [approver], groups: [default]" };
        match &self.name {
            Some(name) => format!("- {{ name: {}, {what}, tokens: [{token}] }}", yaml_text(name)),
            None => format!("- {token}"),
        }
    }
}

/// A name as YAML, in quotes where it would read as something else.
fn yaml_text(name: &str) -> String {
    let plain =
        Scalar { text: name.into(), plain: true }.core() == Core::Text && name.starts_with(char::is_alphanumeric);
    if plain { name.to_owned() } else { format!("\"{name}\"") }
}

fn name(text: &str) -> Result<String, &'static str> {
    if is_name(text) { Ok(text.to_owned()) } else { Err("a name has up to 64 letters, digits and . _ @ + -") }
}

fn date(text: &str) -> Result<String, &'static str> {
    let moment = expiry(text).ok_or("write a date such as 2027-01-01, or 2027-01-01T12:00:00Z")?;
    if moment <= Clock::system().now() {
        return Err("that is over: such a token would never be good");
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use clap::Parser;

    use super::*;
    use crate::clock::Timestamp;
    use crate::config;
    use crate::identity::Directory;

    #[derive(Parser, Debug)]
    struct Cli {
        #[command(subcommand)]
        token: Token,
    }

    fn parse(arguments: &[&str]) -> Option<New> {
        let Cli { token: Token::New(new) } = Cli::try_parse_from([&["token", "new"], arguments].concat()).ok()?;
        Some(new)
    }

    #[test]
    fn the_printed_lines_make_a_configuration_that_knows_the_tokens() {
        let agent = parse(&["--agent", "claude", "--expires", "2999-01-01"]).unwrap().make();
        let approver = parse(&["--approver", "007"]).unwrap().make();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        let text = format!(
            "policy: {{ files: [a.yaml] }}\nupstreams: {{}}\nagents:\n  {}\napprovers:\n  {}\n",
            agent.line(),
            approver.line()
        );
        std::fs::write(&file, text).unwrap();
        let directory = Directory::new(&config::load(&file).unwrap());
        let known = directory.agent(Some(&agent.token), true, Timestamp::from_millis(0)).unwrap();
        assert_eq!(known.config.name, "claude");
        assert_eq!(known.config.tokens[0].expires, expiry("2999-01-01"));
        assert_eq!(directory.approver(&approver.token, Timestamp::from_millis(0)).unwrap().config.name, "007");
    }

    #[test]
    fn the_token_says_what_it_is_for_and_its_hash_says_nothing() {
        let made = parse(&["--agent", "claude"]).unwrap().make();
        assert!(made.token.starts_with("pc_agent_"));
        assert_eq!(made.human().matches(&made.token).count(), 1);
        assert!(!made.line().contains(&made.token));
        let nobodys = parse(&[]).unwrap().make();
        assert_eq!(nobodys.line(), format!("- {{ sha256: {} }}", TokenHash::of(&nobodys.token).to_hex()));
        let json = serde_json::to_value(&made).unwrap();
        assert_eq!((&json["kind"], &json["expires"]), (&"agent".into(), &serde_json::Value::Null));
    }

    #[test]
    fn nonsense_is_a_usage_error() {
        for arguments in [
            &["--agent", "a", "--approver", "b"][..],
            &["--agent", "a b"],
            &["--agent", ""],
            &["--agent", "a", "--expires", "soon"],
            &["--agent", "a", "--expires", "2027-13-01"],
            &["--agent", "a", "--expires", "2020-01-01"],
        ] {
            assert!(parse(arguments).is_none(), "{arguments:?}");
        }
    }
}
