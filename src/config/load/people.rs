//! Agents, approvers and their tokens.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::super::yaml::{Fields, Mark, Node, Report};
use super::super::{AgentConfig, AllowSelf, ApproverConfig, ClaimKey, Role, TokenConfig, expiry, is_name};
use super::values::Surroundings;
use crate::record::{Depth, Source};
use crate::secret::TokenHash;

pub(super) const ALLOW_SELF: [(&str, AllowSelf); 3] =
    [("never", AllowSelf::Never), ("single", AllowSelf::Single), ("always", AllowSelf::Always)];

const ROLES: [(&str, Role); 4] =
    [("viewer", Role::Viewer), ("approver", Role::Approver), ("operator", Role::Operator), ("auditor", Role::Auditor)];

/// Bytes of a shared secret: as many as the hash has (RFC 7518, section 3.2).
const SHORTEST_SECRET: usize = 32;

/// Somebody, and where each of their tokens stands.
pub(super) struct Person<T> {
    pub(super) config: T,
    tokens: Vec<(TokenHash, Mark)>,
}

pub(super) fn agents(node: Option<&Node>, around: &Surroundings<'_>, report: &mut Report) -> Vec<Person<AgentConfig>> {
    people(node, "an agent", report, |fields, name, tokens, report| {
        let group = fields.required("group", report).and_then(|node| node.text(report));
        let owner = fields.optional("owner").and_then(|node| node.text(report));
        let source = fields.optional("source").and_then(|node| {
            node.choice(&[("interactive", Source::Interactive), ("background", Source::Background)], report)
        });
        let depth = fields
            .optional("depth")
            .and_then(|node| node.choice(&[("root", Depth::Root), ("sub", Depth::Sub)], report));
        let claims = fields.optional("claims").and_then(|node| claim_key(node, around, report));
        Some(AgentConfig {
            name,
            group: group?.to_owned(),
            owner: owner.map(str::to_owned),
            tokens,
            source: source.unwrap_or_default(),
            depth: depth.unwrap_or_default(),
            claims,
        })
    })
}

/// `{ secret: … }` or `{ public_key: … }`.
fn claim_key(node: &Node, around: &Surroundings<'_>, report: &mut Report) -> Option<ClaimKey> {
    let mut fields = Fields::new(node, "the key of claims", report)?;
    let secret = fields.optional("secret").and_then(|node| {
        let secret = around.secret(node, report)?;
        if secret.expose().len() < SHORTEST_SECRET {
            report
                .error(node.at, format!("the secret has less than {SHORTEST_SECRET} bytes and could be guessed"))
                .help("make one with `openssl rand -base64 48`, and put it here as `${NAME}` from the environment");
            return None;
        }
        Some(ClaimKey::Secret(secret))
    });
    let public_key = fields.optional("public_key").and_then(|node| {
        let bytes = URL_SAFE_NO_PAD.decode(node.text(report)?).ok();
        let key = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        if key.is_none() {
            report
                .error(node.at, "this is no public key of Ed25519")
                .help("write its 32 bytes as base64url without padding: the `x` of its JWK (RFC 8037)");
        }
        key.map(ClaimKey::Ed25519)
    });
    if fields.has("secret") == fields.has("public_key") {
        report
            .error(node.at, "claims are checked with one key")
            .help("write `secret: \"${NAME}\"` for HS256, or `public_key:` for Ed25519");
    }
    fields.finish(report);
    secret.or(public_key)
}

pub(super) fn approvers(node: Option<&Node>, report: &mut Report) -> Vec<Person<ApproverConfig>> {
    people(node, "an approver", report, |fields, name, tokens, report| {
        let roles = fields.required("roles", report).and_then(|node| node.one_or_more(report)).unwrap_or_default();
        let roles = roles.iter().filter_map(|node| node.choice(&ROLES, report)).collect();
        let names = |node: Option<&Node>, report: &mut Report| {
            node.and_then(|node| node.texts(report)).unwrap_or_default().into_iter().map(str::to_owned).collect()
        };
        let groups = names(fields.optional("groups"), report);
        let teams = names(fields.optional("teams"), report);
        if !fields.has("tokens") {
            let help = format!("`portcullis token new --approver {name}` makes one");
            report.error(fields.at, format!("approver `{name}` has no token and could never log in")).help(&*help);
        }
        Some(ApproverConfig { name, roles, groups, teams, tokens })
    })
}

/// Refuses a token that belongs to two: the agent's would be good on the admin side, or decisions would bear the wrong
/// name.
pub(super) fn refuse_shared_tokens(
    agents: &[Person<AgentConfig>],
    approvers: &[Person<ApproverConfig>],
    report: &mut Report,
) {
    let agents = agents.iter().flat_map(|p| p.tokens.iter().map(|t| (p.config.name.as_str(), t)));
    let approvers = approvers.iter().flat_map(|p| p.tokens.iter().map(|t| (p.config.name.as_str(), t)));
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (name, (hash, at)) in agents.chain(approvers) {
        if let Some(first) = seen.insert(hash.to_hex(), name) {
            report
                .error(*at, format!("this token is also one of `{first}`"))
                .help("`portcullis token new` makes a token for each");
        }
    }
}

/// Reads a list of people: names and tokens here, the rest by `read`.
fn people<'n, T>(
    node: Option<&'n Node>,
    what: &str,
    report: &mut Report,
    read: impl Fn(&mut Fields<'n>, String, Vec<TokenConfig>, &mut Report) -> Option<T>,
) -> Vec<Person<T>> {
    let mut people = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for node in node.and_then(|node| node.sequence(report)).unwrap_or_default() {
        let Some(mut fields) = Fields::new(node, what, report) else { continue };
        let name = fields.required("name", report).and_then(|node| name(node, &mut names, report));
        let tokens = fields.optional("tokens").and_then(|node| node.one_or_more(report)).unwrap_or_default();
        let tokens: Vec<(TokenConfig, Mark)> = tokens.iter().filter_map(|node| token(node, report)).collect();
        let configs = tokens.iter().map(|(token, _)| token.clone()).collect();
        // Read on without a name, so that all errors are told.
        let config = read(&mut fields, name.unwrap_or("?").to_owned(), configs, report);
        fields.finish(report);
        if let (Some(config), Some(_)) = (config, name) {
            people.push(Person { config, tokens: tokens.iter().map(|(token, at)| (token.hash, *at)).collect() });
        }
    }
    people
}

fn name<'n>(node: &'n Node, seen: &mut Vec<&'n str>, report: &mut Report) -> Option<&'n str> {
    let name = node.text(report)?;
    if !is_name(name) {
        report.error(node.at, format!("`{name}` is no name")).help("use up to 64 letters, digits and . _ @ + -");
        return None;
    }
    if seen.contains(&name) {
        report.error(node.at, format!("`{name}` is named twice"));
        return None;
    }
    seen.push(name);
    Some(name)
}

fn token(node: &Node, report: &mut Report) -> Option<(TokenConfig, Mark)> {
    let mut fields = Fields::new(node, "a token", report)?;
    let digest = fields.required("sha256", report);
    let hash = digest.and_then(|node| {
        let hash = TokenHash::from_hex(node.verbatim(report)?);
        if hash.is_none() {
            report
                .error(node.at, "this is no SHA-256 of a token: 64 hexadecimal digits")
                .help("`portcullis token new` prints the line to put here; the token itself stays with its owner");
        }
        hash
    });
    let mut sound = true;
    let expires = fields.optional("expires").and_then(|node| {
        let moment = node.text(report).and_then(expiry);
        if moment.is_none() {
            report.error(node.at, "this is no date").help("write one such as 2027-01-01, or 2027-01-01T12:00:00Z");
            sound = false;
        }
        moment
    });
    fields.finish(report);
    sound.then_some((TokenConfig { hash: hash?, expires }, node.at))
}
