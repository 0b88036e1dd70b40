//! E-mail addresses: each address of a list, and its domain (RFC 5321 section 4.1.2, RFC 5322 section 3.4).

use super::host;

/// Addresses of one text; each is a facet of its own.
const MAX_ADDRESSES: usize = 512;

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
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
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

/// The parts of a list, a group's name left out. None where quotes or brackets do not pair, or are used oddly, and where
/// there are more of them than anybody reads.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut quoted, mut angled, mut grouped) = (Vec::new(), 0, false, false, false);
    // Whether the part has an `@`, and whether a literal such as `@[IPv6:…]` is open; the character before.
    let (mut addressed, mut literal, mut before) = (false, false, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '\\' => return None,
            c if c.is_control() => return None,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | ')' => return None,
            '<' if angled => return None,
            '<' => angled = true,
            '>' if !angled => return None,
            '>' => angled = false,
            '@' => addressed = true,
            '[' => literal = before == '@',
            ']' => literal = false,
            // A route (RFC 5321, appendix C) or worse.
            ',' | ';' | ':' if angled && !literal => return None,
            ',' | ';' => {
                grouped &= c != ';';
                parts.push(text.get(start..at)?);
                start = at + c.len_utf8();
                (addressed, literal) = (false, false);
            }
            // `group:`; the colons of `[IPv6:…]` come after an `@`.
            ':' if !addressed => {
                if std::mem::replace(&mut grouped, true) {
                    return None;
                }
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    if quoted || angled || parts.len() >= MAX_ADDRESSES {
        return None;
    }
    parts.push(text.get(start..)?);
    Some(parts)
}

/// The address of a part, its display name left out.
fn bare(part: &str) -> Option<&str> {
    // A name that looks like an address misleads, and so does one that is encoded (RFC 2047).
    let misleads = |name: &str| name.contains('@') || name.contains("=?");
    match part.split_once('<') {
        // What is in brackets is the address, and nothing follows it.
        Some((name, rest)) => rest.strip_suffix('>').filter(|inner| !inner.contains(['<', '>']) && !misleads(name)),
        None if part.contains('"') => None,
        None => Some(part),
    }
    .map(|address| address.trim_matches(' '))
}

/// The domain of a bare address.
fn domain(address: &str) -> Option<String> {
    let (local, domain) = address.split_once('@')?;
    // No more than that: bang paths, pipes to programs, encoded words and options are read in many ways.
    let of_local = |c: char| c.is_alphanumeric() || ".+_-'".contains(c);
    if local.starts_with('-') || local.len() > 64 || !local.chars().all(of_local) || is_utf7(local) {
        return None;
    }
    if local.split('.').any(str::is_empty) {
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
            let label = |label: &str| !label.is_empty() && !label.starts_with('-');
            let fits = domain.chars().all(plain) && domain.split('.').all(label);
            let host = host(domain).filter(|_| fits && (domain.is_ascii() || super::is_plain_idn(domain)))?;
            // No mail goes to a bare number, and no two readers take it alike.
            host.parse::<std::net::Ipv4Addr>().is_err().then_some(host)
        }
    }
}

/// `+AEA-` is an `@` in UTF-7 (RFC 2152), and every other sign of ASCII begins like it.
fn is_utf7(local: &str) -> bool {
    local.split('+').skip(1).any(|tag| matches!(tag.as_bytes(), [b'A', b'A'..=b'H', _, ..]) && tag.contains('-'))
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
            ("\"Ana (Corp)\" <ana@corp.example>", vec!["corp.example"]),
            ("ana.o'neil+my-tag@corp.example\t\r\n", vec!["corp.example"]),
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
            "=?utf-8?q?eve=40evil.example=2C?=@corp.example",
            "=?utf-8?q?eve=40evil.example=3E?= <ana@corp.example>",
            "evil.example!eve@corp.example",
            "|id@corp.example",
            "`id`@corp.example",
            "-oQ/tmp@corp.example",
            "eve+AEA-evil.example@corp.example",
            ".ana@corp.example",
            "ana@-x.corp.example",
            "ana@corp.example\tx",
        ] {
            assert!(hosts(text).contains(&None), "{text:?}: {:?}", hosts(text));
        }
        assert_eq!(hosts("ana@corp.example, eve"), [Some("corp.example".to_owned()), None]);
    }

    #[test]
    fn long_texts_take_no_time() {
        let start = std::time::Instant::now();
        for text in [
            format!("<a@[{}]>", ":".repeat(60_000)),
            format!("{}@{}", "a".repeat(30_000), ":".repeat(30_000)),
            "@[".repeat(30_000),
            "a@b.example,".repeat(5_000),
        ] {
            assert!(hosts(&text).contains(&None), "{:.40}", text);
        }
        assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
        assert_eq!(hosts(&"a@b.example,".repeat(500)).len(), 500);
    }
}
