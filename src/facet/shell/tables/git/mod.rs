//! `git`. A repository's own configuration can run programs at almost any of these; an option that brings one in is a
//! power. Options are those of `git SUBCOMMAND -h` and `--git-completion-helper-all` of git 2.47.

mod changes;
mod looks;
mod operands;

pub(super) use operands::changed_by;
pub(in super::super) use operands::{Named, is_a_commit};

use super::{FamilyLines, Looks};

/// `git` with the options that stand before a subcommand.
pub(super) const FAMILY: FamilyLines = (
    "git",
    "-C=@ -c=! --config-env=! --exec-path=?! --git-dir=<! --work-tree=<! --namespace= -p|--paginate! -P|--no-pager \
        --no-replace-objects --no-lazy-fetch --no-advice --bare --literal-pathspecs --glob-pathspecs --noglob-pathspecs \
        --icase-pathspecs! --no-optional-locks --attr-source= -v|--version -h|--help --html-path --man-path --info-path",
    &[looks::SUBCOMMANDS, changes::SUBCOMMANDS],
);

/// Subcommands whose first operand says what they do, and those that only look.
pub(super) const LOOKS: Looks = &[
    ("remote", &["show", "get-url"]),
    ("worktree", &["list"]),
    ("submodule", &["status", "summary"]),
    ("notes", &["list", "show"]),
    ("bisect", &["log"]),
];
