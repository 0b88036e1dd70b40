//! URLs as a browser reads them (WHATWG URL Standard), and what another reader would take differently.
//!
//! The host is the browser's: decimal, hexadecimal and octal IPv4 addresses are addresses, names are lower-case ASCII
//! (IDNA). Where a reader of RFC 3986, of IDNA 2003 or of fewer notations of addresses would go elsewhere, the URL is
//! odd: a floor asks, and no rule is sure of its host. What a name resolves to is not looked up (a name that resolves to
//! an internal address, DNS rebinding included, is for the network to stop).

mod address;

use unicode_normalization::UnicodeNormalization;
use url::{Host, Url};

use super::path::{file_rest, scheme};
use super::{Floor, FloorWhy};
use crate::pattern::is_invisible;

pub(super) use address::addresses;

/// The host of a URL, and what is odd about it. No host with a floor is one that is not known; without a floor the URL
/// has none.
///
/// # Errors
/// Control characters, which readers drop.
pub(super) fn read(text: &str) -> Result<(Option<String>, Vec<Floor>), String> {
    if text.chars().any(char::is_control) {
        return Err("a control character in a URL".to_owned());
    }
    let odd = |detail: &str| vec![Floor::because(FloorWhy::OddUrl, detail)];
    let text = text.trim_matches(' ');
    let Ok(url) = Url::parse(text) else {
        return Ok((None, odd("not a whole URL")));
    };
    if is_nested(text) {
        return Ok((url.host_str().map(str::to_owned), odd("a URL within a URL")));
    }
    let (host, mut oddity) = match url.host_str() {
        None => (None, hostless(&url, text)),
        // A scheme that browsers do not know keeps its host as it is, and its own reader resolves it like any other.
        Some(host) => match self::host(host) {
            Some(host) => (Some(host), None),
            None => (None, Some("a host that is no name")),
        },
    };
    oddity = oddity.or_else(|| oddity_of(text, url.scheme(), host.as_deref()));
    oddity = oddity.or_else(|| names_a_host(&url).then_some("a query that may name another host"));
    Ok((host, oddity.map(odd).unwrap_or_default()))
}

/// A host in the form in which hosts compare: lower-case ASCII, addresses in their shortest form, IPv6 in brackets.
pub(super) fn host(text: &str) -> Option<String> {
    Host::parse(text).ok().map(|host| host.to_string())
}

/// Why a URL without a host may lead to one all the same: `localhost:8080/x` and `gopher:evil.example` have none to a
/// browser, and `postgresql:///x` leads to this machine.
fn hostless(url: &Url, text: &str) -> Option<&'static str> {
    const NONE: [&str; 7] = ["mailto", "data", "about", "tel", "urn", "javascript", "blob"];
    #[rustfmt::skip]
    const HERE: [&str; 22] = [
        "unix", "docker", "npipe", "tcp", "postgres", "postgresql", "mysql", "mariadb", "mssql", "sqlserver", "oracle",
        "redis", "rediss", "mongodb", "ldap", "ldaps", "ldapi", "amqp", "amqps", "memcached", "mqtt", "nats",
    ];
    // `postgresql+asyncpg`, `http+unix`
    let mut protocols = url.scheme().split('+');
    if NONE.contains(&url.scheme()) {
        return None;
    }
    let rest = text.split_once(':').map_or("", |(_, rest)| rest);
    if !rest.starts_with("///") || protocols.any(|protocol| HERE.contains(&protocol)) {
        return Some("a URL whose host is not where a browser looks for it");
    }
    None
}

/// Outside the web, what a query says of a host counts (`postgresql://a.example/?host=b.example`).
fn names_a_host(url: &Url) -> bool {
    const WORDS: [&str; 6] = ["host", "server", "addr", "socket", "proxy", "url"];
    let named = |key: &str| WORDS.iter().any(|word| key.to_ascii_lowercase().contains(word));
    !is_of_the_web(url.scheme()) && url.query_pairs().any(|(key, _)| named(&key))
}

fn is_of_the_web(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp")
}

/// Where other readers find another host than a browser does.
fn oddity_of(text: &str, scheme: &str, host: Option<&str>) -> Option<&'static str> {
    if text.chars().any(is_invisible) {
        return Some("invisible characters in a URL");
    }
    let (_, rest) = text.split_once(':')?;
    let before_query = rest.split(['?', '#']).next().unwrap_or_default();
    if before_query.contains('\\') {
        return Some("a backslash, which browsers take for a slash");
    }
    let is_special = is_of_the_web(scheme);
    let Some(after) = rest.strip_prefix("//").filter(|after| !(is_special && after.starts_with('/'))) else {
        return is_special.then_some("not `//` before the host");
    };
    let (authority, tail) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
    if tail.starts_with(['?', '#']) && tail.split('/').next().is_some_and(|tail| tail.contains('@')) {
        return Some("an `@` after the host, which could end there only for some readers");
    }
    let (user, host_and_port) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let of_user = |c: char| c.is_ascii_alphanumeric() || "-._~%!$&'()*+,;=:".contains(c);
    if user.is_some_and(|user| !user.chars().all(of_user)) {
        return Some("a user name with characters that could end it");
    }
    oddity_of_host(host_and_port, host?)
}

/// `given` is the host as it was sent, maybe with a port; `host` the browser's reading.
fn oddity_of_host(given: &str, host: &str) -> Option<&'static str> {
    if given.starts_with('[') {
        return None;
    }
    let given = given.split(':').next().unwrap_or_default();
    if given.contains('%') {
        return Some("a host with escapes");
    }
    if given.split('.').any(|label| label.is_empty() || label.starts_with('-')) {
        return Some("a host with an empty label, or one that starts with `-`");
    }
    if given.chars().any(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && !"._-".contains(c)) {
        return Some("a host with characters that no name has");
    }
    if !given.is_ascii() && !is_plain_idn(given) {
        return Some("a host that readers of IDNA spell differently");
    }
    if host.parse::<std::net::Ipv4Addr>().is_ok() && host != given {
        return Some("an address that not all readers take for one");
    }
    None
}

/// Whether a name is the same under IDNA 2003, IDNA 2008 and UTS #46: no letter that one of them maps and another does
/// not, no other kind of dot.
fn is_plain_idn(name: &str) -> bool {
    let lower = |text: String| text.to_lowercase();
    lower(name.nfc().collect()) == lower(name.nfkc().collect())
        && !name.contains(['ß', 'ẞ', 'ς', '\u{200c}', '\u{200d}', '\u{3002}'])
}

/// `view-source:file:///x`, `jar:file:///x!/y`, `blob:https://…`: what follows the scheme is a URL itself.
fn is_nested(text: &str) -> bool {
    let Some((_, rest)) = text.split_once(':') else { return false };
    let inner = rest.trim_start_matches('/');
    // After `//` comes a host with its port, and no scheme.
    file_rest(inner).is_some() || (!rest.starts_with('/') && scheme(inner).is_some())
}

#[cfg(test)]
mod tests;
