//! The `host` field: names, globs over names, address blocks and `@internal`, over URLs and e-mail addresses.
//!
//! A name is a name: it is compared as a name and never looked up, so that an address block holds only on hosts that are
//! written as addresses, and `@internal` on those and on the names that are internal by convention. A public name that
//! resolves to an internal address (`127.0.0.1.nip.io`, DNS rebinding) is beyond a policy: the network must stop it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

use super::fields::{Sure, Thing, Truth};
use crate::pattern::{NamePattern, PatternError, Side};

/// One entry of `host`.
#[derive(Debug)]
pub(super) enum HostPattern {
    /// `*`: every host.
    Any,
    /// `@internal`.
    Internal,
    /// One name, which does not cover names below it.
    Name(Box<str>),
    /// A glob over names; `*.example.com` is every name below, at any depth.
    Glob(NamePattern),
    /// `10.0.0.0/8`, `fc00::/7`, or one address.
    Block(Block),
}

/// Whether a facet's host is one of these; no entries are no condition.
pub(super) fn hold(patterns: &[HostPattern], thing: Thing<'_>, side: Side) -> Truth {
    if patterns.is_empty() {
        return Truth::True;
    }
    let Thing::Remote { host, sure } = thing else { return Truth::False };
    let matched = host
        .and_then(|host| Host::parse(host).ok())
        .is_some_and(|host| patterns.iter().any(|pattern| pattern.matches(&host, side)));
    match (sure, side) {
        (Sure::Yes, _) | (Sure::Unmarked, Side::Wide) => matched.into(),
        (Sure::No, Side::Wide) if matched => Truth::True,
        (Sure::Unmarked, Side::Exact) | (Sure::No, _) => Truth::Unknown,
    }
}

impl HostPattern {
    /// Reads an entry.
    ///
    /// # Errors
    /// What names no host, and globs that would cover names that nobody meant.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let wrong = |what: &str, help: String| Err(PatternError { what: what.into(), help: Some(help) });
        match text {
            "*" => return Ok(Self::Any),
            "@internal" => return Ok(Self::Internal),
            _ if text.starts_with('@') => return wrong("no such class of hosts", "there is `@internal`".into()),
            _ => {}
        }
        if let Some(block) = Block::parse(text)? {
            return Ok(Self::Block(block));
        }
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split(['/', ':']).next().unwrap_or_default();
            return wrong("a URL is no host", format!("write the host alone: `{host}`"));
        }
        if let Some((host, _)) = text.split_once([':', '/', '@']) {
            return wrong("a host has no port, path or user", format!("write `{host}`, or `args` on the whole text"));
        }
        if let Some(name) = text.strip_prefix('.') {
            return wrong("no host begins with a dot", format!("write `*.{name}`, and `{name}` for the name itself"));
        }
        if text.contains(['*', '?', '[', '{', '\\']) {
            return Self::glob(text);
        }
        // As facets have it: lower-case ASCII.
        match Host::parse(text.trim_end_matches('.')) {
            Ok(Host::Domain(name)) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) => {
                Ok(Self::Name(name.into()))
            }
            _ => wrong("no host can have this name", "write a name such as `api.example.com`, or `10.0.0.0/8`".into()),
        }
    }

    fn glob(text: &str) -> Result<Self, PatternError> {
        let wrong = |what: String, help: String| Err(PatternError { what, help: Some(help) });
        if !text.is_ascii() {
            return wrong("a glob over hosts is ASCII".into(), "write an international name as `xn--…`".into());
        }
        let Some(all) = alternatives(text) else {
            return wrong("more alternatives than anybody reads".into(), "write them as a list".into());
        };
        for text in &all {
            let tail = text.rsplit(['*', '?', ']']).next().unwrap_or_default();
            if tail.is_empty() || tail == "." {
                let help = "write the end of the name out, such as `*.example.com`; addresses are blocks: `10.0.0.0/8`";
                return wrong("the end of the name is open".into(), help.into());
            }
            if !tail.starts_with('.') && tail.matches('.').count() < 2 && tail.len() < text.len() {
                let help = format!("write `*.{tail}`, and `{tail}` beside it");
                return wrong(format!("it would also cover names such as `evil{tail}`"), help);
            }
            if tail.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
                return wrong("a glob over addresses".into(), "write a block: `10.0.0.0/8`".into());
            }
        }
        NamePattern::parse(&text.to_ascii_lowercase()).map(Self::Glob)
    }

    fn matches(&self, host: &Host<String>, side: Side) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Name(wanted), Host::Domain(name)) => **wanted == *dotless(name, side),
            (Self::Glob(pattern), Host::Domain(name)) => pattern.matches(dotless(name, side), side),
            (Self::Internal, Host::Domain(name)) => is_internal_name(dotless(name, Side::Wide), side),
            (Self::Internal, host) => addresses(host, side).any(is_internal),
            (Self::Block(block), host) => addresses(host, side).any(|address| block.holds(address)),
            (Self::Name(_) | Self::Glob(_), _) => false,
        }
    }
}

/// What a glob with braces stands for, one by one; none where there are too many.
fn alternatives(glob: &str) -> Option<Vec<String>> {
    const MOST: usize = 64;
    let (mut open, mut done) = (vec![glob.to_owned()], Vec::new());
    while let Some(text) = open.pop() {
        // The innermost braces first.
        let braces = text.split_once('}').and_then(|(before, after)| Some((before.rsplit_once('{')?, after)));
        match braces {
            Some(((before, inner), after)) => {
                open.extend(inner.split(',').map(|one| format!("{before}{one}{after}")));
            }
            None => done.push(text),
        }
        if open.len() + done.len() > MOST {
            return None;
        }
    }
    Some(done)
}

/// An address block in CIDR notation (RFC 4632, RFC 4291 section 2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Block {
    network: IpAddr,
    length: u8,
}

impl Block {
    /// None where the text is meant as a name.
    fn parse(text: &str) -> Result<Option<Self>, PatternError> {
        let bare = |text: &str| text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text).parse().ok();
        let (network, length): (IpAddr, _) = match text.split_once('/') {
            Some((network, length)) => match bare(network) {
                Some(network) => (network, Some(length)),
                None => return Ok(None),
            },
            None => match bare(text) {
                Some(network) => (network, None),
                None => return Ok(None),
            },
        };
        let bits = if network.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => bits,
            Some(length) => length.parse().ok().filter(|length| *length <= bits).ok_or_else(|| PatternError {
                what: format!("`/{length}` is no length of a block"),
                help: Some(format!("write `/0` to `/{bits}`")),
            })?,
        };
        let start = masked(network, length);
        if start != network {
            return Err(PatternError {
                what: "the address lies inside its block, not at its start".into(),
                help: Some(format!("write `{start}/{length}`, or the address alone")),
            });
        }
        // Hosts in the clothes of IPv6 are compared as what they are, and so are blocks of them.
        match (network.to_canonical(), length.checked_sub(96)) {
            (IpAddr::V4(inner), Some(length)) if network.is_ipv6() => {
                Ok(Some(Self { network: IpAddr::V4(inner), length }))
            }
            _ => Ok(Some(Self { network, length })),
        }
    }

    fn holds(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.network.is_ipv4() && masked(address, self.length) == self.network
    }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or_default();
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or_default();
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// `example.com.` is `example.com` to the name service, although some servers and allow lists tell them apart.
fn dotless(name: &str, side: Side) -> &str {
    match side {
        Side::Exact => name,
        Side::Wide => name.trim_end_matches('.'),
    }
}

/// The address of a host, an IPv4 address in the clothes of IPv6 (`::ffff:127.0.0.1`, RFC 4291 section 2.5.5.2) as that
/// address. Where that tightens also as it is written, and what it leads to by a translator: IPv4-compatible (RFC 4291),
/// SIIT (RFC 2765), NAT64 (RFC 6052) and 6to4 (RFC 3056).
fn addresses(host: &Host<String>, side: Side) -> impl Iterator<Item = IpAddr> {
    let written = match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(IpAddr::V4(*address)),
        Host::Ipv6(address) => Some(IpAddr::V6(*address)),
    };
    let wide = written.filter(|_| side == Side::Wide);
    let inner = match wide {
        Some(IpAddr::V6(address)) => embedded(address).map(IpAddr::V4),
        _ => None,
    };
    written.map(|address| address.to_canonical()).into_iter().chain(wide).chain(inner)
}

fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0 | 0xffff, 0, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => Some(low(a, b)),
        _ => None,
    }
}

/// Blocks that do not lead to one machine of the public network (RFC 6890, RFC 6598, RFC 8215, RFC 5771), among them those of metadata services
/// (`169.254.169.254`, `fd00:ec2::254`), and one public address that a cloud keeps for its own.
fn is_internal(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            const BLOCKS: [([u8; 4], u8); 12] = [
                ([0, 0, 0, 0], 8),
                ([10, 0, 0, 0], 8),
                ([100, 64, 0, 0], 10),
                ([127, 0, 0, 0], 8),
                ([169, 254, 0, 0], 16),
                ([172, 16, 0, 0], 12),
                ([192, 0, 0, 0], 24),
                ([192, 168, 0, 0], 16),
                ([198, 18, 0, 0], 15),
                ([168, 63, 129, 16], 32),
                ([224, 0, 0, 0], 4),
                ([240, 0, 0, 0], 4),
            ];
            BLOCKS.iter().any(|(network, length)| masked(address.into(), *length) == IpAddr::from(*network))
        }
        IpAddr::V6(address) => {
            let [first, second, third, ..] = address.segments();
            address.is_unspecified()
                || address.is_loopback()
                // Unique local, link-local, the former site-local, multicast that stays near, local NAT64.
                || first & 0xfe00 == 0xfc00
                || first & 0xff80 == 0xfe80
                || (first & 0xff00 == 0xff00 && first & 0xf <= 5)
                || (first, second, third) == (0x64, 0xff9b, 1)
        }
    }
}

/// Names that lead to this machine or its network by convention (RFC 6761, RFC 6762 and its appendix G, RFC 8375), those
/// of clouds' metadata services, and of services in a cluster. A name of one label is what the local network makes of it (`http://vault/`): where that tightens, it
/// is internal too.
fn is_internal_name(name: &str, side: Side) -> bool {
    const NAMES: [&str; 8] = [
        "localhost",
        "ip6-localhost",
        "ip6-loopback",
        "metadata",
        "instance-data",
        "metadata.goog",
        "metadata.tencentyun.com",
        "kubernetes.default",
    ];
    #[rustfmt::skip]
    const BELOW: [&str; 11] = [
        ".localhost", ".localdomain", ".local", ".internal", ".home.arpa", ".intranet", ".private", ".corp", ".home",
        ".lan", ".svc",
    ];
    NAMES.contains(&name) || BELOW.iter().any(|end| name.ends_with(end)) || (side == Side::Wide && !name.contains('.'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use Side::{Exact, Wide};

    fn holds(pattern: &str, host: &str, side: Side) -> bool {
        let thing = Thing::Remote { host: Some(host), sure: Sure::Yes };
        hold(&[HostPattern::parse(pattern).unwrap()], thing, side) == Truth::True
    }

    #[test]
    fn a_name_is_that_name_alone() {
        for side in [Exact, Wide] {
            assert!(
                holds("Example.com", "example.com", side) && holds("bücher.example", "xn--bcher-kva.example", side)
            );
            for other in ["www.example.com", "example.com.evil.example", "evilexample.com", "example.co", "127.0.0.1"] {
                assert!(!holds("example.com", other, side), "{other}");
            }
        }
        assert!(holds("example.com", "example.com.", Wide) && !holds("example.com", "example.com.", Exact));
    }

    #[test]
    fn a_glob_covers_names_below_and_no_addresses() {
        for side in [Exact, Wide] {
            assert!(holds("*.example.com", "www.example.com", side) && holds("*.example.com", "a.b.example.com", side));
            assert!(
                holds("api-*.example.com", "api-1.example.com", side)
                    && holds("{a,b}.example.com", "b.example.com", side)
            );
            for other in ["example.com", "evilexample.com", "www.example.com.evil.example", "[::1]", "10.0.0.1"] {
                assert!(!holds("*.example.com", other, side), "{other}");
            }
            assert!(holds("*", "10.0.0.1", side) && holds("*", "x.example", side));
        }
    }

    #[test]
    fn a_block_holds_on_addresses_however_written() {
        for side in [Exact, Wide] {
            for (block, inside, outside) in [
                ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
                ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
                ("0.0.0.0/0", "8.8.8.8", "[2001:db8::1]"),
                ("fc00::/7", "[fd00:ec2::254]", "[2001:db8::1]"),
                ("[::1]", "[::1]", "[::2]"),
                ("127.0.0.0/8", "[::ffff:7f00:1]", "[::ffff:808:808]"),
                ("::/0", "[2001:db8::1]", "8.8.8.8"),
                ("::ffff:a00:0/104", "10.1.2.3", "[::ffff:b00:1]"),
                ("::ffff:10.0.0.1", "[::ffff:a00:1]", "10.0.0.2"),
                ("::ffff:0:0/96", "8.8.8.8", "[2001:db8::1]"),
            ] {
                assert!(holds(block, inside, side) && !holds(block, outside, side), "{block}");
            }
            assert!(!holds("0.0.0.0/0", "example.com", side), "a name is a name");
        }
        for translated in ["[64:ff9b::a00:1]", "[2002:a00:1::]", "[::a00:1]"] {
            assert!(holds("10.0.0.0/8", translated, Wide) && !holds("10.0.0.0/8", translated, Exact), "{translated}");
        }
        assert!(holds("::/0", "[::ffff:a00:1]", Wide), "as it is written");
    }

    #[test]
    fn what_is_internal_is_known_by_address_or_convention() {
        for internal in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "[::1]",
            "[::]",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "[::ffff:7f00:1]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:7f00:1::]",
            "localhost",
            "db.localhost",
            "printer.local",
            "metadata.google.internal",
            "host.docker.internal",
            "localhost.",
            "localhost.localdomain",
            "vault",
            "metadata.goog",
            "metadata.tencentyun.com",
            "kubernetes.default.svc",
            "db.prod.svc",
            "nas.lan",
            "wiki.corp",
            "[::ffff:0:7f00:1]",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(holds("@internal", internal, Wide), "{internal}");
        }
        assert!(!holds("@internal", "vault", Exact), "no allow is sure of what a bare name leads to");
        for public in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "[2001:db8::1]",
            "example.com",
            "127.0.0.1.nip.io",
            "localhost.example",
            "not.localhost.example",
            "wiki.corp.example",
        ] {
            assert!(!holds("@internal", public, Wide), "{public}");
        }
    }

    #[test]
    fn a_host_that_is_not_sure_is_unknown() {
        let pattern = [HostPattern::parse("a.example").unwrap()];
        let on = |host, sure, side| hold(&pattern, Thing::Remote { host, sure }, side);
        assert_eq!(on(None, Sure::Yes, Wide), Truth::False, "a URL without a host");
        assert_eq!(on(None, Sure::No, Wide), Truth::Unknown);
        assert_eq!(on(Some("b.example"), Sure::No, Wide), Truth::Unknown);
        assert_eq!(on(Some("a.example"), Sure::No, Exact), Truth::Unknown);
        assert_eq!(on(Some("a.example"), Sure::Unmarked, Exact), Truth::Unknown, "no allow covers it");
        assert_eq!(on(Some("a.example"), Sure::Unmarked, Wide), Truth::True);
        assert_eq!(on(Some("b.example"), Sure::Unmarked, Wide), Truth::False);
        assert_eq!(hold(&pattern, Thing::Other, Wide), Truth::False);
    }

    #[test]
    fn what_would_silently_mean_something_else_is_refused() {
        for (text, says) in [
            ("", "no host"),
            ("@private", "class"),
            ("https://example.com/x", "URL"),
            ("example.com:443", "port"),
            ("example.com/x", "path"),
            ("ana@example.com", "user"),
            ("exa mple.com", "no host"),
            (".example.com", "dot"),
            ("10.0.0.1/8", "inside"),
            ("10.0.0.0/33", "length"),
            ("fc00::1/7", "inside"),
            ("999.1.1.1", "no host"),
            ("*example.com", "evilexample.com"),
            ("example.*", "open"),
            ("10.*", "open"),
            ("*.1", "addresses"),
            ("*.", "open"),
            ("{example.com,*}", "open"),
            ("*{.good.example,}", "open"),
            ("*{.good.example,{.a.example,example}}", "evil"),
            ("{a,b,c,d}{a,b,c,d}{a,b,c,d}{a,b,c,d}.example", "alternatives"),
            ("*.bücher.example", "ASCII"),
        ] {
            let error = HostPattern::parse(text).map(|_| ()).unwrap_err();
            assert!(error.what.contains(says), "{text:?}: {}", error.what);
        }
    }
}
