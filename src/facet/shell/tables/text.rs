//! Programs that print, look at and search text.

use super::Line;
use super::Operands::{Harmless, InOut, Listed, Paths, Pattern, PatternBelow, Text};
use crate::record::Access::Read;

const GREP: &str = "-i|--ignore-case --no-ignore-case -v|--invert-match -w|--word-regexp -x|--line-regexp -c|--count \
    -l|--files-with-matches -L|--files-without-match -n|--line-number -H|--with-filename -h|--no-filename -o|--only-matching \
    -q|--quiet|--silent -s|--no-messages -b|--byte-offset -E|--extended-regexp -F|--fixed-strings -G|--basic-regexp \
    -P|--perl-regexp -a|--text -z|--null-data -Z|--null -U|--binary -T|--initial-tab -y --line-buffered \
    -e|--regexp=^ -f|--file=<^ -m|--max-count= -A|--after-context= -B|--before-context= -C|--context= --label= \
    --binary-files= -d|--directories=* -D|--devices= --include= --exclude= --exclude-from=< --exclude-dir= \
    --color=? --colour=? --group-separator= --no-group-separator -r|--recursive* -R|--dereference-recursive* -I --help -V|--version -#";

const RG: &str = "-i|--ignore-case -s|--case-sensitive -S|--smart-case -v|--invert-match -w|--word-regexp -x|--line-regexp \
    -c|--count --count-matches -l|--files-with-matches --files-without-match -n|--line-number -N|--no-line-number \
    -H|--with-filename -I|--no-filename -o|--only-matching -q|--quiet -F|--fixed-strings -P|--pcre2 -U|--multiline \
    --multiline-dotall -a|--text -0|--null --column --heading --no-heading --hidden -. -u|--unrestricted --no-ignore \
    --no-ignore-vcs --no-ignore-parent --no-ignore-dot --no-ignore-global --no-ignore-exclude --no-ignore-files \
    --no-require-git --ignore-file-case-insensitive --glob-case-insensitive -b|--byte-offset --null-data --include-zero --mmap --no-mmap \
    --line-buffered --block-buffered --binary --no-hidden --no-pcre2 --auto-hybrid-regex --unicode --no-unicode --type-add= --type-clear= \
    --field-match-separator= --field-context-separator= --path-separator= --max-columns-preview --regex-size-limit= --dfa-size-limit= \
    --stop-on-nonmatch --sort-files --hyperlink-format= --debug --trace --vimgrep --json --stats --trim -p|--pretty --no-messages --passthru --one-file-system --crlf \
    -e|--regexp=^ -f|--file=<^ -m|--max-count= -A|--after-context= -B|--before-context= -C|--context= -d|--max-depth= \
    -g|--glob= --iglob= -t|--type= -T|--type-not= -r|--replace= --sort= --sortr= -M|--max-columns= -j|--threads= \
    --max-filesize= --pre=! --pre-glob= -E|--encoding= --color= --colors= --context-separator= --engine= --ignore-file=< --files^ \
    --type-list^ -L|--follow* --no-config --help -h --version -V";

/// `name …`, operands, options.
pub(super) const PROGRAMS: &[Line] = &[
    ("echo true false : pwd", Harmless, ""),
    ("exit return break continue", Text, ""),
    // What else it sets is a floor.
    ("set", Text, "-e -u -x -o="),
    ("printf", Text, ""),
    ("which", Text, "-a -s"),
    ("type", Text, "-a -t -p -P -f"),
    (
        "date",
        Text,
        "-u|--utc|--universal -R|--rfc-email -I|--iso-8601=? --rfc-3339= -d|--date= -r|--reference=< -f|--file=< \
        -s|--set=! --debug --resolution --help --version -j",
    ),
    ("sleep", Text, "--help --version"),
    ("basename dirname", Text, "-a|--multiple -s|--suffix= -z|--zero --help --version"),
    ("test [", Text, ""),
    ("grep egrep fgrep", Pattern, GREP),
    ("rg", PatternBelow, RG),
    (
        "sed",
        Pattern,
        "-n|--quiet|--silent -E|-r|--regexp-extended -s|--separate -u|--unbuffered -z|--null-data --posix \
        --debug --sandbox -e|--expression=^ -f|--file=<^! -i|--in-place=?! --follow-symlinks --help --version",
    ),
    (
        "jq",
        Pattern,
        "-n|--null-input -r|--raw-output -j|--join-output -a|--ascii-output -c|--compact-output -C|--color-output \
        -M|--monochrome-output -S|--sort-keys -s|--slurp -R|--raw-input -e|--exit-status --tab --seq --stream --unbuffered \
        --indent= --arg=2 --argjson=2 --args --jsonargs -f|--from-file=<^! --slurpfile=2< --rawfile=2< -h|--help -V|--version",
    ),
    (
        "cat",
        Paths(Some(Read)),
        "-A|--show-all -b|--number-nonblank -e -E|--show-ends -n|--number -s|--squeeze-blank -t \
        -T|--show-tabs -u -v|--show-nonprinting --help --version",
    ),
    (
        "head",
        Paths(Some(Read)),
        "-c|--bytes= -n|--lines= -q|--quiet|--silent -v|--verbose -z|--zero-terminated --help --version -#",
    ),
    (
        "tail",
        Paths(Some(Read)),
        "-c|--bytes= -n|--lines= -f|--follow=~ -F -q|--quiet|--silent -v|--verbose -z|--zero-terminated \
        -s|--sleep-interval= --pid= --retry --max-unchanged-stats= --help --version -#",
    ),
    (
        "wc",
        Paths(Some(Read)),
        "-c|--bytes -m|--chars -l|--lines -L|--max-line-length -w|--words --files0-from=<! --total= \
        --help --version",
    ),
    (
        "sort",
        Paths(Some(Read)),
        "-b|--ignore-leading-blanks -d|--dictionary-order -f|--ignore-case -g|--general-numeric-sort \
        -i|--ignore-nonprinting -M|--month-sort -h|--human-numeric-sort -n|--numeric-sort -R|--random-sort -r|--reverse \
        -V|--version-sort -c|--check=~ -C -m|--merge -s|--stable -u|--unique -z|--zero-terminated -k|--key= -t|--field-separator= \
        -S|--buffer-size= --batch-size= --parallel= --sort= --random-source=< --files0-from=<! -o|--output=> \
        -T|--temporary-directory=> --compress-program=! --debug --help --version",
    ),
    (
        "uniq",
        InOut,
        "-c|--count -d|--repeated -D -u|--unique -i|--ignore-case -f|--skip-fields= -s|--skip-chars= -w|--check-chars= \
        -z|--zero-terminated --all-repeated=? --group=? --help --version",
    ),
    (
        "diff",
        Paths(Some(Read)),
        "-u|--unified=~ -U= -c|--context=~ -C= -q|--brief -s|--report-identical-files -r|--recursive* -N|--new-file -a|--text \
        -b|--ignore-space-change -w|--ignore-all-space -B|--ignore-blank-lines -i|--ignore-case -y|--side-by-side -W|--width= \
        -e|--ed -n|--rcs --normal --color=? --suppress-common-lines --label= -x|--exclude= -X|--exclude-from=< --from-file=< \
        --to-file=< --no-dereference --ignore-file-name-case -E|--ignore-tab-expansion -Z|--ignore-trailing-space \
        -I|--ignore-matching-lines= -F|--show-function-line= -T|--initial-tab --tabsize= --left-column --horizon-lines= \
        --speed-large-files -P|--unidirectional-new-file -S|--starting-file= --palette= --strip-trailing-cr -d|--minimal -p|--show-c-function -t|--expand-tabs --help -v|--version",
    ),
    (
        "cmp",
        Paths(Some(Read)),
        "-b|--print-bytes -i|--ignore-initial= -l|--verbose -n|--bytes= -s|--quiet|--silent --help -v|--version",
    ),
    (
        "comm",
        Paths(Some(Read)),
        "-1 -2 -3 --check-order --nocheck-order --output-delimiter= --total -z|--zero-terminated --help --version",
    ),
    (
        "nl",
        Paths(Some(Read)),
        "-b|--body-numbering= -d|--section-delimiter= -f|--footer-numbering= -h|--header-numbering= -i|--line-increment= \
        -l|--join-blank-lines= -n|--number-format= -p|--no-renumber -s|--number-separator= -v|--starting-line-number= \
        -w|--number-width= --help --version",
    ),
    ("tac", Paths(Some(Read)), "-b|--before -r|--regex -s|--separator= --help --version"),
    ("rev", Paths(Some(Read)), "-h|--help -V|--version"),
    (
        "stat",
        Paths(Some(Read)),
        "-L|--dereference -f|--file-system -c|--format= --printf= -t|--terse --cached= --help --version",
    ),
    (
        "file",
        Paths(Some(Read)),
        "-b|--brief -i|--mime --mime-type --mime-encoding --extension -k|--keep-going -L|--dereference -h|--no-dereference \
        -r|--raw -0|--print0 -F|--separator= -e|--exclude= -N|--no-pad -n|--no-buffer -p|--preserve-date -s|--special-files -f|--files-from=<! -m|--magic-file=< --help -v|--version",
    ),
    (
        "du",
        Listed,
        "-s|--summarize -h|--human-readable -a|--all -c|--total -k -m -b|--bytes -d|--max-depth= --si -B|--block-size= -H --time-style= --apparent-size -x|--one-file-system \
        -L|--dereference -P|--no-dereference -D|--dereference-args -l|--count-links -S|--separate-dirs -t|--threshold= --time=? \
        --exclude= -X|--exclude-from=< --files0-from=<! -0|--null --inodes --help --version",
    ),
    (
        "df",
        Paths(Some(Read)),
        "-h|--human-readable -H|--si -a|--all -i|--inodes -k -l|--local -T|--print-type -t|--type= -x|--exclude-type= --total \
        --output=? -P|--portability -B|--block-size= --sync --no-sync -v --help --version",
    ),
    (
        "tree",
        Listed,
        "-L=* -a* -d* -f* -i* -s* -h* -D* -F* -I=* -P=* -n* -C* --dirsfirst* --noreport* --gitignore* --prune* --filelimit=* -J* -X* \
        -o=> --help --version",
    ),
    (
        "realpath readlink",
        Paths(Some(Read)),
        "-e|--canonicalize-existing -m|--canonicalize-missing -f|--canonicalize -L|--logical -P|--physical -q|--quiet -s|--no-symlinks \
        -n|--no-newline -v|--verbose --relative-to=< --relative-base=< -z|--zero --help --version",
    ),
    (
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum",
        Paths(Some(Read)),
        "-b|--binary -t|--text --tag --untagged -a|--algorithm= -l|--length= -z|--zero -c|--check! --ignore-missing --quiet --status --strict -w|--warn --help --version",
    ),
    (
        "uname",
        Text,
        "-a|--all -s|--kernel-name -n|--nodename -r|--kernel-release -v|--kernel-version -m|--machine -p|--processor \
        -i|--hardware-platform -o|--operating-system --help --version",
    ),
    ("whoami nproc arch", Text, "--all --ignore= --help --version"),
    ("id", Text, "-u|--user -g|--group -G|--groups -n|--name -r|--real -z|--zero --help --version"),
    ("seq", Text, "-f|--format= -s|--separator= -w|--equal-width --help --version"),
    (
        "cut",
        Paths(Some(Read)),
        "-b|--bytes= -c|--characters= -d|--delimiter= -f|--fields= -n -s|--only-delimited --complement \
        --output-delimiter= -z|--zero-terminated --help --version",
    ),
    ("tr", Text, "-c|-C|--complement -d|--delete -s|--squeeze-repeats -t|--truncate-set1 --help --version"),
    (
        "ls",
        Listed,
        "-a|--all -A|--almost-all --author -b|--escape --block-size= -B|--ignore-backups -c -C --color=? -d|--directory \
        -D|--dired -f -F|--classify=~ --file-type --format= --full-time -g --group-directories-first -G|--no-group \
        -h|--human-readable --si -H|--dereference-command-line --dereference-command-line-symlink-to-dir --hide= --hyperlink=? --indicator-style= -i|--inode -I|--ignore= \
        -k|--kibibytes -l -L|--dereference -m -n|--numeric-uid-gid -N|--literal -o -p -q|--hide-control-chars \
        --show-control-chars -Q|--quote-name --quoting-style= -r|--reverse -R|--recursive* -s|--size -S --sort= --time= \
        --time-style= -t -T|--tabsize= -u -U -v -w|--width= -x -X -Z|--context --zero -1 --help --version",
    ),
];
