//! Programs that change files.

use super::Line;
use super::Operands::{Copy, Move, Paths, Text};
use crate::record::Access::{Delete, Write};

/// `name …`, operands, options. What these write is what they are for: it needs an allow that names `path`.
pub(super) const PROGRAMS: &[Line] = &[
    ("mkdir", Paths(Some(Write)), "-p|--parents -v|--verbose -m|--mode= -Z|--context=~ --help --version"),
    ("rmdir", Paths(Some(Delete)), "-p|--parents -v|--verbose --ignore-fail-on-non-empty --help --version"),
    (
        "touch",
        Paths(Some(Write)),
        "-a -c|--no-create -d|--date= -f -h|--no-dereference -m -r|--reference=< -t= --time= --help --version",
    ),
    ("tee", Paths(Some(Write)), "-a|--append -i|--ignore-interrupts -p --output-error=? --help --version"),
    (
        "rm",
        Paths(Some(Delete)),
        "-f|--force -i -I --interactive=? --one-file-system --no-preserve-root --preserve-root=? \
        -r|-R|--recursive* -d|--dir -v|--verbose --help --version",
    ),
    (
        "cp",
        Copy,
        "-a|--archive* --attributes-only -b|--backup=~ -d -f|--force -i|--interactive -H -l|--link -L|--dereference -n|--no-clobber \
        -P|--no-dereference -p|--preserve=~ --no-preserve= --parents --reflink=? --sparse= \
        --strip-trailing-slashes -R|-r|--recursive* --remove-destination -s|--symbolic-link -S|--suffix= \
        -t|--target-directory=>^ -T|--no-target-directory -u|--update=~ -v|--verbose -x|--one-file-system --help --version",
    ),
    (
        "mv",
        Move,
        "-b|--backup=~ -f|--force -i|--interactive -n|--no-clobber -S|--suffix= -t|--target-directory=>^ \
        -T|--no-target-directory -u|--update=~ -v|--verbose --strip-trailing-slashes --help --version",
    ),
    // Read by `special`, for its operations stand in any order.
    (
        "tar",
        Text,
        "-c|--create -x|--extract|--get -t|--list -r|--append -u|--update -z|--gzip -j|--bzip2 -J|--xz --zstd \
        -v|--verbose -p|--preserve-permissions -k|--keep-old-files -O|--to-stdout -h|--dereference -a|--auto-compress \
        --exclude= --strip-components= --wildcards --no-same-owner --no-same-permissions --overwrite -f|--file= -C|--directory= \
        -T|--files-from=<! -X|--exclude-from=< --help --version",
    ),
];
