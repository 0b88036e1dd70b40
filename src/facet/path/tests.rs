//! Paths read as the cases of `policy.md` want it, with the spellings that try to get around it.
#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::testing::Tree;
use super::*;
use crate::facet::FloorWhy;

/// The reading of a text, with locations as paths below the root (or absolute, outside).
struct Read {
    lexical: String,
    physical: Vec<String>,
    canonical: Option<String>,
    floors: Vec<FloorWhy>,
    elsewhere: Vec<String>,
}

fn shown(at: &Location) -> String {
    match at.below_root() {
        Some([]) => ".".to_owned(),
        Some(below) => below.join("/"),
        None => at.to_string(),
    }
}

fn read(space: &Space, text: &str, keep_last: bool) -> Read {
    let reading = space.read(&space.plain(text).unwrap(), None, keep_last);
    Read {
        lexical: shown(&reading.lexical),
        physical: reading.physical.iter().map(shown).collect(),
        canonical: reading.canonical,
        floors: reading.floors.iter().map(|floor| floor.why).collect(),
        elsewhere: reading.elsewhere.iter().map(shown).collect(),
    }
}

#[test]
fn relative_absolute_and_climbing_paths_are_folded() {
    let tree = Tree::usual();
    let space = tree.space(|_| {});
    for (text, lexical) in [
        ("docs/a.md", "docs/a.md"),
        ("docs/../secrets/key.pem", "secrets/key.pem"),
        ("docs/nope/../../secrets/key.pem", "secrets/key.pem"),
        ("secrets/../secrets/key.pem", "secrets/key.pem"),
        ("./docs//./a.md", "docs/a.md"),
        ("secrets/", "secrets"),
        (".", "."),
        ("docs/..", "."),
        ("/etc/passwd", "/etc/passwd"),
        ("../../../../../../../../../../../etc/passwd", "/etc/passwd"),
        ("$ROOT/docs/a.md", "docs/a.md"),
        ("$ROOT", "."),
        ("file://$ROOT/docs/a.md", "docs/a.md"),
        ("file:$ROOT/docs/%2e%2e/secrets/key.pem", "secrets/key.pem"),
        ("docs/..foo", "docs/..foo"),
        ("docs/...", "docs/..."),
        ("docs/-rf", "docs/-rf"),
    ] {
        let read = read(&space, &tree.fill(text), false);
        assert_eq!(read.lexical, lexical, "{text}");
        assert_eq!(read.physical, [lexical], "{text}");
        assert!(read.floors.is_empty(), "{text}: {:?}", read.floors);
    }
    assert!(read(&space, &tree.fill("$ROOT-evil/x"), false).lexical.starts_with('/'), "a sibling is outside");
}

#[test]
fn the_text_is_not_decoded_unless_it_is_a_uri() {
    let tree = Tree::usual();
    let space = tree.space(|_| {});
    assert_eq!(read(&space, "docs/%2e%2e/secrets", false).lexical, "docs/%2e%2e/secrets");
    assert_eq!(read(&space, &tree.fill("file://$ROOT/docs/100%25.md"), false).lexical, "docs/100%.md");
    assert!(space.plain("file://host.example/x").is_err());
    assert!(space.plain("").is_err());
}

#[test]
fn a_link_shows_in_the_physical_path_only() {
    let tree = Tree::usual();
    tree.link("docs/l", "../secrets");
    tree.link("secrets/public.md", "../docs/a.md");
    let space = tree.space(|_| {});
    let through = read(&space, "docs/l/key.pem", false);
    assert_eq!(
        (through.lexical.as_str(), through.physical.as_slice()),
        ("docs/l/key.pem", &["secrets/key.pem".to_owned()][..])
    );
    assert_eq!(through.canonical.unwrap(), tree.fill("$ROOT/secrets/key.pem"));
    let out = read(&space, "secrets/public.md", false);
    assert_eq!((out.lexical.as_str(), out.physical.as_slice()), ("secrets/public.md", &["docs/a.md".to_owned()][..]));
}

#[test]
fn climbing_out_of_a_link_is_read_both_ways() {
    let tree = Tree::new(&["docs/a.md", "secrets/deep/x", "key.pem"]);
    tree.link("docs/l", "../secrets/deep");
    let space = tree.space(|_| {});
    let read = read(&space, "docs/l/../key.pem", false);
    assert_eq!(read.lexical, "docs/key.pem");
    assert_eq!(read.physical, ["secrets/key.pem", "docs/key.pem"]);
    let none = super::tests::read(&space, "docs/l/none/../x", false);
    assert_eq!(none.physical, ["secrets/deep/x"]);
}

#[test]
fn a_delete_counts_the_link_and_what_it_leads_to() {
    let tree = Tree::usual();
    tree.link("docs/l", "../secrets");
    tree.link("docs/up", "..");
    let space = tree.space(|_| {});
    assert_eq!(read(&space, "docs/l", true).physical, ["docs/l", "secrets"]);
    assert_eq!(read(&space, "docs/l", true).canonical.unwrap(), tree.fill("$ROOT/docs/l"));
    assert_eq!(read(&space, "docs/up/docs/l/", true).physical, ["docs/l", "secrets"]);
    assert_eq!(read(&space, "docs/a.md", true).physical, ["docs/a.md"]);
    assert_eq!(read(&space, "docs/l/..", true).physical, [".", "docs"], "no last component to keep");
}

#[test]
fn dangling_links_circles_and_hard_links_are_floors() {
    let tree = Tree::usual();
    tree.link("docs/dangling", "../secrets/later");
    tree.link("docs/loop", "loop");
    std::fs::hard_link(tree.root.join("secrets/key.pem"), tree.root.join("docs/hard.md")).unwrap();
    let space = tree.space(|_| {});
    let dangling = read(&space, "docs/dangling", false);
    assert_eq!((dangling.physical, dangling.floors), (vec!["secrets/later".to_owned()], vec![FloorWhy::DanglingLink]));
    assert_eq!(read(&space, "docs/loop/x", false).floors, [FloorWhy::DanglingLink]);
    assert_eq!(read(&space, "docs/hard.md", false).floors, [FloorWhy::HardLink]);
    let lax = tree.space(|config| config.hard_links_ask = false);
    assert!(read(&lax, "docs/hard.md", false).floors.is_empty());
}

#[test]
fn a_root_behind_a_link_has_two_spellings() {
    let tree = Tree::usual();
    let link = tree.root.with_file_name("link");
    std::os::unix::fs::symlink(&tree.root, &link).unwrap();
    let space = tree.space(|config| {
        config.root.clone_from(&link);
        config.cwd.clone_from(&link);
    });
    assert_eq!(space.root(), link);
    for text in ["docs/a.md".to_owned(), tree.fill("$ROOT/docs/a.md"), format!("{}/docs/a.md", link.display())] {
        let read = read(&space, &text, false);
        assert_eq!(
            (read.lexical.as_str(), read.physical.as_slice()),
            ("docs/a.md", &["docs/a.md".to_owned()][..]),
            "{text}"
        );
    }
}

#[test]
fn the_working_directory_is_where_relative_paths_start() {
    let tree = Tree::usual();
    let space = tree.space(|config| config.cwd = config.root.join("secrets"));
    assert_eq!(read(&space, "key.pem", false).lexical, "secrets/key.pem");
    let base = space.plain("docs").unwrap();
    let from = |text: &str| shown(&space.read(&space.plain(text).unwrap(), Some(&base), false).lexical);
    assert_eq!(from("../../src/main.rs"), "src/main.rs");
    assert_eq!(from("/etc/passwd"), "/etc/passwd");
}

#[test]
fn a_mapped_folder_is_ours_and_all_else_is_outside() {
    let tree = Tree::usual();
    let space = tree.space(|config| config.path_map = vec![("/workspace".to_owned(), config.root.clone())]);
    let mapped = read(&space, "/workspace/docs/a.md", false);
    assert_eq!((mapped.lexical.as_str(), mapped.physical.as_slice()), ("docs/a.md", &["docs/a.md".to_owned()][..]));
    assert_eq!(mapped.canonical.unwrap(), "/workspace/docs/a.md");
    assert_eq!(read(&space, "docs/a.md", false).canonical.unwrap(), "/workspace/docs/a.md");
    assert_eq!(read(&space, "/workspace/docs/../secrets/key.pem", false).lexical, "secrets/key.pem");
    assert_eq!(read(&space, "/x/../workspace/docs/a.md", false).lexical, "docs/a.md");
    for text in ["/workspace2/docs/a.md", "/workspace/../etc/passwd", "/etc/passwd", "../workspace2/x"] {
        let read = read(&space, text, false);
        assert!(read.lexical.starts_with('/') && read.physical.iter().all(|p| p.starts_with('/')), "{text}");
    }
    let host = read(&space, &tree.fill("$ROOT/secrets/key.pem"), false);
    assert!(host.lexical.starts_with('/'), "the upstream has another file there");
    assert_eq!(host.elsewhere, ["secrets/key.pem"], "and yet it stays guarded");
}

#[test]
fn a_path_absolute_elsewhere_is_outside() {
    let tree = Tree::usual();
    let space = tree.space(|_| {});
    for (text, at) in [
        ("C:\\Windows\\win.ini", "/C:/Windows/win.ini"),
        ("\\\\host.example\\share\\x", "/host.example/share/x"),
        ("c:/secrets/x", "/c:/secrets/x"),
    ] {
        let read = read(&space, text, false);
        assert_eq!((read.lexical.as_str(), read.physical.as_slice()), (at, &[at.to_owned()][..]));
        assert_eq!(read.canonical, None);
        assert!(read.floors.iter().all(|why| *why == FloorWhy::Spelling) && !read.floors.is_empty());
    }
    assert!(read(&space, "c:/../secrets/key.pem", false).elsewhere.contains(&"secrets/key.pem".to_owned()));
    assert!(read(&space, "C:\\secrets\\key.pem", false).elsewhere.contains(&"secrets/key.pem".to_owned()));
}

#[test]
fn other_readings_are_told() {
    let tree = Tree::usual();
    let space = tree.space(|_| {});
    for text in [
        " secrets/key.pem",
        "docs\\..\\secrets\\key.pem",
        "secrets./key.pem",
        "docs／..／secrets／key.pem",
        "ｓｅｃｒｅｔｓ/key.pem",
        "/proc/self/root$ROOT/secrets/key.pem",
        "/proc/self/cwd/secrets/key.pem",
        "/proc/1/task/7/root$ROOT/secrets/key.pem",
    ] {
        let read = read(&space, &tree.fill(text), false);
        let told = read.elsewhere.iter().chain(&read.physical).any(|at| at == "secrets/key.pem");
        assert!(told, "{text}: {:?} {:?}", read.elsewhere, read.physical);
    }
    let upper = tree.root.display().to_string().to_uppercase() + "/secrets/key.pem";
    assert_eq!(read(&space, &upper, false).elsewhere, ["secrets/key.pem"]);
    assert!(read(&space, "docs/a.md", false).elsewhere.is_empty());
}

#[test]
fn the_kernels_paths_stay_what_they_are() {
    let tree = Tree::usual();
    tree.link("docs/cwd", "/proc/self/cwd");
    let space = tree.space(|_| {});
    for text in ["/proc/self/environ", "/dev/fd/3", "/dev/stdin", "/sys/kernel"] {
        let read = read(&space, text, false);
        assert_eq!((read.lexical.as_str(), read.physical.as_slice()), (text, &[text.to_owned()][..]));
    }
    let alias = read(&space, "docs/cwd/secrets/key.pem", false);
    assert_eq!(alias.physical, ["/proc/self/cwd/secrets/key.pem", "secrets/key.pem"]);
}

#[test]
fn a_space_that_ignores_case_finds_its_root_in_any() {
    let tree = Tree::usual();
    let space = tree.space(|config| {
        config.case_insensitive = true;
        config.filesystem = FileSystem::Remote;
    });
    let upper = tree.root.display().to_string().to_uppercase() + "/Docs/a.md";
    assert_eq!(read(&space, &upper, false).lexical, "Docs/a.md");
}

#[test]
fn what_is_not_shared_has_no_physical_path() {
    let tree = Tree::usual();
    tree.link("docs/l", "../secrets");
    let remote = tree.space(|config| config.filesystem = FileSystem::Remote);
    let far = read(&remote, "docs/l/key.pem", false);
    assert_eq!((far.physical.len(), far.canonical, far.floors), (0, None, vec![FloorWhy::RemoteLinks]));
    let names = tree.space(|config| config.filesystem = FileSystem::None);
    let name = read(&names, "docs/l/key.pem", false);
    assert_eq!((name.lexical.as_str(), name.physical.len(), name.floors.len()), ("docs/l/key.pem", 0, 0));
}

#[test]
fn the_roots_own_name_is_not_held_against_a_path() {
    let tree = Tree::new(&["app:1 /docs/a.md"]);
    let space = tree.space(|config| {
        config.root = config.root.join("app:1 ");
        config.cwd.clone_from(&config.root);
    });
    assert!(read(&space, &tree.fill("$ROOT/app:1 /docs/a.md"), false).floors.is_empty());
    assert!(!read(&space, &tree.fill("$ROOT/app:2 /docs/a.md"), false).floors.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// What every physical path and no floor says is in `docs`, the kernel opens in `docs`, and so does who folds first.
    #[test]
    fn what_an_allow_would_cover_is_where_it_says(
        parts in prop::collection::vec(0..PARTS.len(), 1..7),
        before in 0..BEFORE.len(),
    ) {
        let tree = Tree::usual();
        tree.link("docs/l", "../secrets");
        tree.link("docs/deep", "../src/../docs");
        tree.link("docs/top", "..");
        tree.link("src/d", "../docs");
        tree.link("docs/p", "/proc/self/root");
        let space = tree.space(|_| {});
        let spelled: Vec<&str> = parts.iter().filter_map(|i| PARTS.get(*i).copied()).collect();
        let text = tree.fill(BEFORE.get(before).unwrap()) + &spelled.join("/");
        let Ok(plain) = space.plain(&text) else { return Ok(()) };
        let reading = space.read(&plain, None, false);
        let docs = space.locate(&tree.root.join("docs")).components.clone();
        if !reading.floors.is_empty() || !reading.physical.iter().all(|at| at.components.starts_with(&docs)) {
            return Ok(());
        }
        let path = plain.text();
        let folded = path_clean::clean(tree.root.join(path));
        for opened in [tree.root.join(path), folded] {
            if let Ok(real) = opened.canonicalize() {
                prop_assert!(real.starts_with(tree.root.join("docs")), "{text}: {}", real.display());
            }
        }
    }

    /// No text makes the reading panic, and each reading is absolute.
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        let tree = Tree::new(&[]);
        let space = tree.space(|_| {});
        if let Ok(plain) = space.plain(&text) {
            let reading = space.read(&plain, None, true);
            prop_assert!(!reading.physical.is_empty());
            prop_assert!(reading.lexical.components.iter().all(|c| !matches!(&**c, "" | "." | "..")));
        }
    }
}

const PARTS: [&str; 14] =
    ["docs", "secrets", "src", "..", "..", ".", "", "l", "deep", "top", "d", "p", "key.pem", "none"];
const BEFORE: [&str; 6] = ["", "docs/", "$ROOT/", "file://$ROOT/docs/", "docs/l/", "/proc/self/root$ROOT/"];
