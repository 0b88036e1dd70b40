//! Values that depend on where the file stands and what the environment holds.

use std::path::{Path, PathBuf};

use path_clean::PathClean;
use url::Url;

use super::super::defaults::default_state_dir;
use super::super::yaml::{Mark, Node, Report};
use crate::pattern::{PathPattern, is_invisible};
use crate::secret::Secret;

/// The file's folder and the environment.
pub(super) struct Surroundings<'a> {
    pub(super) folder: PathBuf,
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Surroundings<'_> {
    /// A path of this machine, absolute; relative ones start at the file's folder, `~/` is the home folder.
    pub(super) fn path(&self, node: &Node, report: &mut Report) -> Option<PathBuf> {
        Some(self.folder.join(self.local(node, report)?).clean())
    }

    /// A glob over files of this machine, absolute; what looks like a wildcard in the folder's own name is escaped.
    pub(super) fn glob(&self, node: &Node, report: &mut Report) -> Option<String> {
        let glob = self.local(node, report)?;
        let Some(folder) = self.folder.to_str() else {
            report
                .error(node.at, "the folder of this file has a name that is not UTF-8")
                .help("write an absolute path");
            return None;
        };
        let mut escaped = String::new();
        for c in folder.chars() {
            if "*?[]{}\\".contains(c) {
                escaped.push('\\');
            }
            escaped.push(c);
        }
        let absolute = Path::new(&escaped).join(glob).clean().to_str()?.to_owned();
        if let Err(error) = PathPattern::parse(&absolute) {
            report.error(node.at, error.what).help(error.help.as_deref());
            return None;
        }
        Some(absolute)
    }

    /// A text in which `${NAME}` is taken from the environment. No message holds its value.
    pub(super) fn secret(&self, node: &Node, report: &mut Report) -> Option<Secret> {
        let mut rest = node.verbatim(report)?;
        let mut value = String::new();
        while let Some((before, after)) = rest.split_once("${") {
            value.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                report.error(node.at, "a `${` without its `}`");
                return None;
            };
            let Some(found) = (self.environment)(name).filter(|found| !found.is_empty()) else {
                report
                    .error(node.at, format!("the environment variable `{name}` is not set"))
                    .help("set it where the gateway is started");
                return None;
            };
            value.push_str(&found);
            rest = after;
        }
        value.push_str(rest);
        Some(Secret::new(value))
    }

    /// `$XDG_STATE_HOME/portcullis`, or `~/.local/state/portcullis` (XDG Base Directory Specification).
    pub(super) fn default_state_dir(&self, at: Mark, report: &mut Report) -> Option<PathBuf> {
        let found = default_state_dir(self.environment);
        if found.is_none() {
            report
                .error(at, "`state_dir` is missing, and there is no home folder to put it in")
                .help("write `state_dir: FOLDER`");
        }
        found
    }

    fn local(&self, node: &Node, report: &mut Report) -> Option<String> {
        let text = node.text(report)?;
        if text.contains('$') {
            report.error(node.at, "variables are read in `headers` only").help("write the path itself");
            return None;
        }
        if let Some(hidden) = text.chars().find(|c| is_invisible(*c)) {
            report.error(node.at, format!("the path contains U+{:04X}, which nobody can see", hidden as u32));
            return None;
        }
        if !text.starts_with('~') {
            return Some(text.to_owned());
        }
        let home = (self.environment)("HOME").filter(|home| home.starts_with('/'));
        match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => Some(format!("{home}/{rest}")),
            (Some(_), None) => {
                report.error(node.at, "`~` is used, but HOME is not set").help("write the absolute path");
                None
            }
            (None, _) => {
                report.error(node.at, "only `~/` at the start is expanded").help("write the absolute path");
                None
            }
        }
    }
}

/// An `http` or `https` URL with a host and without credentials.
pub(super) fn web_address(node: &Node, report: &mut Report) -> Option<Url> {
    let url =
        Url::parse(node.text(report)?).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = url else {
        report.error(node.at, "this is no http or https address").help("write one such as https://gate.example/mcp");
        return None;
    };
    if !url.username().is_empty() || url.password().is_some() {
        report
            .error(node.at, "the address holds credentials")
            .help("put them in `headers`, as `${NAME}` from the environment");
        return None;
    }
    Some(url)
}

/// Whether a folder is there; an error if it is not.
pub(super) fn check_folder(path: &Path, at: Mark, report: &mut Report) {
    if !path.is_dir() {
        report.error(at, format!("there is no folder {}", path.display())).help("make it, or correct the path");
    }
}
