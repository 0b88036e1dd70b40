//! Subcommands with several names, as the programs' own help lists them (git 2.47, cargo 1.88, npm 11, docker 28).

/// A program, the words of one name, and those of the name that stands for all.
type Alias = (&'static str, &'static str, &'static str);

/// One word of the first list a name; `npm` takes any beginning of them, too.
const ALIASES: &[Alias] = &[
    ("git", "stage", "add"),
    ("git", "remote rm", "remote remove"),
    ("git", "stash save", "stash push"),
    ("cargo", "b", "build"),
    ("cargo", "c", "check"),
    ("cargo", "d", "doc"),
    ("cargo", "t", "test"),
    ("cargo", "r", "run"),
    ("cargo", "rm", "remove"),
    ("docker", "image ls", "images"),
    ("docker", "image list", "images"),
    ("docker", "image rm", "rmi"),
    ("docker", "image remove", "rmi"),
    ("docker", "container ls", "ps"),
    ("docker", "container list", "ps"),
    ("docker", "container remove", "rm"),
    ("docker", "buildx build", "build"),
    ("docker", "buildx b", "build"),
    ("docker", "builder build", "build"),
    ("docker", "system info", "info"),
    ("docker", "system events", "events"),
    ("docker", "volume remove", "volume rm"),
    ("docker", "network remove", "network rm"),
    ("docker", "context remove", "context rm"),
    ("docker", "stack remove", "stack rm"),
    ("docker", "stack down", "stack rm"),
];

/// What stands before a subcommand of `docker` without changing it.
const DOCKER_GROUPS: &[(&str, &[&str])] = &[
    (
        "container",
        &[
            "attach", "commit", "cp", "create", "diff", "exec", "export", "kill", "logs", "pause", "port", "ps",
            "rename", "restart", "rm", "run", "start", "stats", "stop", "top", "unpause", "update", "wait",
        ],
    ),
    ("image", &["build", "history", "import", "load", "pull", "push", "save", "tag"]),
];

/// The names of each subcommand of `npm`, the one that stands for all first.
const NPM: &[&str] = &[
    "access author",
    "adduser add-user",
    "audit",
    "bugs issues",
    "cache",
    "ci clean-install ic install-clean isntall-clean",
    "completion",
    "config c",
    "dedupe ddp",
    "deprecate",
    "diff",
    "dist-tag dist-tags",
    "docs home",
    "doctor",
    "edit",
    "exec x",
    "explain why",
    "explore",
    "find-dupes",
    "fund",
    "get",
    "help hlep",
    "help-search",
    "init create innit",
    "install add i in ins inst insta instal isnt isnta isntal isntall",
    "install-ci-test cit clean-install-test sit",
    "install-test it",
    "link ln",
    "login",
    "logout",
    "ls list",
    "ll la",
    "org ogr",
    "outdated",
    "owner",
    "pack",
    "ping",
    "pkg",
    "prefix",
    "profile",
    "prune",
    "publish",
    "query",
    "rebuild rb",
    "repo",
    "restart",
    "root",
    "run run-script rum urn",
    "sbom",
    "search find s se",
    "set",
    "shrinkwrap",
    "star",
    "stars",
    "start",
    "stop",
    "team",
    "test t tst",
    "token",
    "undeprecate",
    "uninstall remove rm r un unlink",
    "unpublish",
    "unstar",
    "update up upgrade udpate",
    "version verison",
    "view info show v",
    "whoami",
];

/// The name of a subcommand that stands for all it has, and how many words it takes the place of; `words` follow the
/// program.
pub(in crate::facet) fn canonical(program: &str, words: &[&str]) -> Option<(Vec<&'static str>, usize)> {
    let first = *words.first()?;
    if program == "npm" {
        let named = |names: &&&str| names.split(' ').any(|name| name == first);
        // What begins several is refused.
        let begun = |names: &&&str| names.split(' ').any(|name| name.starts_with(first));
        let found = NPM.iter().find(named).or_else(|| NPM.iter().find(begun))?;
        return Some((vec![found.split(' ').next()?], 1));
    }
    let alias = ALIASES.iter().filter(|(of, _, _)| *of == program).find_map(|(_, name, stands)| {
        let name: Vec<&str> = name.split(' ').collect();
        words.starts_with(&name).then(|| (stands.split(' ').collect(), name.len()))
    });
    let grouped = || {
        let (_, subcommands) = DOCKER_GROUPS.iter().find(|(group, _)| program == "docker" && *group == first)?;
        let subcommand = subcommands.iter().find(|subcommand| words.get(1) == Some(subcommand))?;
        Some((vec![*subcommand], 2))
    };
    alias.or_else(grouped)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_of_one_subcommand_are_one() {
        for (program, words, expected) in [
            ("git", "stage docs", "add docs"),
            ("git", "remote rm origin", "remote remove origin"),
            ("cargo", "t --lib", "test --lib"),
            ("npm", "i left-pad", "install left-pad"),
            ("npm", "un left-pad", "uninstall left-pad"),
            ("npm", "pub", "publish"),
            ("npm", "rm x", "uninstall x"),
            ("docker", "container rm x", "rm x"),
            ("docker", "image rm x", "rmi x"),
            ("docker", "image push x", "push x"),
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            let (name, taken) = canonical(program, &words).unwrap();
            let all: Vec<&str> = name.into_iter().chain(words.get(taken..).unwrap().iter().copied()).collect();
            assert_eq!(all.join(" "), expected);
        }
        assert_eq!(canonical("git", &["add"]), None);
        assert_eq!(canonical("docker", &["image", "inspect"]), None);
        assert_eq!(canonical("tool", &["rm"]), None);
    }
}
