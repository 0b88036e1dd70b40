//! URLs as a browser reads them.

use url::Url;

use crate::facet::path::{file_rest, scheme};
use crate::facet::{Floor, FloorWhy};

/// The host of a URL, and what is odd about it.
///
/// # Errors
/// Control characters, which readers drop.
pub(super) fn read(text: &str) -> Result<(Option<String>, Vec<Floor>), String> {
    if text.chars().any(char::is_control) {
        return Err("a control character in a URL".to_owned());
    }
    let odd = |detail: &str| vec![Floor::because(FloorWhy::OddUrl, detail)];
    let Ok(url) = Url::parse(text.trim()) else {
        return Ok((None, odd("not a whole URL")));
    };
    let host = url.host_str().map(str::to_owned);
    let nested = is_nested(text.trim());
    let floors = if nested { odd("a URL within a URL") } else { Vec::new() };
    Ok((host, floors))
}

/// `view-source:file:///x`, `jar:file:///x!/y`, `blob:https://…`: what follows the scheme is a URL itself.
fn is_nested(text: &str) -> bool {
    let Some((_, rest)) = scheme(text) else { return false };
    let inner = rest.trim_start_matches('/');
    // After `//` comes a host with its port, and no scheme.
    file_rest(inner).is_some() || (!rest.starts_with('/') && scheme(inner).is_some())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn hosts_are_read_as_a_browser_does() {
        for (url, host) in [
            ("https://Example.com/x", "example.com"),
            ("http://me@host.example:8080/", "host.example"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http:\\\\host.example\\x", "host.example"),
            ("memo://insights", "insights"),
            ("http://user:pass@host.example/", "host.example"),
        ] {
            assert_eq!(read(url).unwrap(), (Some(host.to_owned()), Vec::new()), "{url}");
        }
        assert_eq!(read("mailto:me@x.example").unwrap(), (None, Vec::new()));
    }

    #[test]
    fn nested_and_broken_urls_are_odd() {
        for url in [
            "view-source:file:///x",
            "jar:file:///x.jar!/k",
            "blob:https://x.example/1",
            "http://",
            "x.example/y",
            "/etc/passwd",
        ] {
            assert!(!read(url).unwrap().1.is_empty(), "{url}");
        }
        assert!(read("fi\tle:///etc/passwd").is_err());
    }
}
