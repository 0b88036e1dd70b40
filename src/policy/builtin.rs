//! The guardrails that are on unless `portcullis.yaml` switches one off by name.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::fields::{Fields, Paths};
use super::model::Rule;
use crate::config::BUILT_IN_GUARDRAILS;
use crate::pattern::{PathPattern, PatternError};
use crate::record::{Access, Verdict};

const SECRETS: &[&str] = &["**/secrets/"];

/// Links and second mounts that lead there are found by the physical path.
const KERNEL_PATHS: &[&str] = &["/proc/", "/sys/", "/dev/"];

/// What a shell, an editor, a build or an agent runs by itself some time after it was written.
const RUNS_LATER: &[&str] = &[
    "**/.git/",
    "**/.git{attributes,modules,config}",
    "**/.config/git/",
    "**/.husky/",
    "**/.envrc",
    "**/.vscode/",
    "**/.idea/",
    "**/.{claude,cursor,gemini,codex,devcontainer}/",
    "**/.mcp.json",
    ".github/workflows/",
    ".gitlab-ci.yml",
    "**/.pre-commit-config.yaml",
    "**/package.json",
    "**/{GNUm,M,m}akefile",
    "**/CMakeLists.txt",
    "**/{build,settings}.gradle{,.kts}",
    "**/pom.xml",
    "**/{J,j}ustfile",
    "**/Rakefile",
    "**/build.rs",
    "**/.cargo/",
    "**/rust-toolchain{,.toml}",
    "**/{conftest,setup,noxfile,sitecustomize,usercustomize}.py",
    "**/*.pth",
    "**/.npmrc",
    "**/.yarnrc{,.yml}",
    "**/.pnpmfile.cjs",
    "**/*.config.{js,cjs,mjs,ts,cts,mts}",
    // shell start files
    "**/.profile",
    "**/.bash{rc,_profile,_login,_logout,_aliases}",
    "**/.zsh{rc,env}",
    "**/.z{profile,login,logout}",
    "**/.{csh,tcsh,ksh}rc",
    "**/.config/fish/",
];

/// Those that are not switched off. `own_files` are files and folders of the gateway, `policy_files` the globs of its
/// policy: a file that is not there yet would be read at the next load.
///
/// # Errors
/// A glob of the policy that is no pattern.
pub(super) fn guardrails(
    disabled: &[String],
    own_files: &[PathBuf],
    policy_files: &[String],
) -> Result<Vec<Rule>, PatternError> {
    let mut rules = Vec::new();
    for name in BUILT_IN_GUARDRAILS.into_iter().filter(|name| !disabled.iter().any(|off| off == name)) {
        let (verdict, path, access, reason) = match name {
            "secrets" => (Verdict::Deny, paths(SECRETS)?, vec![], "secrets never reach a model"),
            "kernel-paths" => {
                let reason = "these files are doors into the kernel and into other processes";
                (Verdict::Deny, paths(KERNEL_PATHS)?, vec![], reason)
            }
            "own-files" => {
                let path = own(own_files, policy_files)?;
                // Without a path it would match everything.
                if path.is_empty() {
                    continue;
                }
                (Verdict::Deny, path, vec![], "the gateway's own files decide what is allowed")
            }
            _ => {
                let reason = "what is written here runs as code later";
                (Verdict::Ask, paths(RUNS_LATER)?, vec![Access::Write, Access::Delete], reason)
            }
        };
        rules.push(guardrail(name, verdict, Fields { path, access, ..Fields::default() }, reason));
    }
    Ok(rules)
}

fn own(files: &[PathBuf], globs: &[String]) -> Result<Paths, PatternError> {
    let mut own = Paths::default();
    files.iter().for_each(|path| own.push(PathPattern::exactly(path).with_physical()));
    // The files that are there are among `files`.
    for glob in globs.iter().filter(|glob| glob.contains(['*', '?', '[', '{'])) {
        own.push(PathPattern::parse(glob)?.with_physical());
    }
    Ok(own)
}

fn guardrail(name: &str, verdict: Verdict, fields: Fields, reason: &str) -> Rule {
    Rule {
        label: format!("builtin:{name}"),
        verdict,
        guardrail: true,
        shadow: false,
        until: None,
        limit: None,
        reason: Some(reason.into()),
        file: None,
        line: None,
        column: None,
        fields,
        except: Vec::new(),
        approval: None,
        numbered: OnceLock::new(),
    }
}

fn paths(entries: &[&str]) -> Result<Paths, PatternError> {
    let mut paths = Paths::default();
    for entry in entries {
        paths.push(PathPattern::parse(entry)?);
    }
    Ok(paths)
}
