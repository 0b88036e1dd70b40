//! What changes a repository, its files, or another repository.

use super::super::Operands::{Git, Move, Remote};
use super::super::{Line, Operands};
use super::Named;
use crate::record::Access::{Delete, Read};

const STAGED: Operands = Git(Named::Files(Some(Read)));
const REMOVED: Operands = Git(Named::Files(Some(Delete)));
const RESTORED: Operands = Git(Named::Files(None));
const CHECKED_OUT: Operands = Git(Named::Checkout);
const SWITCHED: Operands = Git(Named::Switch);
const RESET: Operands = Git(Named::Reset);
const COMMITS: Operands = Git(Named::Commits);
const PULLED: Operands = Git(Named::Pull);
const PATCHES: Operands = Git(Named::Patches);
const CLEANED: Operands = Git(Named::Clean);
const STASHED: Operands = Git(Named::Stash);
const OBJECTS: Operands = Git(Named::Objects);

pub(super) const SUBCOMMANDS: &[Line] = &[
    (
        "add stage",
        STAGED,
        "-n|--dry-run -v|--verbose -f|--force -A|--all* --no-all --ignore-removal -u|--update* -N|--intent-to-add --refresh \
        --ignore-errors --ignore-missing --chmod= --renormalize* --sparse --no-warn-embedded-repo -p|--patch! -i|--interactive! \
        -e|--edit! --pathspec-from-file=<! --pathspec-file-nul!",
    ),
    (
        "commit",
        STAGED,
        "-a|--all* -m|--message= -F|--file=< -t|--template=< --amend --no-edit -q|--quiet -v|--verbose -s|--signoff \
        --no-signoff --allow-empty --allow-empty-message --author= --date= --dry-run --short --branch --porcelain -z|--null \
        --long --ahead-behind --no-ahead-behind --status --no-status -o|--only -i|--include --fixup= --squash= \
        -C|--reuse-message= --reset-author --cleanup= --trailer=! --no-gpg-sign -n|--no-verify --verify --no-post-rewrite \
        -c|--reedit-message=! -e|--edit! -S|--gpg-sign=?! -p|--patch! --interactive! -u|--untracked-files=? \
        --pathspec-from-file=<! --pathspec-file-nul!",
    ),
    (
        "stash",
        STASHED,
        "-q|--quiet -m|--message= -u|--include-untracked -a|--all -k|--keep-index --no-keep-index -S|--staged --index \
        -p|--patch* --stat=?* --numstat* --shortstat* --name-only --name-status --oneline --pathspec-from-file=<! \
        --pathspec-file-nul!",
    ),
    (
        "checkout",
        CHECKED_OUT,
        "-b= -B= -l --guess --no-guess --overlay --no-overlay -q|--quiet --progress --no-progress -m|--merge --conflict= \
        -d|--detach -t|--track=? --no-track -f|--force --orphan= --ignore-other-worktrees --no-overwrite-ignore \
        --ignore-skip-worktree-bits -2|--ours -3|--theirs -p|--patch! --recurse-submodules=?! --no-recurse-submodules \
        --pathspec-from-file=<! --pathspec-file-nul!",
    ),
    (
        "switch",
        SWITCHED,
        "-c|--create= -C|--force-create= --guess --no-guess --discard-changes -q|--quiet --progress --no-progress -m|--merge \
        --conflict= -d|--detach -t|--track=? --no-track -f|--force --orphan= --ignore-other-worktrees --recurse-submodules=?! \
        --no-recurse-submodules",
    ),
    (
        "restore",
        RESTORED,
        "-s|--source= -S|--staged -W|--worktree --ignore-unmerged --overlay --no-overlay -q|--quiet --progress --no-progress \
        -m|--merge --conflict= -2|--ours -3|--theirs -p|--patch! --recurse-submodules=?! --no-recurse-submodules \
        --pathspec-from-file=<! --pathspec-file-nul!",
    ),
    (
        "merge",
        COMMITS,
        "--ff --no-ff --ff-only --squash --no-squash --commit --no-commit -m|--message= -F|--file=< -e|--edit! --no-edit --abort \
        --continue! --quit -q|--quiet -v|--verbose --progress --no-progress --stat -n|--no-stat --summary --log=? --no-log \
        --signoff --allow-unrelated-histories --autostash --no-autostash --no-verify --verify-signatures! --into-name= \
        --cleanup= -s|--strategy=! -X|--strategy-option= -S|--gpg-sign=?!",
    ),
    (
        "rebase",
        COMMITS,
        "--onto= --keep-base --abort --skip --quit -q|--quiet -v|--verbose --stat -n|--no-stat --autostash --no-autostash --root \
        --ff --no-ff -f|--force-rebase --signoff --ignore-whitespace --whitespace= --committer-date-is-author-date \
        --reset-author-date --ignore-date --apply --merge -m --fork-point --no-fork-point --reapply-cherry-picks \
        --keep-empty --empty= --update-refs --no-update-refs --show-current-patch -r|--rebase-merges=? --autosquash \
        --no-autosquash -i|--interactive! -x|--exec=! --continue! --edit-todo! -s|--strategy=! -X|--strategy-option= \
        -S|--gpg-sign=?!",
    ),
    (
        "cherry-pick",
        COMMITS,
        "--quit --abort --skip --continue! -n|--no-commit -e|--edit! --no-edit -s|--signoff -m|--mainline= -x --ff \
        --allow-empty --allow-empty-message --keep-redundant-commits --empty= --cleanup= --strategy=! -X|--strategy-option= \
        -S|--gpg-sign=?!",
    ),
    (
        "revert",
        COMMITS,
        "--quit --abort --skip --continue! -n|--no-commit -e|--edit! --no-edit -s|--signoff -m|--mainline= --reference \
        --cleanup= --strategy=! -X|--strategy-option= -S|--gpg-sign=?!",
    ),
    (
        "reset",
        RESET,
        "--hard --soft --mixed --merge --keep -q|--quiet --refresh --no-refresh -N|--intent-to-add -p|--patch! \
        --pathspec-from-file=<! --pathspec-file-nul!",
    ),
    (
        "apply",
        PATCHES,
        "--stat --numstat --summary --check --apply --index -N|--intent-to-add --cached -3|--3way --ours --theirs --union \
        -R|--reverse --reject --allow-overlap -p= -C= --unidiff-zero --recount --inaccurate-eof --exclude= --include= \
        --ignore-space-change --ignore-whitespace --whitespace= --no-add --binary --allow-empty -z -v|--verbose -q|--quiet \
        --directory=! --unsafe-paths! --build-fake-ancestor=>",
    ),
    (
        "archive",
        OBJECTS,
        "--format= --prefix= -l|--list -v|--verbose --worktree-attributes --mtime= --add-file=< --add-virtual-file= -o|--output=> \
        --remote=! --exec=! -#",
    ),
    ("clean", CLEANED, "-d -f|--force -n|--dry-run -q|--quiet -x -X -e|--exclude= -i|--interactive"),
    (
        "fetch",
        Remote,
        "--all -p|--prune -P|--prune-tags -t|--tags -n|--no-tags --depth= --deepen= --unshallow --refetch --dry-run -q|--quiet \
        -v|--verbose --progress --no-progress -j|--jobs= --shallow-since= --shallow-exclude= --filter= -f|--force -a|--append \
        --atomic -4|--ipv4 -6|--ipv6 --porcelain --set-upstream --no-auto-maintenance --no-auto-gc --multiple! \
        --recurse-submodules=?! --no-recurse-submodules -u|--update-head-ok! --refmap=! -o|--server-option=! --stdin! \
        --upload-pack=!",
    ),
    (
        "push",
        Remote,
        "-u|--set-upstream --tags --follow-tags --all --branches --mirror -d|--delete --prune -n|--dry-run --porcelain \
        -f|--force --force-with-lease=? --force-if-includes --atomic --no-atomic --thin --no-thin --no-verify -q|--quiet \
        -v|--verbose --progress --no-progress -4|--ipv4 -6|--ipv6 --signed=?! --no-signed -o|--push-option= \
        --recurse-submodules=! --receive-pack=! --exec=! --repo=!",
    ),
    (
        "pull",
        PULLED,
        "-r|--rebase=? --no-rebase --ff --ff-only --no-ff -q|--quiet -v|--verbose --progress --no-progress --depth= --deepen= \
        --unshallow --all -f|--force -t|--tags --no-tags -p|--prune -j|--jobs=? --dry-run --stat -n|--no-stat --autostash \
        --no-autostash --no-edit -e|--edit! --squash --commit --no-commit --allow-unrelated-histories --no-verify \
        -s|--strategy=! -X|--strategy-option= -S|--gpg-sign=?! --recurse-submodules=?! --no-recurse-submodules --upload-pack=!",
    ),
    ("rm", REMOVED, "-f|--force -n|--dry-run -r --cached --ignore-unmatch --sparse -q|--quiet"),
    ("mv", Move, "-f|--force -n|--dry-run -k -v|--verbose --sparse"),
];
