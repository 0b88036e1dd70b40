//! `file:` URIs (RFC 8089), read so that no two readers could disagree, and the schemes of others.

use percent_encoding::percent_decode_str;

use crate::facet::{Floor, FloorWhy};
use crate::pattern::is_invisible;

/// What a `file:` URI names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileUri {
    /// The decoded path, absolute.
    pub path: String,
    /// The fragment, which is not part of the path, although some readers keep it.
    pub fragment: Option<String>,
}

/// The scheme (RFC 3986 section 3.1) that a text starts with, and what follows its colon. One letter is a drive. Readers
/// that trim see through what is blank or invisible before it.
pub(in crate::facet) fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let scheme = scheme.trim_start_matches(is_nothing);
    let mut letters = scheme.chars();
    let named = scheme.len() > 1
        && letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    named.then_some((scheme, rest))
}

/// What follows `file:`, if the text starts with it in any case, blanks and what is invisible left out.
pub(in crate::facet) fn file_rest(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let letters = scheme.chars().filter(|c| !is_nothing(*c)).map(|c| c.to_ascii_lowercase());
    letters.eq("file".chars()).then_some(rest)
}

/// Why the `file:` that a text starts with is one for some readers only.
///
/// # Errors
/// Control characters, which no path may hold.
pub(super) fn oddly_begun(text: &str) -> Result<Option<Floor>, String> {
    match text.split_once(':') {
        Some((scheme, _)) if scheme.chars().any(char::is_control) => Err("a control character in a path".to_owned()),
        Some((scheme, _)) if !scheme.eq_ignore_ascii_case("file") => {
            Ok(Some(Floor::because(FloorWhy::Spelling, "a blank or an invisible character in `file:`")))
        }
        _ => Ok(None),
    }
}

fn is_nothing(c: char) -> bool {
    c.is_whitespace() || is_invisible(c)
}

/// Reads what follows `file:`.
///
/// # Errors
/// Another authority than none or `localhost`, a query, a relative path, a bad or a hiding escape.
pub(super) fn read(rest: &str) -> Result<FileUri, String> {
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, fragment)) => (rest, Some(fragment)),
        None => (rest, None),
    };
    if rest.contains('?') {
        return Err("a `file:` URI has no query; write `?` in a name as %3F".to_owned());
    }
    if fragment.is_some_and(|f| f.contains(['/', '\\', '%'])) {
        return Err("the fragment of the `file:` URI reads like a path; write `#` in a name as %23".to_owned());
    }
    let path = match rest.strip_prefix("//") {
        Some(after) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            if !authority.is_empty() && !authority.eq_ignore_ascii_case("localhost") {
                return Err(format!("the `file:` URI names the host `{authority}`; leave the host empty"));
            }
            path
        }
        None => rest,
    };
    if !path.starts_with('/') {
        return Err("a `file:` URI holds an absolute path".to_owned());
    }
    check_escapes(path)?;
    let decoded = percent_decode_str(path).decode_utf8().map_err(|_| "the `file:` URI decodes to invalid UTF-8")?;
    Ok(FileUri { path: decoded.into_owned(), fragment: fragment.map(str::to_owned) })
}

fn check_escapes(path: &str) -> Result<(), String> {
    for after in path.split('%').skip(1) {
        let digits = |text: &str| text.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
        if !digits(after) {
            return Err("the `file:` URI has a bad escape; write `%` in a name as %25".to_owned());
        }
        let code = after.get(..2).unwrap_or_default().to_ascii_lowercase();
        if matches!(code.as_str(), "00" | "2f" | "5c") {
            return Err(format!("the `file:` URI hides a separator or NUL as %{code}"));
        }
    }
    // Once decoded, `%25` before two hex digits would be an escape again to whoever decodes twice.
    let twice = path.match_indices("%25").any(|(at, escape)| {
        let after = path.get(at + escape.len()..).unwrap_or_default();
        after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2
    });
    if twice { Err("the `file:` URI is escaped twice".to_owned()) } else { Ok(()) }
}

/// What a reader might take for the path in a URI that is refused or that only looks like one: the authority dropped,
/// query and fragment dropped, escapes decoded as often as there are any. For guarded paths only.
pub(super) fn loosely(rest: &str) -> String {
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match rest.strip_prefix("//") {
        Some(after) => after.find('/').and_then(|at| after.get(at..)).unwrap_or(after),
        None => rest,
    };
    decoded(path)
}

/// The text with its escapes decoded, twice at most, for readers that decode what they should not.
pub(super) fn decoded(text: &str) -> String {
    let once = percent_decode_str(text).decode_utf8_lossy();
    percent_decode_str(&once).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn path(uri: &str) -> Result<String, String> {
        read(file_rest(uri).unwrap()).map(|read| read.path)
    }

    #[test]
    fn local_forms_are_one_path() {
        for uri in
            ["file:/x/a.md", "file:///x/a.md", "FILE:///x/a.md", "file://localhost/x/a.md", "fIle://LOCALHOST/x/a.md"]
        {
            assert_eq!(path(uri).unwrap(), "/x/a.md", "{uri}");
        }
        assert_eq!(path("file:///x/my%20notes.md").unwrap(), "/x/my notes.md");
        assert_eq!(path("file:///x/100%25.md").unwrap(), "/x/100%.md", "decoded exactly once");
        assert_eq!(path("file:///x/r%C3%A9sum%c3%a9").unwrap(), "/x/résumé");
        assert_eq!(path("file:///x/%2e%2e/y").unwrap(), "/x/../y");
        assert_eq!(read("///x/key.pem#frag").unwrap().fragment.unwrap(), "frag");
    }

    #[test]
    fn what_readers_differ_on_is_refused() {
        for uri in [
            "file://host.example/x",
            "file://127.0.0.1/x",
            "file://localhost:80/x",
            "file://me@localhost/x",
            "file://localhost%2fx",
            "file://documents/..%2F..%2Fsecrets",
            "file:x/a.md",
            "file:",
            "file://",
            "file:///x/%00",
            "file:///x/%2Fy",
            "file:///x/%5cy",
            "file:///x/%zz",
            "file:///x/%2",
            "file:///x/100%",
            "file:///x/%c0%ae%c0%ae/y",
            "file:///x/%ff",
            "file:///x/%252e%252e/y",
            "file:///x/a.md?x=/../y",
            "file:///x/a.md#/../y",
            "file:///x/a.md#%2e",
        ] {
            assert!(path(uri).is_err(), "{uri}");
        }
    }

    #[test]
    fn schemes_are_told_from_drives_and_names() {
        assert_eq!(scheme("http://x").unwrap().0, "http");
        assert_eq!(scheme("view-source:file:///x").unwrap().0, "view-source");
        for text in ["C:/x", "docs/a:b", ":x", "1a:x", "a b:x", "plain"] {
            assert!(scheme(text).is_none(), "{text}");
        }
        for text in [" file:///x", "\u{a0}FILE:///x", "file :///x", "\u{feff}fi\u{200b}le:///x"] {
            assert_eq!(file_rest(text), Some("///x"), "{text:?}");
            assert!(oddly_begun(text).unwrap().is_some(), "{text:?}");
        }
        assert_eq!(scheme("\u{a0}https://x").unwrap().0, "https");
        assert!(oddly_begun("\tfile:///x").is_err() && oddly_begun("File:///x").unwrap().is_none());
    }

    #[test]
    fn a_loose_reader_sees_through_hosts_and_escapes() {
        assert_eq!(loosely("//host/x/%252e%252e/y?q#f"), "/x/../y");
    }
}
