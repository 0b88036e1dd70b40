//! `git`. A repository's own configuration can run programs at almost any of these; an option that brings one in is a
//! power.

use super::Line;
use super::Operands::{Contents, Paths, PatternBelow, Remote, Revisions, Text, Trees};
use crate::record::Access::{Delete, Read};

/// What prints history.
const LOG: &str = "--oneline --graph --all --branches=? --tags=? --remotes=? --decorate=? --no-decorate --abbrev-commit \
    --no-abbrev-commit --abbrev=? --pretty=? --format= --date= --relative-date --stat=?* --shortstat* --numstat* --name-only \
    --name-status --summary --dirstat=?* --cumulative* -p|-u|--patch* -s|--no-patch -U|--unified=* --raw --patch-with-stat* -c* \
    --cc* -m* -S=* -G=* --pickaxe-regex --pickaxe-all -L=* -n|--max-count= --skip= --since|--after= --until|--before= --author= \
    --committer= --grep= -i|--regexp-ignore-case -E|--extended-regexp -F|--fixed-strings -P|--perl-regexp --invert-grep \
    --all-match --merges --no-merges --first-parent --reverse --topo-order --date-order --author-date-order --follow \
    --full-history --ancestry-path=? --left-right --cherry-pick --cherry --cherry-mark --boundary --simplify-by-decoration \
    --no-walk=? --show-signature! --diff-filter= -M|--find-renames=? -C|--find-copies=? --color=? --no-color -z --full-index \
    --no-renames --relative=? --source -g|--walk-reflogs --no-ext-diff --no-textconv --ext-diff! --textconv! --output=> -O=< \
    --mailmap --use-mailmap --exclude= --glob= --not --parents --children --count -#";

/// What prints differences.
const DIFF: &str = "--cached --staged --stat=? --shortstat --numstat --name-only --name-status --summary --dirstat=? -p|-u|--patch \
    -s|--no-patch -U|--unified= --raw --minimal --patience --histogram --diff-algorithm= --word-diff=? --word-diff-regex= \
    --color-words=? --color=? --no-color --color-moved=? -M|--find-renames=? -C|--find-copies=? -B|--break-rewrites=? --no-renames \
    --diff-filter= -S= -G= --pickaxe-regex --pickaxe-all -R -a|--text -b|--ignore-space-change -w|--ignore-all-space \
    --ignore-space-at-eol --ignore-blank-lines -W|--function-context --exit-code --quiet -z --full-index --binary --abbrev=? \
    --check --relative=? --merge-base --no-index --no-prefix --src-prefix= --dst-prefix= --submodule=? --ignore-submodules=? \
    --inter-hunk-context= --no-ext-diff --no-textconv --ext-diff! --textconv! --output=> -O=< -1 -2 -3 -0 --base --ours --theirs";

const SUBCOMMANDS: &[Line] = &[
    (
        "status",
        Paths(Some(Read)),
        "-s|--short -b|--branch --show-stash --porcelain=? --long -v|--verbose -u|--untracked-files=? \
        --ignore-submodules=? --ignored=? -z --column=? --no-column --ahead-behind --no-ahead-behind --renames --no-renames \
        --find-renames=?",
    ),
    ("log shortlog", Revisions, LOG),
    ("show", Contents, LOG),
    ("diff", Contents, DIFF),
    (
        "add",
        Trees(Read),
        "-n|--dry-run -v|--verbose -f|--force -A|--all -u|--update -N|--intent-to-add --refresh --ignore-errors \
        --ignore-missing -p|--patch! -i|--interactive! -e|--edit! --chmod= --renormalize --sparse --pathspec-from-file=<! --pathspec-file-nul!",
    ),
    (
        "commit",
        Trees(Read),
        "-a|--all -m|--message= -F|--file=< -t|--template=< --amend --no-edit -q|--quiet -v|--verbose \
        -s|--signoff --no-signoff --allow-empty --allow-empty-message --author= --date= --dry-run --short --porcelain --long --status --no-status \
        -o|--only -i|--include --fixup= --squash= -C|--reuse-message= --reset-author --cleanup= --trailer= --no-gpg-sign -n|--no-verify -e|--edit! -S|--gpg-sign=?! -p|--patch! --interactive! -u|--untracked-files=?",
    ),
    (
        "branch",
        Text,
        "-a|--all -r|--remotes -v|-vv|--verbose -l|--list --show-current --contains= --no-contains= --merged= --no-merged= \
        --points-at= --sort= --format= --color=? --no-color --column=? --no-column --abbrev=? -q|--quiet -i|--ignore-case",
    ),
    (
        "rev-parse",
        Revisions,
        "--show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree \
        --is-bare-repository --abbrev-ref=? --short=? --verify -q|--quiet --symbolic --symbolic-full-name --all --branches=? --tags=? \
        --remotes=?",
    ),
    (
        "describe",
        Text,
        "--tags --all --long --always --dirty=? --abbrev= --match= --exclude= --contains --exact-match --first-parent",
    ),
    (
        "ls-files",
        Trees(Read),
        "-c|--cached -d|--deleted -m|--modified -o|--others -i|--ignored -s|--stage -u|--unmerged -z -t -v -f \
        --full-name --exclude-standard -x|--exclude= -X|--exclude-from=< --error-unmatch --eol --deduplicate --abbrev=?",
    ),
    (
        "ls-tree",
        Revisions,
        "-d -r -t -l|--long -z --name-only --name-status --object-only --full-name --full-tree --abbrev=? --format=",
    ),
    (
        "blame annotate",
        Contents,
        "-L= -l -t -b -s -e|--show-email -w -f|--show-name -n|--show-number -c -M=? -C=? -p|--porcelain \
        --line-porcelain --contents=< --incremental --root --date= --abbrev= --reverse --first-parent --ignore-rev= --ignore-revs-file=<",
    ),
    (
        "grep",
        PatternBelow,
        "-i|--ignore-case -w|--word-regexp -v|--invert-match -n|--line-number -l|--files-with-matches|--name-only \
        -L|--files-without-match -c|--count -h -H -o|--only-matching -q|--quiet -E|--extended-regexp -F|--fixed-strings -G|--basic-regexp \
        -P|--perl-regexp -e=^ -f=<^ -A|--after-context= -B|--before-context= -C|--context= -p|--show-function -W|--function-context \
        --and --or --not --all-match --cached --untracked --no-index -a|--text -I -z|--null --color=? --no-color --heading --break \
        --max-depth= --threads= --column --full-name -m|--max-count= -O|--open-files-in-pager=?! --ext-grep! --textconv!",
    ),
    ("remote", Text, "-v|--verbose"),
    (
        "tag",
        Text,
        "-l|--list -n=? --contains= --no-contains= --merged= --no-merged= --points-at= --sort= --format= --color=? --column=? \
        -i|--ignore-case -a|--annotate -m|--message= -F|--file=< -d|--delete! -f|--force! -s|--sign! -u|--local-user=! -v|--verify! \
        -e|--edit!",
    ),
    (
        "stash",
        Revisions,
        "-q|--quiet -m|--message= -u|--include-untracked -a|--all -k|--keep-index --no-keep-index -S|--staged --index \
        -p|--patch* --stat=?* --oneline --pathspec-from-file=<! --pathspec-file-nul!",
    ),
    (
        "checkout switch restore",
        Paths(None),
        "-b= -B= -c|--create= -C|--force-create= -t|--track=? --no-track -q|--quiet -f|--force --discard-changes -d|--detach \
        -l --orphan= --ours --theirs -m|--merge --conflict= --guess --no-guess --progress --no-progress -s|--source= \
        -W|--worktree -S|--staged -p|--patch! --recurse-submodules=?! --pathspec-from-file=<! --pathspec-file-nul!",
    ),
    (
        "merge",
        Paths(None),
        "--ff --no-ff --ff-only --squash --no-squash --commit --no-commit -m= -F|--file=< -e|--edit! --no-edit --abort --continue! \
        --quit -q|--quiet -v|--verbose --stat -n|--no-stat --log=? --signoff --allow-unrelated-histories --autostash \
        --no-autostash --no-verify -s|--strategy=! -X|--strategy-option= -S|--gpg-sign=?! --into-name= --cleanup=",
    ),
    (
        "rebase",
        Paths(None),
        "--onto= --abort --skip --quit -q|--quiet -v|--verbose --stat -n|--no-stat --autostash --no-autostash --root --ff --no-ff \
        -i|--interactive! -x|--exec=! --continue! --edit-todo! -s|--strategy=! -X|--strategy-option= -S|--gpg-sign=?! --keep-base",
    ),
    ("reset", Paths(None), "--hard --soft --mixed --merge --keep -q|--quiet -N -p|--patch! --pathspec-from-file=<!"),
    (
        "fetch",
        Remote,
        "--all -p|--prune -P|--prune-tags -t|--tags -n|--no-tags --depth= --deepen= --unshallow --dry-run -q|--quiet \
        -v|--verbose --progress -j|--jobs= --shallow-since= --upload-pack=!",
    ),
    (
        "push",
        Remote,
        "-u|--set-upstream --tags --follow-tags --all --mirror -d|--delete --prune -n|--dry-run --porcelain -f|--force \
        --force-with-lease=? --force-if-includes --atomic --no-verify -q|--quiet -v|--verbose --progress --signed=? -o|--push-option= \
        --receive-pack=! --exec=! --repo=!",
    ),
    (
        "pull",
        Remote,
        "--rebase=? --no-rebase --ff --ff-only --no-ff -q|--quiet -v|--verbose --depth= -t|--tags --prune --autostash \
        --no-autostash --no-edit -e|--edit! --squash --no-commit -s|--strategy=! -X|--strategy-option= -S|--gpg-sign=?! --upload-pack=!",
    ),
    ("rm", Trees(Delete), "-f|--force -n|--dry-run -r --cached --ignore-unmatch -q|--quiet"),
];

/// `git` with the options that stand before a subcommand.
pub(super) const FAMILY: (&str, &str, &[Line]) = (
    "git",
    "-C=@ -c=! --config-env=! --exec-path=?! --git-dir=<! --work-tree=<! --namespace= -p|--paginate! -P|--no-pager \
        --no-replace-objects --bare --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs \
        --no-optional-locks -v|--version -h|--help",
    SUBCOMMANDS,
);
