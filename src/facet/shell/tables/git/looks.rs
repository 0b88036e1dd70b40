//! What only looks at a repository.

use super::super::Operands::{Git, Remote, Text};
use super::super::{Line, Operands};
use super::Named;
use crate::record::Access::Read;

const NAMES: Operands = Git(Named::Names);
const LISTED: Operands = Git(Named::Files(Some(Read)));
const HISTORY: Operands = Git(Named::Log);
const CONTENTS: Operands = Git(Named::Contents);
const DIFFERENCES: Operands = Git(Named::Differences);
const SEARCHED: Operands = Git(Named::Grep);
const OBJECTS: Operands = Git(Named::Objects);

/// What differences are printed by.
macro_rules! differences {
    () => {
        "-s|--no-patch -z --patience --histogram --minimal --anchored= --diff-algorithm= --indent-heuristic \
        --no-indent-heuristic --abbrev=? --no-abbrev --full-index --binary -a|--text --color=? --no-color --color-moved=? \
        --no-color-moved --color-moved-ws= --word-diff=? --word-diff-regex= --color-words=? --no-renames --rename-empty \
        -M|--find-renames=? -C|--find-copies=? --find-copies-harder -B|--break-rewrites=? -D|--irreversible-delete -l= \
        --diff-filter= -S= -G= --find-object= --pickaxe-all --pickaxe-regex -R --relative=? --no-relative --exit-code --quiet \
        --ignore-cr-at-eol --ignore-space-at-eol -b|--ignore-space-change -w|--ignore-all-space --ignore-blank-lines \
        -I|--ignore-matching-lines= --inter-hunk-context= -W|--function-context --no-function-context --ws-error-highlight= \
        --src-prefix= --dst-prefix= --line-prefix= --no-prefix --default-prefix --submodule=? --ignore-submodules=? \
        --ita-invisible-in-index --ita-visible-in-index --skip-to= --rotate-to= --output-indicator-new= \
        --output-indicator-old= --output-indicator-context= --name-only --name-status --summary --compact-summary --check \
        --no-ext-diff --no-textconv --ext-diff! --textconv! --output=> -O=< "
    };
}

/// Which commits are printed, and how. Only what prints the contents of files goes on below the repository.
const LOG: &str = concat!(
    differences!(),
    "--oneline --graph --no-graph --all --branches=? --tags=? --remotes=? --decorate=? --no-decorate --decorate-refs= \
    --decorate-refs-exclude= --clear-decorations --abbrev-commit --no-abbrev-commit --pretty=? --format=? --date= \
    --relative-date --stat=?* --stat-width=* --stat-name-width=* --stat-graph-width=* --stat-count=* --shortstat* --numstat* \
    --dirstat=?* --dirstat-by-file=?* --cumulative* -p|-u|--patch* -U|--unified=?* --raw --patch-with-stat* --patch-with-raw* \
    -c* --cc* -m* --dd* --remerge-diff* --diff-merges=* --no-diff-merges --combined-all-paths -t -L=: -n|--max-count= --skip= \
    --since|--after= --since-as-filter= --until|--before= --author= --committer= --grep= --grep-reflog= \
    -i|--regexp-ignore-case -E|--extended-regexp --basic-regexp -F|--fixed-strings -P|--perl-regexp --invert-grep --all-match \
    --merges --no-merges --min-parents=? --max-parents=? --no-min-parents --no-max-parents --first-parent \
    --exclude-first-parent-only --reverse --topo-order --date-order --author-date-order --follow --full-history --dense \
    --sparse --simplify-merges --simplify-by-decoration --ancestry-path=? --show-pulls --left-right --left-only --right-only \
    --cherry-pick --cherry --cherry-mark --boundary --no-walk=? --do-walk --remove-empty --show-signature! \
    --show-linear-break=? --source --reflog -g|--walk-reflogs --log-size --notes=? --no-notes --show-notes=? --mailmap \
    --use-mailmap --no-mailmap --no-use-mailmap --encoding= --expand-tabs=? --no-expand-tabs --exclude= --exclude-hidden= \
    --glob= --not --parents --children --count --timestamp --ignore-missing --bisect --objects --stdin! -#"
);

const DIFF: &str = concat!(
    differences!(),
    "--cached --staged -p|-u|--patch -U|--unified=? --stat=? --stat-width= --stat-name-width= --stat-graph-width= --stat-count= \
    --shortstat --numstat --dirstat=? --dirstat-by-file=? --cumulative --raw --patch-with-stat --patch-with-raw --merge-base \
    --no-index -1 -2 -3 -0 --base --ours --theirs --cc"
);

pub(super) const SUBCOMMANDS: &[Line] = &[
    (
        "status",
        NAMES,
        "-s|--short -b|--branch --show-stash --porcelain=? --long -v|--verbose! -u|--untracked-files=? --ignore-submodules=? \
        --ignored=? -z|--null --column=? --no-column --ahead-behind --no-ahead-behind --renames --no-renames -M|--find-renames=?",
    ),
    ("log whatchanged rev-list", HISTORY, LOG),
    ("show", CONTENTS, LOG),
    ("diff", DIFFERENCES, DIFF),
    (
        "shortlog",
        HISTORY,
        "-c|--committer -n|--numbered -s|--summary -e|--email -w=? --group= --format=? --date= --since|--after= \
        --until|--before= --author= --committer= --grep= --all --branches=? --tags=? --remotes=? --merges --no-merges \
        --first-parent --max-count= --skip= -i --mailmap -#",
    ),
    ("reflog", HISTORY, LOG),
    (
        "rev-parse",
        HISTORY,
        "--show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree \
        --is-inside-git-dir --is-bare-repository --is-shallow-repository --show-superproject-working-tree \
        --show-object-format=? --show-ref-format --git-path= --path-format=? --abbrev-ref=? --short=? --verify -q|--quiet \
        --symbolic --symbolic-full-name --all --branches=? --tags=? --remotes=? --revs-only --no-revs --flags --no-flags \
        --default= --exclude= --glob= --since= --after= --until= --before= --not --sq --local-env-vars",
    ),
    (
        "describe",
        Text,
        "--contains --debug --all --tags --long --first-parent --abbrev=? --exact-match --candidates= --match= --exclude= \
        --always --dirty=? --broken=?",
    ),
    (
        "ls-files",
        LISTED,
        "-c|--cached -d|--deleted -m|--modified -o|--others -i|--ignored -s|--stage -k|--killed -u|--unmerged -z -t -v -f \
        --directory --no-empty-directory --full-name --exclude-standard -x|--exclude= -X|--exclude-from=< \
        --exclude-per-directory= --error-unmatch --with-tree= --eol --deduplicate --sparse --resolve-undo \
        --recurse-submodules --abbrev=? --format= --debug",
    ),
    (
        "ls-tree",
        HISTORY,
        "-d -r -t -l|--long -z --name-only --name-status --object-only --full-name --full-tree --abbrev=? --format=",
    ),
    (
        "blame annotate",
        HISTORY,
        "-L= -l -t -b -s -e|--show-email -w -f|--show-name -n|--show-number -c -M=? -C=? -p|--porcelain --line-porcelain \
        --contents=< --incremental --root --show-stats --progress --no-progress --score-debug --date= --abbrev=? --no-abbrev \
        --reverse --first-parent --color-lines --color-by-age --minimal --ignore-rev= --ignore-revs-file=< -S=<",
    ),
    (
        "grep",
        SEARCHED,
        "-i|--ignore-case -w|--word-regexp -v|--invert-match -n|--line-number -l|--files-with-matches|--name-only \
        -L|--files-without-match -c|--count -h -H -o|--only-matching -q|--quiet -E|--extended-regexp -F|--fixed-strings \
        -G|--basic-regexp -P|--perl-regexp -e=^ -f=<^ -A|--after-context= -B|--before-context= -C|--context= \
        -p|--show-function -W|--function-context --and --or --not --all-match --cached --untracked --no-index \
        --exclude-standard --no-exclude-standard --recurse-submodules -a|--text -I -z|--null --color=? --no-color --heading \
        --no-heading --break --max-depth= --no-recursive -r|--recursive --threads= --column --full-name -m|--max-count= \
        -O|--open-files-in-pager=?! --ext-grep! --textconv! --no-textconv -#",
    ),
    ("remote", Text, "-v|--verbose -n --push --all"),
    ("worktree", Text, "-v|--verbose --porcelain -z --expire="),
    ("submodule", NAMES, "-q|--quiet --cached --recursive --files -n|--summary-limit="),
    ("notes", HISTORY, "--ref="),
    ("bisect", Text, ""),
    (
        "branch",
        Text,
        "-a|--all -r|--remotes -v|-vv|--verbose -l|--list --show-current --contains= --no-contains= --merged= --no-merged= \
        --points-at= --sort= --format= --omit-empty --color=? --no-color --column=? --no-column --abbrev=? --no-abbrev \
        -q|--quiet -i|--ignore-case -t|--track=?! -u|--set-upstream-to=! --unset-upstream! -d|--delete! -D! -m|--move! -M! \
        -c|--copy! -C! -f|--force! --edit-description! --create-reflog! --recurse-submodules!",
    ),
    (
        "tag",
        Text,
        "-l|--list -n=? --contains= --no-contains= --merged= --no-merged= --points-at= --sort= --format= --omit-empty \
        --color=? --column=? --no-column -i|--ignore-case -a|--annotate -m|--message= -F|--file=< --trailer=! --cleanup= \
        -d|--delete! -f|--force! -s|--sign! -u|--local-user=! -v|--verify! -e|--edit! --create-reflog!",
    ),
    (
        "for-each-ref",
        Text,
        "--count= --format= --sort= --points-at= --merged= --no-merged= --contains= --no-contains= --exclude= --omit-empty \
        --color=? --ignore-case --include-root-refs -s|--shell -p|--perl --python --tcl --stdin!",
    ),
    (
        "show-ref",
        Text,
        "--tags --branches --heads --exists --verify --head -d|--dereference -s|--hash=? --abbrev=? -q|--quiet \
        --exclude-existing=?",
    ),
    ("merge-base", Text, "-a|--all --octopus --independent --is-ancestor --fork-point"),
    ("name-rev", Text, "--tags --refs= --exclude= --all --name-only --always --no-undefined"),
    ("cherry", Text, "-v --abbrev=?"),
    ("count-objects", Text, "-v|--verbose -H|--human-readable"),
    ("version", Text, "--build-options"),
    (
        "cat-file",
        OBJECTS,
        "-e -p -t -s --allow-unknown-type --use-mailmap --mailmap --batch=? --batch-check=? --batch-command=? \
        --batch-all-objects -Z --buffer --unordered --follow-symlinks --textconv! --filters! --path=!",
    ),
    ("check-ignore", NAMES, "-q|--quiet -v|--verbose -n|--non-matching --no-index -z --stdin!"),
    (
        "ls-remote",
        Remote,
        "-q|--quiet -t|--tags -b|--branches -h|--heads --refs --get-url --sort= --exit-code --symref -o|--server-option= \
        --upload-pack=! --exec=!",
    ),
    (
        "config",
        Text,
        "--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool -l|--list --global --system --local --worktree \
        --show-origin --show-scope --name-only -z|--null --type= --bool --int --bool-or-int --bool-or-str --path --expiry-date \
        --includes --no-includes --default= --all --value= --fixed-value --regexp= --url= -f|--file=<! --blob=! -e|--edit! \
        --add! --replace-all! --unset! --unset-all! --rename-section! --remove-section! --append! --comment=!",
    ),
];
