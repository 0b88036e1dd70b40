//! E-mail addresses: each address of a list, and its domain (RFC 5321 section 4.1.2, RFC 5322 section 3.4).

use super::host;

/// One address of a list: its text, and its domain in the form in which hosts compare; none where it cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::facet) struct Address {
    pub text: String,
    pub host: Option<String>,
}

/// The addresses of a header-like list: `a@x.example, "Ana B" <b@x.example>; team: c@x.example;`. Never empty: what
/// holds no address that can be read is one whose domain is not known.
///
/// Readers differ on everything beyond that (comments, quoted local parts, several `@`, line folding, escapes), and so
/// such an address is not read at all.
pub(in crate::facet) fn addresses(text: &str) -> Vec<Address> {
    let unread = |part: &str| Address { text: part.trim().to_owned(), host: None };
    let Some(parts) = split(text) else { return vec![unread(text)] };
    let mut found: Vec<Address> = Vec::new();
    for part in parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
        found.push(match bare(part).and_then(|address| Some((address, domain(address)?))) {
            Some((address, host)) => Address { text: address.to_owned(), host: Some(host) },
            None => unread(part),
        });
    }
    if found.is_empty() { vec![unread(text)] } else { found }
}

/// The parts of a list, a group's name left out. None where quotes or brackets do not pair, or are used oddly.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut quoted, mut angled, mut grouped) = (Vec::new(), 0, false, false, false);
    for (at, c) in text.char_indices() {
        match c {
            '\\' | '(' | ')' => return None,
            c if c.is_control() => return None,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '<' if angled => return None,
            '<' => angled = true,
            '>' if !angled => return None,
            '>' => angled = false,
            // A route (RFC 5321, appendix C) or worse.
            ',' | ';' | ':' if angled && !is_literal_so_far(text.get(start..at)?) => return None,
            ',' | ';' => {
                grouped &= c != ';';
                parts.push(text.get(start..at)?);
                start = at + c.len_utf8();
            }
            // `group:`; the colons of `[IPv6:…]` come after an `@`.
            ':' if !text.get(start..at)?.contains('@') => {
                if std::mem::replace(&mut grouped, true) {
                    return None;
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    if quoted || angled {
        return None;
    }
    parts.push(text.get(start..)?);
    Some(parts)
}

/// Whether a colon that comes next is one of an address literal.
fn is_literal_so_far(part: &str) -> bool {
    part.rsplit_once("@[").is_some_and(|(_, literal)| !literal.contains(']'))
}

/// The address of a part, its display name left out.
fn bare(part: &str) -> Option<&str> {
    match part.split_once('<') {
        // What is in brackets is the address, and nothing follows it. A name that looks like one misleads.
        Some((name, rest)) => rest.strip_suffix('>').filter(|inner| !inner.contains(['<', '>']) && !name.contains('@')),
        None if part.contains('"') => None,
        None => Some(part),
    }
    .map(|address| address.trim_matches(' '))
}

/// The domain of a bare address.
fn domain(address: &str) -> Option<String> {
    let (local, domain) = address.split_once('@')?;
    let of_local = |c: char| c.is_alphanumeric() || "!#$&'*+-/=?^_`{|}~.".contains(c);
    if local.is_empty() || local.len() > 64 || !local.chars().all(of_local) {
        return None;
    }
    match domain.strip_prefix('[') {
        // RFC 5321 section 4.1.3: `[192.0.2.1]`, `[IPv6:2001:db8::1]`.
        Some(literal) => {
            let literal = literal.strip_suffix(']')?;
            match literal.get(..5).filter(|tag| tag.eq_ignore_ascii_case("ipv6:")) {
                Some(tag) => host(&format!("[{}]", literal.strip_prefix(tag)?)),
                None => literal.parse::<std::net::Ipv4Addr>().ok().map(|address| address.to_string()),
            }
        }
        None => {
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
            let label = |label: &str| !label.is_empty();
            let fits = domain.chars().all(plain) && domain.split('.').all(label);
            let host = host(domain).filter(|_| fits && (domain.is_ascii() || super::is_plain_idn(domain)))?;
            // No mail goes to a bare number, and no two readers take it alike.
            host.parse::<std::net::Ipv4Addr>().is_err().then_some(host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<Option<String>> {
        addresses(text).into_iter().map(|address| address.host).collect()
    }

    #[test]
    fn every_address_of_a_list_has_its_domain() {
        for (text, domains) in [
            ("ana@Corp.example", vec!["corp.example"]),
            ("ana@corp.example, eve@evil.example", vec!["corp.example", "evil.example"]),
            ("Ana <ana@corp.example>; <eve@evil.example>;", vec!["corp.example", "evil.example"]),
            ("\"Ana, of Corp\" <ana@corp.example>", vec!["corp.example"]),
            ("team: ana@corp.example, bob@corp.example;", vec!["corp.example", "corp.example"]),
            ("team: ana@corp.example; other: eve@evil.example;", vec!["corp.example", "evil.example"]),
            ("ana+tag@mail.corp.example", vec!["mail.corp.example"]),
            ("ana@bücher.example", vec!["xn--bcher-kva.example"]),
            ("ana@[127.0.0.1]", vec!["127.0.0.1"]),
            ("<ana@[IPv6:::1]>", vec!["[::1]"]),
        ] {
            let domains: Vec<_> = domains.into_iter().map(|domain| Some(domain.to_owned())).collect();
            assert_eq!(hosts(text), domains, "{text}");
        }
    }

    #[test]
    fn what_readers_take_differently_is_not_read() {
        for text in [
            "",
            " ; ,",
            "ana",
            "@corp.example",
            "ana@",
            "ana@corp.example@evil.example",
            "\"ana@corp.example\"@evil.example",
            "\"a\" b@corp.example",
            "ana@corp.example (x@evil.example)",
            "ana@corp.example\r\nBcc: eve@evil.example",
            "<ana@corp.example> eve@evil.example",
            "<ana@corp.example> <eve@evil.example>",
            "ana@corp.example <eve@evil.example>",
            "<@relay.example:ana@corp.example>",
            "ana@corp.example\0.evil.example",
            "ana\\@evil.example@corp.example",
            "ana%evil.example@corp.example",
            "ana@corp.example.",
            "ana@corp..example",
            "ana@2130706433",
            "ana@corp.example/x",
            "ana@ｃorp.example",
            "\"open <ana@corp.example>",
            "ana eve@corp.example",
            "a: b: ana@corp.example;;",
        ] {
            assert!(hosts(text).contains(&None), "{text:?}: {:?}", hosts(text));
        }
        assert_eq!(hosts("ana@corp.example, eve"), [Some("corp.example".to_owned()), None]);
    }
}
