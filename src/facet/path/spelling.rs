//! Spellings of a path that a reader may take for another path.

use unicode_normalization::UnicodeNormalization;

use crate::config::{Os, UpstreamConfig};
use crate::facet::{Floor, FloorWhy};
use crate::pattern::is_invisible;

/// Linux's NAME_MAX, which the other systems share or undercut.
const NAME_MAX: usize = 255;
/// Linux's PATH_MAX.
pub(super) const PATH_MAX: usize = 4096;

/// How the upstream reads paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    pub windows: bool,
    pub tilde: bool,
    pub env: bool,
}

impl Reader {
    pub(super) fn new(config: &UpstreamConfig) -> Self {
        Self { windows: config.os == Os::Windows, tilde: config.expands_tilde, env: config.expands_env }
    }
}

/// What is odd about a path's spelling.
#[derive(Debug, Default)]
pub(super) struct Spelled {
    pub floors: Vec<Floor>,
    /// Absolute on another system than ours, and so outside every root.
    pub foreign: bool,
}

impl Spelled {
    fn floor(&mut self, detail: &str) {
        let floor = Floor::because(FloorWhy::Spelling, detail);
        if !self.floors.contains(&floor) {
            self.floors.push(floor);
        }
    }
}

/// Checks a plain path: what can be no path at all is an error, and so is what the upstream would read as another one;
/// what some upstream might read so is a floor.
pub(super) fn check(text: &str, reader: Reader) -> Result<Spelled, String> {
    let mut spelled = Spelled::default();
    if text.is_empty() {
        return Err("an empty path; write `.` for the folder itself".to_owned());
    }
    if text.len() > PATH_MAX {
        return Err(format!("a path over {PATH_MAX} bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err("a control character in a path".to_owned());
    }
    if text.split('/').any(|component| component.len() > NAME_MAX) {
        return Err(format!("a component over {NAME_MAX} bytes in a path"));
    }
    if text.chars().any(is_invisible) {
        spelled.floors.push(Floor::because(FloorWhy::Invisible, "invisible characters in the path"));
    }
    if looks_like_separators(text) {
        spelled.floor("characters that some readers take for separators or dots");
    }
    let mut suspicious = |holds: bool, refused: bool, detail: &str| {
        if holds && refused {
            return Err(format!("{detail}, which the upstream reads in its own way"));
        }
        if holds {
            spelled.floor(detail);
        }
        Ok(())
    };
    let windows = reader.windows;
    suspicious(text.trim_start().starts_with('~'), reader.tilde, "a `~`")?;
    suspicious(names_variable(text), reader.env, "a `$` variable")?;
    suspicious(percent_variable(text), reader.env || windows, "a `%` variable")?;
    suspicious(text.contains('\\'), windows, "a backslash")?;
    suspicious(drive(text).is_some(), windows, "a drive")?;
    suspicious(text.starts_with("//"), windows, "two leading slashes")?;
    suspicious(text.starts_with(char::is_whitespace), false, "a leading blank")?;
    for component in text.split('/').filter(|c| !matches!(*c, "" | "." | "..")) {
        let dots = component.bytes().all(|b| b == b'.');
        suspicious(component.contains(':'), windows, "a colon")?;
        suspicious(dots && windows, windows, "a name of dots only")?;
        suspicious(!dots && component.ends_with('.'), windows, "a trailing dot")?;
        suspicious(component.ends_with(char::is_whitespace), windows, "a trailing blank")?;
        suspicious(short_name(component), windows, "an 8.3 name")?;
        suspicious(device(component), windows, "a device name")?;
    }
    spelled.foreign = text.starts_with('\\') || drive(text).is_some_and(|rest| rest.starts_with(['/', '\\']));
    Ok(spelled)
}

/// Other paths that a reader might take the text for: trimmed, with Windows' separators and edges, with look-alikes of
/// separators and dots folded. For guarded paths only.
pub(super) fn other_readings(text: &str) -> Vec<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.');
    if text.bytes().all(plain) && !text.split('/').any(|component| component.ends_with('.')) {
        return Vec::new();
    }
    let mut readings: Vec<String> = Vec::new();
    let mut add = |reading: String| {
        if reading != text && !reading.is_empty() && !readings.contains(&reading) {
            readings.push(reading);
        }
    };
    let folded = fold_look_alikes(text);
    for text in [Some(text), folded.as_deref()].into_iter().flatten() {
        let trimmed = text.trim();
        add(trimmed.to_owned());
        add(as_windows(trimmed));
        if !trimmed.starts_with('/') {
            add(as_windows(trimmed).trim_start_matches('/').to_owned());
        }
    }
    readings
}

/// Backslashes as separators, drives and streams cut off, dots and blanks at the end of a component too.
fn as_windows(text: &str) -> String {
    let rest = drive(text).unwrap_or(text).replace('\\', "/");
    let component = |component: &str| {
        let name = component.split(':').next().unwrap_or_default();
        let kept = name.trim_end_matches(|c: char| c == '.' || c.is_whitespace());
        if kept.is_empty() { name.to_owned() } else { kept.to_owned() }
    };
    rest.split('/').map(component).collect::<Vec<_>>().join("/")
}

/// What follows a drive (`C:`) at the start.
fn drive(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    (chars.next()?.is_ascii_alphabetic() && chars.next()? == ':').then_some(chars.as_str())
}

fn names_variable(text: &str) -> bool {
    text.split('$')
        .skip(1)
        .any(|after| after.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{' | '(')))
}

fn percent_variable(text: &str) -> bool {
    let parts: Vec<&str> = text.split('%').collect();
    let name = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '(' | ')'))
    };
    // The first and the last part have a `%` on one side only.
    parts.len() > 2 && parts.iter().skip(1).take(parts.len() - 2).any(name)
}

/// `SECRET~1`, `SECRET~1.PEM`.
fn short_name(component: &str) -> bool {
    let (stem, extension) = component.rsplit_once('.').unwrap_or((component, ""));
    let Some((start, number)) = stem.rsplit_once('~') else { return false };
    (1..=6).contains(&start.chars().count())
        && (1..=6).contains(&number.len())
        && number.bytes().all(|b| b.is_ascii_digit())
        && extension.chars().count() <= 3
        && !start.contains('.')
}

/// Names that Windows gives to devices, with any extension.
fn device(component: &str) -> bool {
    let stem = component.split(['.', ':']).next().unwrap_or_default().trim_end().to_ascii_uppercase();
    if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$" | "CLOCK$") {
        return true;
    }
    let number = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")).unwrap_or_default();
    let mut digits = number.chars();
    digits.next().is_some_and(|c| c.is_ascii_digit() || matches!(c, '¹' | '²' | '³')) && digits.next().is_none()
}

/// Whether folding look-alikes changes where the path leads: new separators, or components of dots.
fn looks_like_separators(text: &str) -> bool {
    let shape = |text: &str| {
        let separators = text.matches(['/', '\\']).count();
        let dots = text.split(['/', '\\']).filter(|c| matches!(*c, "." | "..")).count();
        (separators, dots)
    };
    fold_look_alikes(text).is_some_and(|folded| shape(&folded) != shape(text))
}

/// The text as a reader sees it that folds compatibility forms (NFKC) or maps to an old code page.
fn fold_look_alikes(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let mapped = text.chars().filter(|c| !is_invisible(*c)).map(|c| match c {
        '\u{2044}' | '\u{2215}' | '\u{29f8}' => '/',
        '\u{2216}' | '\u{29f5}' | '\u{29f9}' => '\\',
        c => c,
    });
    let folded: String = mapped.nfkc().collect();
    (folded != text).then_some(folded)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LINUX: Reader = Reader { windows: false, tilde: false, env: false };
    const WINDOWS: Reader = Reader { windows: true, ..LINUX };

    fn floors(text: &str) -> usize {
        check(text, LINUX).unwrap().floors.len()
    }

    #[test]
    fn ordinary_names_are_ordinary() {
        for text in [
            "docs/..foo",
            "docs/foo..bar",
            "docs/...",
            "docs/a b c.md",
            "docs/it's.md",
            "docs/résumé.md",
            "docs/😀.md",
            "docs/a&b;c|d.md",
            "docs/-rf",
            "docs/SECRETS.md",
            "docs/secrets-lib/i.js",
            "/",
            ".",
            "..",
            "docs/",
            "docs/a.md~",
            "docs/100%.md",
            "docs/50%-60%",
            "docs/a$",
            "docs/ＡＢＣ.md",
            "docs/½ cup.md",
            "docs/wait….md",
            "docs/console.log",
            "docs/community",
            "docs/com",
            "docs/v1~beta",
            "docs/ a.md",
            "docs/cost$5",
        ] {
            assert_eq!(floors(text), 0, "{text}");
        }
    }

    #[test]
    fn what_some_reader_expands_is_at_best_an_ask_and_malformed_where_the_upstream_does() {
        for text in ["~", "~/x", "~root/.ssh/x", " ~/x"] {
            assert!(floors(text) > 0, "{text}");
            assert!(check(text, Reader { tilde: true, ..LINUX }).is_err(), "{text}");
        }
        for text in ["docs/$HOME-notes.md", "${HOME}/x", "a/$(id)", "%USERPROFILE%/x", "a/%TEMP%/%X%"] {
            assert!(floors(text) > 0, "{text}");
            assert!(check(text, Reader { env: true, ..LINUX }).is_err(), "{text}");
        }
        for text in [
            "docs\\..\\secrets",
            "C:notes.md",
            "docs/C:notes.md",
            "docs/a.md::$DATA",
            "SECRET~1/key.pem",
            "docs/SECRET~1.PEM",
            "secrets./key.pem",
            "secrets /key.pem",
            "docs/nul",
            "docs/NUL.txt",
            "COM1",
            "lpt9.log",
            "//host/share",
            "aux.c",
            "CONIN$",
            "com¹",
        ] {
            assert!(floors(text) > 0, "{text}");
            assert!(check(text, WINDOWS).is_err(), "{text}");
        }
        assert_eq!(floors("docs/..."), 0);
        assert!(check("docs/...", WINDOWS).is_err());
    }

    #[test]
    fn what_is_no_path_is_an_error() {
        for text in ["", "a\0b", "a\n", "\ta", "a\u{85}", "a\u{7f}"] {
            assert!(check(text, LINUX).is_err(), "{text:?}");
        }
        assert!(check(&"a".repeat(255), LINUX).is_ok() && check(&"a".repeat(256), LINUX).is_err());
        assert!(check(&"é".repeat(128), LINUX).is_err(), "bytes count, not characters");
        assert!(check(&"a/".repeat(2048), LINUX).is_ok() && check(&"a/".repeat(2049), LINUX).is_err());
    }

    #[test]
    fn hidden_and_look_alike_characters_are_floors() {
        for text in ["sec\u{200c}rets/key.pem", "secrets\u{feff}/key.pem", "a\u{202e}b", "docs/☀\u{fe0f}.md"] {
            assert!(check(text, LINUX).unwrap().floors.iter().any(|f| f.why == FloorWhy::Invisible), "{text:?}");
        }
        for text in ["docs／..／secrets", "docs/‥/secrets", "docs\u{2215}..\u{2215}x", "．．/x", "a＼b", "℀"] {
            assert!(floors(text) > 0, "{text}");
        }
    }

    #[test]
    fn absolute_elsewhere_is_foreign() {
        for text in ["C:\\Windows\\win.ini", "c:/x", "\\\\host\\share\\x", "\\\\?\\C:\\x", "\\x"] {
            assert!(check(text, LINUX).unwrap().foreign, "{text}");
        }
        for text in ["docs/C:notes.md", "C:notes.md", "docs\\a.md", "/x"] {
            assert!(!check(text, LINUX).unwrap().foreign, "{text}");
        }
    }

    #[test]
    fn other_readings_undo_disguises() {
        for text in [
            " secrets/key.pem ",
            "docs\\..\\secrets\\key.pem",
            "C:\\secrets\\key.pem",
            "secrets./key.pem",
            "secrets::$INDEX_ALLOCATION/key.pem",
            "ｓｅｃｒｅｔｓ/key.pem",
            "docs／..／secrets／key.pem",
            "secrets＼key.pem",
        ] {
            let found = other_readings(text);
            assert!(found.iter().any(|r| r.ends_with("secrets/key.pem")), "{text}: {found:?}");
        }
        assert!(other_readings("docs/a.md").is_empty());
    }
}
