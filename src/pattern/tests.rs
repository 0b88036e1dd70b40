//! What path entries match, and the spellings that try to get around them.
#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::{Location, PathPattern, Side, fold};

const ROOT: &str = "/home/ana/work";

/// A location as the path room makes it: components, and the root where the path lies in it.
fn at(path: &str) -> Location {
    let components = |p: &str| p.split('/').filter(|c| !c.is_empty()).map(Box::from).collect::<Vec<Box<str>>>();
    let (root, path) = (components(ROOT), components(path));
    let inside = path.starts_with(&root).then_some(root.len());
    Location::new(path, inside)
}

/// A location below the root.
fn below(path: &str) -> Location {
    at(&format!("{ROOT}/{path}"))
}

fn exact(entry: &str, at: &Location) -> bool {
    PathPattern::parse(entry).unwrap().matches(at, Side::Exact)
}

fn wide(entry: &str, at: &Location) -> bool {
    PathPattern::parse(entry).unwrap().matches(at, Side::Wide)
}

#[test]
fn a_name_with_a_hidden_part_may_fit_what_its_other_parts_do_not_exclude() {
    use super::glob::Glob;
    for (glob, text, may) in [
        ("secrets", "?", true),
        ("secrets", "se?", true),
        ("secrets", "?ts", true),
        ("Secrets", "SE?TS", true),
        ("secrets", "a?", false),
        ("secrets", "?x", false),
        (".env*", "a.md; echo ?", false),
        (".env*", ".en?", true),
        (".env*", ".env.a?", true),
        ("*.pem", "a?", true),
        ("[ab]c", "b?", true),
    ] {
        assert_eq!(Glob::parse(glob).unwrap().may_fit(text, "?"), may, "{glob} {text}");
    }
}

#[test]
fn a_folder_is_itself_and_all_below_by_components() {
    for path in ["docs", "docs/a.md", "docs/deep/er/a.md"] {
        assert!(exact("docs/", &below(path)), "{path}");
    }
    for path in ["", "docs-evil/a.md", "docsx", "doc", "src/docs/a.md", "Docs/a.md"] {
        assert!(!exact("docs/", &below(path)), "{path}");
    }
    assert!(!exact("docs/", &at("/home/ana/work-evil/docs/a.md")), "a sibling of the root is outside");
    assert!(!exact("docs/", &at("/docs/a.md")), "a relative entry starts at the root");
    for same in ["docs/**", "./docs/", "docs/.", "docs//", "docs/x/..", "docs/**/"] {
        assert!(exact(same, &below("docs/a/b")), "{same}");
        assert!(!exact(same, &below("src/a")), "{same}");
    }
}

#[test]
fn a_file_is_a_file_and_for_a_deny_a_folder_too() {
    assert!(exact("docs/a.md", &below("docs/a.md")));
    assert!(!exact("docs/a.md", &below("docs/a.md/b")));
    assert!(wide("docs/a.md", &below("docs/a.md/b")));
    assert!(!wide("docs/a.md", &below("docs/a.md.bak")));
    assert!(!wide("docs/a.md", &below("docs")));
}

#[test]
fn the_root_and_everything() {
    assert!(exact("./", &below("")) && exact("./", &below("a/b")) && exact(".", &below("a")));
    assert!(!exact("./", &at("/etc/passwd")) && !exact("./", &at("/home/ana")));
    assert!(exact("/", &at("/")) && exact("/", &at("/etc/passwd")) && exact("/**", &below("x")));
    for (entry, everything) in
        [("/", true), ("/**", true), ("/*", true), ("**/*", true), ("./", false), ("/srv/", false), ("/*/*", false)]
    {
        assert_eq!(PathPattern::parse(entry).unwrap().is_everything(), everything, "{entry}");
    }
}

#[test]
fn any_depth_counts_below_the_root_only_where_there_is_one() {
    for path in ["secrets", "secrets/key.pem", "a/secrets/b/c"] {
        assert!(exact("**/secrets/", &below(path)), "{path}");
    }
    assert!(exact("**/secrets/", &at("/srv/secrets/key")), "outside the root all components count");
    let components = |p: &str| p.split('/').filter(|c| !c.is_empty()).map(Box::from).collect::<Vec<Box<str>>>();
    let in_secret_root = Location::new(components("/srv/secrets/work/a.md"), Some(3));
    assert!(!wide("**/secrets/", &in_secret_root), "the root's own name does not count");
    assert!(exact("**/.env", &below(".env")) && exact("**/.env", &below("a/b/.env")));
    assert!(!exact("**/.env", &below(".env/x")) && wide("**/.env", &below(".env/x")));
    assert!(!wide("**/.env", &below(".env.example")) && !wide("**/.env", &below("a.env")));
    assert!(exact("./**/x", &below("a/x")) && !exact("./**/x", &at("/etc/x")), "`./` keeps it inside");
    assert!(!exact("docs/../**/x", &at("/etc/x")), "and so does any start at the root");
    assert!(!wide("**/secrets/", &below("docs/mysecrets/x")));
}

#[test]
fn wildcards_stay_within_a_component() {
    assert!(exact("docs/*.md", &below("docs/a.md")));
    for path in ["docs/X.MD", "docs/sub/a.md", "docs/a.md/b", "docs/a.txt", "a.md"] {
        assert!(!exact("docs/*.md", &below(path)), "{path}");
    }
    assert!(wide("docs/*.md", &below("docs/X.MD")));
    assert!(!wide("docs/*.md", &below("docs/sub/a.md")));
    assert!(exact("docs/**/*.md", &below("docs/a.md")) && exact("docs/**/*.md", &below("docs/b/c/a.md")));
    assert!(exact("{docs,src}/*/x?", &below("src/any/x1")) && !exact("{docs,src}/*/x?", &below("src/x1")));
    assert!(exact("a/**/b/**/c", &below("a/b/x/b/y/c")) && !exact("a/**/b/**/c", &below("a/c/b")));
    assert!(exact("docs/*/", &below("docs/sub/deep")) && !exact("docs/*/", &below("docs")));
    assert!(exact("*", &below(".hidden")), "a leading dot is a character like any other");
}

#[test]
fn an_absolute_entry_is_cleaned_at_load() {
    for entry in ["/srv/../srv/secrets/", "/srv/./secrets//", "/../srv/secrets/", "/srv/secrets/**"] {
        assert!(exact(entry, &at("/srv/secrets/x")), "{entry}");
        assert!(!exact(entry, &at("/srv/secret")), "{entry}");
    }
    assert!(exact("/srv/*/key", &at("/srv/a/key")) && !exact("/srv/*/key", &at("/srv/a/b/key")));
    assert!(exact(&format!("{ROOT}/docs/"), &below("docs/x")), "an absolute entry may lie in the root");
}

#[test]
fn other_spellings_of_a_denied_folder_are_denied() {
    for path in [
        "Secrets/key.pem",
        "SECRETS",
        " secrets/key.pem",
        "secrets /key.pem",
        "sec\u{200c}rets/key.pem",
        "secrets\u{feff}/key.pem",
        "\u{17f}ecrets/key.pem",
        "sec\u{ad}rets/x",
        "\u{200b}/secrets/x",
        "secrets\u{e0020}/x",
    ] {
        assert!(wide("secrets/", &below(path)), "{path:?}");
        assert!(!exact("secrets/", &below(path)), "{path:?}");
    }
    assert!(wide("s\u{e9}crets/", &below("se\u{301}crets/key.pem")), "NFC in the policy, NFD in the call");
    assert!(wide("se\u{301}crets/", &below("S\u{c9}CRETS/key.pem")));
    assert!(wide("[A-C]x/", &below("bx/y")) && wide("[!a]x/", &below("Ax/y")));
    assert!(wide("/srv/Data/", &at("/SRV/data/x")));
}

#[test]
fn entries_that_would_not_mean_what_they_say_are_refused() {
    for (entry, says) in [
        ("", "empty"),
        ("~", "`~`"),
        ("~/x", "`~`"),
        ("~root/x", "`~`"),
        ("$HOME/x", "variables"),
        ("docs/${X}", "variables"),
        ("..", "leaves the root"),
        ("../x", "leaves the root"),
        ("docs/../../x", "leaves the root"),
        ("./../x", "leaves the root"),
        ("*/../x", "more than one place"),
        ("**/../x", "more than one place"),
        ("**", "where"),
        ("**/", "where"),
        ("**/**", "where"),
        ("a**/b", "alone"),
        ("docs/a\0", "U+0000"),
        ("docs/a\n", "U+000A"),
        ("docs/\u{202e}a", "U+202E"),
        ("docs /a", "blank"),
        (" docs/", "blank"),
        ("{a/b,c}", "`}`"),
        ("secrets\\key", "wildcard"),
        ("C:\\x", "wildcard"),
    ] {
        let error = PathPattern::parse(entry).unwrap_err();
        assert!(error.what.contains(says), "{entry:?}: {}", error.what);
    }
    for fine in ["docs/a b.md", "**/*~", "docs/~x", "a/..b/...", "caf\u{e9}/", r"docs/\[x\]/", "-x", "%20"] {
        assert!(PathPattern::parse(fine).is_ok(), "{fine:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_absolute_entry_holds_behind_its_links() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    std::fs::create_dir(real.join("data")).unwrap();
    std::os::unix::fs::symlink(real.join("data"), real.join("link")).unwrap();
    let entry = PathPattern::parse(&format!("{}/link/new/*.md", real.display())).unwrap().with_physical();
    let by_link = at(&format!("{}/link/new/a.md", real.display()));
    let by_data = at(&format!("{}/data/new/a.md", real.display()));
    assert!(entry.matches(&by_link, Side::Wide) && entry.matches(&by_data, Side::Wide));
    assert!(entry.matches(&by_data, Side::Exact), "an allow is compared with the physical path");
    assert!(!entry.matches(&by_link, Side::Exact));
    let plain = PathPattern::parse(&format!("{}/data/", real.display())).unwrap().with_physical();
    assert!(plain.matches(&by_data, Side::Exact));
}

/// The meaning of `*` and `**` over components, written down once more without cleverness.
fn means(segments: &[&str], components: &[&str]) -> bool {
    match (segments.split_first(), components.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((&"**", after)), rest) => {
            means(after, components) || rest.is_some_and(|(_, components)| means(segments, components))
        }
        (Some((segment, segments)), Some((component, components))) => {
            (*segment == "*" || segment == component) && means(segments, components)
        }
        (Some(_), None) => false,
    }
}

proptest! {
    #[test]
    fn what_holds_exactly_holds_widely(
        entry in "(\\./|/|\\*\\*/)?([a-cA-C\u{df}*?]{1,3}/){0,3}([a-c*]{1,2}|\\[!?[a-cA-C]\\]|\\*\\*)/?",
        path in "([a-cA-C\u{df} \u{200b}]{1,3}/){1,5}",
    ) {
        if let Ok(pattern) = PathPattern::parse(&entry) {
            for at in [at(&path), below(&path)] {
                prop_assert!(!pattern.matches(&at, Side::Exact) || pattern.matches(&at, Side::Wide));
            }
        }
    }

    #[test]
    fn deep_globs_mean_what_they_say(
        segments in prop::collection::vec(prop::sample::select(vec!["a", "b", "*", "**"]), 1..6),
        components in prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..7),
        folder: bool,
    ) {
        let entry = format!("/{}{}", segments.join("/"), if folder { "/" } else { "" });
        let mut expanded = segments.clone();
        if folder {
            expanded.push("**");
        }
        // `x/**` is the folder as well; a `**` alone at the end needs nothing more.
        let path = Location::new(components.iter().map(|c| Box::from(*c)).collect(), None);
        prop_assert_eq!(exact(&entry, &path), means(&expanded, &components), "{} {:?}", entry, components);
    }

    #[test]
    fn folding_twice_is_folding_once(text in "\\PC{0,12}") {
        prop_assert_eq!(fold(&fold(&text)), fold(&text));
    }

    #[test]
    fn no_entry_panics(entry in "[a/.*?\\[\\]{},!\\\\~$ -]{0,12}", path in "[a/. ]{0,12}") {
        if let Ok(pattern) = PathPattern::parse(&entry) {
            pattern.matches(&below(&path), Side::Wide);
        }
    }
}
