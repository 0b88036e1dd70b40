//! Calls taken apart through the catalogue.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;
use crate::catalog::Catalogue;
use crate::config::FileSystem;
use crate::facet::AddressFacet;
use crate::facet::path::testing::Tree;
use crate::message::{Json, Limits};
use crate::pattern::Location;

fn json(text: &str) -> Value {
    Json::parse(bytes::Bytes::copy_from_slice(text.as_bytes()), Limits::default()).unwrap().into_root()
}

fn builtin(server: &str, tool: &str) -> Tool {
    Catalogue::builtin(server).unwrap().tools.get(tool).unwrap_or_else(|| panic!("{server} {tool}")).clone()
}

fn guess_tool() -> Tool {
    Catalogue::default().tool("unknown", None)
}

fn entry(arguments: &[(&str, Argument)]) -> Tool {
    Tool { arguments: arguments.iter().map(|(p, a)| (p.parse().unwrap(), a.clone())).collect(), ..Tool::default() }
}

fn path(access: Access) -> Argument {
    Argument::Path { access: Some(access), recursive: false, missing: None, base: None, keep_last: false }
}

fn below(at: &Location) -> String {
    at.below_root()
        .map_or_else(|| at.to_string(), |below| if below.is_empty() { ".".to_owned() } else { below.join("/") })
}

/// `access lexical` of each path facet, `(recursive)` behind where it is; other facets by their kind.
fn facets(touched: &Touched) -> Vec<String> {
    let one = |facet: &Facet| match &facet.kind {
        FacetKind::Path(path) => {
            let access = path.access.map_or("unknown".to_owned(), |a| format!("{a:?}").to_lowercase());
            format!("{access} {}{}", below(&path.lexical), if path.recursive { " (recursive)" } else { "" })
        }
        FacetKind::Command(command) => format!("command {}", command.shown()),
        FacetKind::Url(UrlFacet { url, host, .. }) => format!("url {url} at {}", host.as_deref().unwrap_or("nowhere")),
        FacetKind::Address(AddressFacet { address, host, .. }) => {
            format!("address {address} at {}", host.as_deref().unwrap_or("nowhere"))
        }
        FacetKind::Sql(sql) => format!("sql on {}", sql.tables.iter().cloned().collect::<Vec<_>>().join(" ")),
        FacetKind::Method(method) => format!("method {method}"),
        FacetKind::Bare => "bare".to_owned(),
    };
    touched.facets.iter().map(one).collect()
}

fn floors(touched: &Touched) -> Vec<FloorWhy> {
    touched.facets.iter().flat_map(|facet| facet.floors.iter().map(|floor| floor.why)).collect()
}

/// Whether a stray leads to that place below the root.
fn strays_to(touched: &Touched, place: &str) -> bool {
    touched.strays.iter().flat_map(|stray| &stray.locations).any(|at| below(at) == place)
}

fn take(tool: &Tool, tree: &Tree, arguments: &str) -> Touched {
    extract(tool, &tree.space(|_| {}), Some(&json(&tree.fill(arguments)))).unwrap()
}

fn refused(tool: &Tool, arguments: &str) -> Malformed {
    let tree = Tree::usual();
    let arguments = json(&tree.fill(arguments));
    extract(tool, &tree.space(|_| {}), Some(&arguments)).expect_err("must be malformed")
}

#[test]
fn a_path_argument_is_one_facet() {
    let tree = Tree::usual();
    let touched = take(&builtin("filesystem", "read_file"), &tree, r#"{"path":"docs/a.md","head":3}"#);
    assert_eq!(facets(&touched), ["read docs/a.md"]);
    assert!(touched.strays.is_empty() && floors(&touched).is_empty());
    let FacetKind::Path(path) = &touched.facets[0].kind else { panic!() };
    assert_eq!((path.pointer.as_str(), path.sent.as_str()), ("/path", "docs/a.md"));
    assert_eq!(path.canonical.as_deref(), Some(tree.fill("$ROOT/docs/a.md").as_str()));
}

#[test]
fn a_url_that_is_a_way_through_a_link_is_a_path_too() {
    let tree = Tree::usual();
    tree.link("xx:", "secrets");
    let read = entry(&[("/path", path(Access::Read))]);
    let through = take(&read, &tree, r#"{"path":"xx://key.pem"}"#);
    let FacetKind::Path(way) = &through.facets[1].kind else { panic!("{:?}", facets(&through)) };
    assert_eq!(way.physical.iter().map(below).collect::<Vec<_>>(), ["secrets/key.pem"]);
    assert_eq!(facets(&take(&read, &tree, r#"{"path":"yy://key.pem"}"#)), ["url yy://key.pem at key.pem"]);
}

#[test]
fn a_name_with_a_mark_of_its_own_is_no_variant() {
    let tree = Tree::new(&["docs/a.md"]);
    let tool = entry(&[("/filePath", path(Access::Read)), ("/filepath", path(Access::Read))]);
    for call in [r#"{"filePath":"docs/a.md"}"#, r#"{"filepath":"docs/a.md"}"#] {
        assert_eq!(facets(&take(&tool, &tree, call)), ["read docs/a.md"]);
    }
    for refused in [r#"{"FilePath":"docs/a.md"}"#, r#"{"filePath":"docs/a.md","filepath":"secrets/key.pem"}"#] {
        extract(&tool, &tree.space(|_| {}), Some(&json(refused))).unwrap_err();
    }
}

#[test]
fn a_mark_is_not_passed_by_in_another_case() {
    let shell = entry(&[("/command", Argument::Command)]);
    let edits = entry(&[("/edits/*/path", path(Access::Write))]);
    let argv = Tool { argv: Some(vec!["kubectl".into(), "/args/*".into()]), ..Tool::default() };
    let tree_tool =
        Tool { recursive_if: Some("/recursive".parse().unwrap()), ..entry(&[("/path", path(Access::Read))]) };
    for (tool, arguments, pointer) in [
        (&shell, r#"{"Command":"rm -rf docs"}"#, "/Command"),
        (&shell, r#"{"comm\u0061nd":"ls","\uff43ommand":"rm"}"#, "/\u{ff43}ommand"),
        (&edits, r#"{"edits":[{"path":"docs/a.md"},{"Path":"secrets/key.pem"}]}"#, "/edits/1/Path"),
        (&edits, r#"{"EDITS":[{"path":"secrets/key.pem"}]}"#, "/EDITS"),
        (&argv, r#"{"Args":["delete"]}"#, "/Args"),
        (&tree_tool, r#"{"path":".","Recursive":true}"#, "/Recursive"),
    ] {
        assert_eq!(refused(tool, arguments).pointer, pointer, "{arguments}");
    }
    let guessed = Tool { heuristic: true, ..shell };
    assert_eq!(floors(&take(&guessed, &Tree::usual(), r#"{"Command":"rm -rf docs"}"#)), [FloorWhy::Heuristic; 3]);
}

#[test]
fn lists_and_nested_arguments_are_facets_each() {
    let tree = Tree::usual();
    let many =
        take(&builtin("filesystem", "read_multiple_files"), &tree, r#"{"paths":["docs/a.md","secrets/key.pem"]}"#);
    assert_eq!(facets(&many), ["read docs/a.md", "read secrets/key.pem"]);
    let edits = entry(&[("/edits/*/file_path", path(Access::Write)), ("/edits/*/new", Argument::Text)]);
    let edited = take(
        &edits,
        &tree,
        r#"{"edits":[{"file_path":"docs/a.md","new":"x"},{"file_path":"secrets/key.pem","new":"x"}]}"#,
    );
    assert_eq!(facets(&edited), ["write docs/a.md", "write secrets/key.pem"]);
}

#[test]
fn both_ends_of_a_move_are_paths() {
    let tree = Tree::usual();
    tree.link("docs/l", "../secrets");
    let moved = take(&builtin("filesystem", "move_file"), &tree, r#"{"source":"docs/l","destination":"docs/k.md"}"#);
    assert_eq!(facets(&moved), ["delete docs/l", "write docs/k.md"]);
    let FacetKind::Path(source) = &moved.facets[0].kind else { panic!() };
    assert_eq!(source.physical.iter().map(below).collect::<Vec<_>>(), ["docs/l", "secrets"]);
    let delete = entry(&[("/path", path(Access::Delete))]);
    let FacetKind::Path(deleted) = &take(&delete, &tree, r#"{"path":"docs/l"}"#).facets[0].kind.clone() else {
        panic!()
    };
    assert_eq!(deleted.physical.len(), 2, "a delete is judged both ways by itself");
}

#[test]
fn a_path_that_is_no_string_is_malformed() {
    let read = builtin("filesystem", "read_file");
    for arguments in [
        r#"{"path":{"toString":"secrets/key.pem"}}"#,
        r#"{"path":true}"#,
        r#"{"path":7}"#,
        r#"{"path":null}"#,
        r#"{"path":["docs/a.md"]}"#,
        r#"{"path":""}"#,
        r#"{"path":"a\u0000b"}"#,
        r#"{"path":"\tsecrets/key.pem"}"#,
        r#"{"path":"file://host.example/x"}"#,
    ] {
        assert_eq!(refused(&read, arguments).pointer, "/path", "{arguments}");
    }
    let many = builtin("filesystem", "read_multiple_files");
    assert_eq!(refused(&many, r#"{"paths":"[\"secrets/key.pem\"]"}"#).pointer, "/paths", "some servers decode it");
    assert_eq!(refused(&many, r#"{"paths":["a",["b"]]}"#).pointer, "/paths/1");
}

#[test]
fn an_argument_that_may_be_text_or_a_list_is_neither_refused_nor_missed() {
    let tree = Tree::usual();
    let tool = builtin("desktop-commander", "write_pdf");
    let whole = take(&tool, &tree, r##"{"path":"docs/x.pdf","content":"# Title"}"##);
    assert_eq!(facets(&whole), ["read docs/x.pdf", "write docs/x.pdf", "command # Title"]);
    let merged =
        take(&tool, &tree, r#"{"path":"docs/x.pdf","content":[{"type":"insert","sourcePdfPath":"secrets/s.pdf"}]}"#);
    assert!(facets(&merged).contains(&"read secrets/s.pdf".to_owned()), "{:?}", facets(&merged));
}

#[test]
fn a_recursive_tool_without_a_path_takes_the_root() {
    let tree = Tree::usual();
    assert_eq!(facets(&take(&builtin("filesystem", "directory_tree"), &tree, "{}")), ["read . (recursive)"]);
    let none = extract(&builtin("filesystem", "directory_tree"), &tree.space(|_| {}), None).unwrap();
    assert_eq!(facets(&none), ["read . (recursive)"]);
    assert_eq!(facets(&take(&builtin("kubernetes", "kubectl_apply"), &tree, r#"{"manifest":"x"}"#)), ["bare"]);
    assert_eq!(facets(&take(&builtin("git", "git_add"), &tree, r#"{"repo_path":"$ROOT","files":[]}"#)), ["write ."]);
    let list = builtin("workspace", "list_files");
    assert_eq!(facets(&take(&list, &tree, "{}")), ["read ."]);
    assert_eq!(facets(&take(&list, &tree, r#"{"recursive":false}"#)), ["read ."]);
    for on in [r#"{"recursive":true}"#, r#"{"recursive":"false"}"#, r#"{"recursive":0}"#] {
        assert_eq!(facets(&take(&list, &tree, on)), ["read . (recursive)"], "{on}");
    }
}

#[test]
fn the_flag_counts_for_tools_that_are_known_to_obey_it_only() {
    let tree = Tree::usual();
    let touched = take(&builtin("filesystem", "directory_tree"), &tree, r#"{"path":".","recursive":false}"#);
    assert_eq!(facets(&touched), ["read . (recursive)"]);
}

#[test]
fn relative_paths_start_where_the_call_says() {
    let tree = Tree::usual();
    let tool = entry(&[("/path", path(Access::Read)), ("/cwd", Argument::Cwd)]);
    assert_eq!(
        facets(&take(&tool, &tree, r#"{"path":"key.pem","cwd":"secrets"}"#)),
        ["read secrets", "read secrets/key.pem"]
    );
    let added =
        take(&builtin("git", "git_add"), &tree, r#"{"repo_path":"$ROOT/docs","files":["a.md","../../.kube/config"]}"#);
    let facets = facets(&added);
    assert_eq!(&facets[..2], ["write docs", "write docs/a.md (recursive)"]);
    assert!(facets[2].starts_with("write /") && facets[2].ends_with("/.kube/config (recursive)"));
}

#[test]
fn a_tool_may_start_where_another_argument_says() {
    let based = Argument::Path {
        access: Some(Access::Read),
        recursive: false,
        missing: None,
        base: Some("/repo".parse().unwrap()),
        keep_last: false,
    };
    let tool = entry(&[("/repo", path(Access::Read)), ("/file", based)]);
    let touched = take(&tool, &Tree::usual(), r#"{"repo":"secrets","file":"key.pem"}"#);
    assert_eq!(facets(&touched), ["read secrets", "read secrets/key.pem"]);
}

#[test]
fn what_git_adds_are_patterns() {
    let tree = Tree::usual();
    for (file, place) in [("s*/key.pem", "."), (":(icase)SECRETS/key.pem", "."), ("src/*", "src")] {
        let arguments = format!(r#"{{"repo_path":"$ROOT","files":["{file}"]}}"#);
        let added = take(&builtin("git", "git_add"), &tree, &arguments);
        assert_eq!(facets(&added), ["write .".to_owned(), format!("write {place} (recursive)")], "{file}");
    }
}

#[test]
fn a_working_directory_that_is_not_in_the_catalogue_is_tried_all_the_same() {
    let tree = Tree::usual();
    let touched = take(&builtin("filesystem", "read_file"), &tree, r#"{"path":"key.pem","cwd":"secrets"}"#);
    assert!(strays_to(&touched, "secrets"));
    assert!(floors(&touched).contains(&FloorWhy::Heuristic));
}

#[test]
fn globs_are_judged_by_their_fixed_parts() {
    let tree = Tree::usual();
    let glob = entry(&[("/pattern", Argument::Glob)]);
    let found = |pattern: &str| facets(&take(&glob, &tree, &format!(r#"{{"pattern":"{pattern}"}}"#)));
    assert_eq!(found("secrets/**"), ["read secrets (recursive)"]);
    assert_eq!(found("**/*.pem"), ["read . (recursive)"]);
    assert_eq!(found("{docs,secrets}/*"), ["read docs (recursive)", "read secrets (recursive)"]);
    assert_eq!(found("$ROOT/secrets/*"), ["read secrets (recursive)"]);
    let search = builtin("filesystem", "search_files");
    let below = take(&search, &tree, r#"{"path":"docs","pattern":"../secrets/*","excludePatterns":["secrets"]}"#);
    assert_eq!(facets(&below), ["read docs (recursive)", "read secrets (recursive)"]);
    let plain = take(&search, &tree, r#"{"path":"docs","pattern":"*.md"}"#);
    assert_eq!(facets(&plain), ["read docs (recursive)"], "nothing new");
    let climbing = take(&search, &tree, r#"{"path":"docs","pattern":"*/../../secrets/*"}"#);
    assert!(strays_to(&climbing, "secrets/*") && floors(&climbing).contains(&FloorWhy::Spelling));
    for facet in &below.facets[1..] {
        assert!(
            matches!(&facet.kind, FacetKind::Path(path) if path.canonical.is_none()),
            "a glob goes on as it was sent"
        );
    }
    assert_eq!(refused(&glob, r#"{"pattern":7}"#).pointer, "/pattern");
}

#[test]
fn unknown_arguments_are_tried_as_paths() {
    let tree = Tree::usual();
    let read = builtin("filesystem", "read_file");
    for arguments in [
        r#"{"file_path":"secrets/key.pem"}"#,
        r#"{"filename":"secrets/key.pem"}"#,
        r#"{"uri":"secrets/key.pem"}"#,
        r#"{"path":"docs/a.md","opts":{"include":["../secrets/key.pem"]}}"#,
        r#"{"file_path":"docs/a.md","filePath":"secrets/key.pem"}"#,
        r#"{"path":"docs/a.md","pa\u0442h":"secrets/key.pem"}"#,
        r#"{"__proto__":{"path":"secrets/key.pem"}}"#,
        r#"{"path":"docs/a.md","constructor":{"prototype":{"path":"secrets/key.pem"}}}"#,
        r#"{"path":"docs/a.md","args":["--file=../secrets/key.pem"]}"#,
        r#"{"path":"docs/a.md","x":"file://$ROOT/secrets/key.pem"}"#,
        r#"{"path":"docs/a.md","x":"$ROOT/secrets/key.pem"}"#,
        r#"{"path":"docs/a.md","x":{"secrets/key.pem":1}}"#,
    ] {
        assert!(strays_to(&take(&read, &tree, arguments), "secrets/key.pem"), "{arguments}");
    }
}

#[test]
fn an_alias_of_a_path_is_a_facet_that_asks() {
    let tree = Tree::usual();
    let touched = take(&builtin("filesystem", "read_file"), &tree, r#"{"file_path":"/etc/passwd"}"#);
    assert_eq!(facets(&touched), ["unknown /etc/passwd"]);
    assert_eq!(floors(&touched), [FloorWhy::Heuristic]);
    let guessed = take(&guess_tool(), &tree, r#"{"source":"two\nlines","count":2}"#);
    assert_eq!((facets(&guessed), floors(&guessed)), (vec!["bare".to_owned()], vec![FloorWhy::Heuristic]));
    let page = take(&guess_tool(), &tree, r#"{"uri":"https://x.example/a"}"#);
    assert_eq!(facets(&page), ["url https://x.example/a at x.example"]);
    assert_eq!(floors(&page), [FloorWhy::Heuristic]);
}

#[test]
fn a_guessed_entry_adds_facets_and_refuses_nothing() {
    let tree = Tree::usual();
    let schema = serde_json::json!({"properties": {
        "path": {"type": "string"}, "command": {"type": "string"}, "url": {"type": "string"},
    }});
    let tool = Catalogue::default().tool("unknown", Some(&schema));
    let touched = take(&tool, &tree, r#"{"path":"docs/a.md","command":"ls","url":"http://h.example/"}"#);
    let mut found = facets(&touched);
    found.sort();
    assert_eq!(found, ["command ls", "read .", "unknown docs/a.md", "url http://h.example/ at h.example"]);
    assert!(touched.facets.iter().all(|facet| facet.floors.iter().any(|floor| floor.why == FloorWhy::Heuristic)));
    assert_eq!(facets(&take(&tool, &tree, r#"{"path":7,"command":{},"url":[]}"#)), ["bare"]);
    assert!(strays_to(&take(&tool, &tree, r#"{"path":"secrets"}"#), "secrets"));
}

#[test]
fn text_names_nothing() {
    let tree = Tree::usual();
    let arguments = r#"{"path":"docs/howto.md","content":"- cat secrets/key.pem; rm -rf /"}"#;
    let touched = take(&builtin("filesystem", "write_file"), &tree, arguments);
    assert_eq!(facets(&touched), ["write docs/howto.md"]);
    assert!(touched.strays.is_empty() && floors(&touched).is_empty());
    let odd =
        take(&builtin("filesystem", "write_file"), &tree, r#"{"path":"docs/a","content":{"x":"secrets/key.pem"}}"#);
    assert!(strays_to(&odd, "secrets/key.pem"), "text is a string, not what is in an object");
}

#[test]
fn an_unknown_option_asks() {
    let tree = Tree::usual();
    let diff = take(&builtin("git", "git_diff"), &tree, r#"{"repo_path":"$ROOT","target":"--output=secrets/key.pem"}"#);
    assert!(strays_to(&diff, "secrets/key.pem"));
    assert_eq!(floors(&diff), [FloorWhy::OptionLike]);
    let show = take(&builtin("git", "git_show"), &tree, r#"{"repo_path":"$ROOT","revision":"HEAD:secrets/key.pem"}"#);
    assert!(strays_to(&show, "secrets/key.pem"));
    let named = take(&builtin("filesystem", "read_file"), &tree, r#"{"path":"--file=secrets/key.pem"}"#);
    assert!(strays_to(&named, "secrets/key.pem") && floors(&named).contains(&FloorWhy::OptionLike));
}

#[test]
fn commands_are_taken_apart() {
    let tree = Tree::usual();
    let text = entry(&[("/command", Argument::Command), ("/cwd", Argument::Cwd), ("/env", Argument::Env)]);
    let run = take(&text, &tree, r#"{"command":"cat howto.md | sort > ../secrets/x","cwd":"docs"}"#);
    let expected = ["command cat howto.md", "read docs", "read docs/howto.md", "command sort", "write secrets/x"];
    assert_eq!(facets(&run), expected);
    assert!(floors(&run).is_empty(), "{:?}", floors(&run));
    let set = take(&text, &tree, r#"{"command":"git status","env":{"PAGER":"sh -c x"}}"#);
    assert_eq!((facets(&set), floors(&set)), (vec!["command git status".to_owned()], vec![FloorWhy::Shell]));
    assert!(floors(&take(&text, &tree, r#"{"command":"git status","env":{"LANG":"C"}}"#)).is_empty());
    for arguments in [
        r#"{"command":7}"#,
        r#"{"command":{"a":"ls"}}"#,
        r#"{"command":["ls",1]}"#,
        r#"{"command":["ls"]}"#,
        r#"{"command":null}"#,
    ] {
        assert_eq!(refused(&text, arguments).pointer, "/command", "{arguments}");
    }
    assert_eq!(refused(&text, r#"{"command":"ls\u0000"}"#).pointer, "/command");
    assert!(floors(&take(&text, &tree, r#"{"command":"ls docs \u202e"}"#)).contains(&FloorWhy::Invisible));
}

/// A text as a whole lies in no folder that it names: a deny of deletes there has nothing to say of a read.
#[test]
fn a_shell_text_is_no_path_below_what_it_names() {
    let tree = Tree::usual();
    let text = entry(&[("/command", Argument::Command)]);
    let run = take(&text, &tree, r#"{"command":"cat docs/howto.md"}"#);
    assert_eq!(facets(&run), ["command cat docs/howto.md", "read docs/howto.md"]);
    let below_docs = |stray: &Stray| stray.locations.iter().any(|at| below(at).starts_with("docs/"));
    assert!(!run.strays.iter().any(below_docs), "{:?}", run.strays);
    assert!(strays_to(&take(&text, &tree, r#"{"command":"secrets/key.pem"}"#), "secrets/key.pem"));
}

#[test]
fn command_lines_that_no_shell_reads_are_words() {
    let tree = Tree::usual();
    let shell = builtin("shell", "shell_execute");
    let run = take(&shell, &tree, r#"{"command":["cat","secrets/key.pem"],"directory":"docs","stdin":"-x"}"#);
    assert_eq!(facets(&run), ["command cat secrets/key.pem", "read docs", "read docs/secrets/key.pem"]);
    assert!(floors(&run).is_empty(), "{:?}", floors(&run));
    for operator in
        [r#"["cat","a","|","sh"]"#, r#"["cat","a|","sh"]"#, r#"["ls",">","x"]"#, r#"["ls",""]"#, r#"["ls"," -l"]"#]
    {
        let run = take(&shell, &tree, &format!(r#"{{"command":{operator},"directory":"docs"}}"#));
        assert!(floors(&run).contains(&FloorWhy::Shell), "{operator}");
    }
    let through = take(&shell, &tree, r#"{"command":["bash","-c","cat a.md; rm b"],"directory":"docs"}"#);
    assert!(facets(&through).contains(&"command rm b".to_owned()), "{:?}", facets(&through));
    let exec = Tool { argv: Some(vec!["/program".into(), "/args/*".into()]), ..Tool::default() };
    let cat = take(&exec, &tree, r#"{"program":"cat","args":["docs/x; rm -rf y","a;b"]}"#);
    assert_eq!(facets(&cat), ["command cat 'docs/x; rm -rf y' 'a;b'", "read docs/x; rm -rf y", "read a;b"]);
    assert!(floors(&cat).is_empty());
    let through = take(&exec, &tree, r#"{"program":"sh","args":["-c","cat docs/a; pwd"]}"#);
    assert!(facets(&through).contains(&"command pwd".to_owned()), "{:?}", facets(&through));
    for odd in [r#"{"program":"cat","args":"docs/a"}"#, r#"{"program":"cat","args":{"f":"docs/a"}}"#] {
        assert_eq!(floors(&take(&exec, &tree, odd)), [FloorWhy::Shell], "{odd}");
    }
    let kubectl = take(
        &builtin("kubernetes", "kubectl_generic"),
        &tree,
        r#"{"command":"get","flags":{"f":"/etc/x"},"args":["pods"]}"#,
    );
    assert_eq!(facets(&kubectl), ["command kubectl get /etc/x pods"]);
    assert!(floors(&kubectl).contains(&FloorWhy::Shell), "the names of flags are lost");
}

#[test]
fn a_list_is_a_command_where_the_schema_declares_one() {
    let tools = [("run".to_owned(), entry(&[("/command", Argument::Command)]))].into_iter().collect();
    let catalogue = Catalogue { tools };
    let schema = |kind: &str| serde_json::json!({"properties": {"command": {"type": kind}}});
    let call = r#"{"command":["cat","docs/a.md"]}"#;
    let declared = catalogue.tool("run", Some(&schema("array")));
    assert_eq!(facets(&take(&declared, &Tree::usual(), call)), ["command cat docs/a.md", "read docs/a.md"]);
    for undeclared in [catalogue.tool("run", Some(&schema("string"))), catalogue.tool("run", None)] {
        assert_eq!(refused(&undeclared, call).pointer, "/command");
    }
}

#[test]
fn code_in_other_languages_is_not_taken_for_a_shell_text() {
    let tree = Tree::usual();
    let typed = take(&builtin("desktop-commander", "interact_with_process"), &tree, r#"{"input":"pwd","pid":1}"#);
    assert_eq!((facets(&typed), floors(&typed)), (vec!["command pwd".to_owned()], vec![FloorWhy::Shell]));
}

#[test]
fn urls_are_facets_and_file_urls_are_paths() {
    let tree = Tree::usual();
    let fetch = builtin("fetch", "fetch");
    assert_eq!(
        facets(&take(&fetch, &tree, r#"{"url":"https://x.example/a"}"#)),
        ["url https://x.example/a at x.example"]
    );
    assert_eq!(facets(&take(&fetch, &tree, r#"{"url":" FILE://$ROOT/secrets/key.pem"}"#)), ["read secrets/key.pem"]);
    for nested in ["view-source:file://$ROOT/secrets/key.pem", "jar:file://$ROOT/secrets/key.pem!/k"] {
        let touched = take(&fetch, &tree, &format!(r#"{{"url":"{nested}"}}"#));
        assert_eq!(floors(&touched), [FloorWhy::OddUrl], "{nested}");
        let led = touched.strays.iter().flat_map(|s| &s.locations).any(|at| below(at).starts_with("secrets/key.pem"));
        assert!(led, "{nested}");
    }
    assert!(strays_to(&take(&fetch, &tree, r#"{"url":"secrets/key.pem"}"#), "secrets/key.pem"));
    assert_eq!(refused(&fetch, r#"{"url":"file://host/x"}"#).pointer, "/url");
    assert_eq!(refused(&fetch, r#"{"url":"fi\tle:///x"}"#).pointer, "/url");
}

#[test]
fn a_url_in_a_path_argument_is_a_url_and_a_path_where_it_could_be_one() {
    let tree = Tree::usual();
    let read = builtin("filesystem", "read_file");
    assert_eq!(
        facets(&take(&read, &tree, r#"{"path":"https://x.example/a"}"#)),
        ["url https://x.example/a at x.example"]
    );
    let climbing = take(&read, &tree, r#"{"path":"xy://../secrets/key.pem"}"#);
    assert!(facets(&climbing).contains(&"read secrets/key.pem".to_owned()), "{:?}", facets(&climbing));
    let named = take(&read, &tree, r#"{"path":"TODO: this.md"}"#);
    assert!(facets(&named).contains(&"read TODO: this.md".to_owned()));
    assert_eq!(facets(&take(&read, &tree, r#"{"path":"file://$ROOT/docs/my%20notes.md"}"#)), ["read docs/my notes.md"]);
}

#[test]
fn without_anything_there_is_a_bare_facet() {
    let tree = Tree::usual();
    assert_eq!(facets(&extract(&guess_tool(), &tree.space(|_| {}), None).unwrap()), ["bare"]);
    assert_eq!(facets(&take(&guess_tool(), &tree, r#"{"city":"Bern"}"#)), ["bare"]);
}

#[test]
fn resources_are_paths_urls_or_methods() {
    let tree = Tree::usual();
    let space = tree.space(|_| {});
    let read = |uri: &str| extract_resource("resources/read", &space, &tree.fill(uri));
    assert_eq!(facets(&read("file://$ROOT/docs/a.md").unwrap()), ["read docs/a.md"]);
    assert_eq!(facets(&read("FILE:$ROOT/secrets/key.pem#frag").unwrap()), ["read secrets/key.pem"]);
    assert_eq!(facets(&read("memo://insights/x").unwrap()), ["url memo://insights/x at insights"]);
    for given in ["urn:x:y", "urn:isbn:1", "foo:x"] {
        let named = read(given).unwrap();
        assert_eq!((facets(&named), floors(&named)), (vec!["method resources/read".to_owned()], vec![]), "{given}");
    }
    let plain = read("secrets/key.pem").unwrap();
    assert_eq!(facets(&plain), ["method resources/read"]);
    assert!(strays_to(&plain, "secrets/key.pem"));
    assert_eq!(floors(&plain), [FloorWhy::OddUrl], "no whole URL");
    assert_eq!(floors(&read("note:///1").unwrap()), []);
    for blank in
        [" file://$ROOT/secrets/key.pem", "\u{a0}file://$ROOT/secrets/key.pem", "file ://$ROOT/secrets/key.pem"]
    {
        let odd = read(blank).unwrap();
        assert_eq!(facets(&odd), ["read secrets/key.pem"], "{blank:?}");
        assert!(floors(&odd).contains(&FloorWhy::Spelling), "{blank:?}");
    }
    for uri in
        ["file://documents/..%2F..%2Fsecrets%2Fkey.pem", "file://host.example/x", "file:///a?x=/b", "file:///%zz"]
    {
        assert_eq!(read(uri).unwrap_err().pointer, "/uri", "{uri}");
    }
}

#[test]
fn a_blank_before_a_file_uri_changes_nothing_but_the_floor() {
    let tree = Tree::usual();
    for (tool, more, access) in [("write_file", r#","content":"x""#, "write"), ("read_file", "", "read")] {
        for uri in [" file://$ROOT/docs/a.md", "\u{feff}file://$ROOT/docs/a.md"] {
            let arguments = tree.fill(&format!(r#"{{"path":"{uri}"{more}}}"#));
            let touched = take(&builtin("filesystem", tool), &tree, &arguments);
            assert_eq!(facets(&touched), [format!("{access} docs/a.md")], "{uri:?}");
            assert!(floors(&touched).contains(&FloorWhy::Spelling), "{uri:?}");
        }
    }
}

#[test]
fn names_that_are_no_files_carry_no_floor() {
    let tree = Tree::usual();
    let space = tree.space(|config| config.filesystem = FileSystem::None);
    let arguments = json(r#"{"owner":"o","repo":"secrets","path":"docs/a.md","branch":"main"}"#);
    let touched = extract(&builtin("github", "get_file_contents"), &space, Some(&arguments)).unwrap();
    assert_eq!(
        (facets(&touched), floors(&touched).len(), touched.strays.len()),
        (vec!["read docs/a.md".to_owned()], 0, 0)
    );
}

#[test]
fn too_many_strings_ask() {
    let tree = Tree::usual();
    let many = vec!["\"a/b\""; 5_000].join(",");
    let touched = take(&builtin("filesystem", "read_file"), &tree, &format!(r#"{{"path":"docs/a.md","x":[{many}]}}"#));
    assert_eq!(floors(&touched), [FloorWhy::Heuristic]);
}

#[test]
fn what_an_entry_leaves_out_is_looked_at_as_without_an_entry() {
    let tree = Tree::usual();
    let tell = entry(&[("/to", Argument::Address), ("/text", Argument::Text)]);
    let said = |tool: &Tool, more: &str| {
        let touched = take(tool, &tree, &format!(r#"{{"to":"ana@a.example","text":"see https://b.example",{more}}}"#));
        (facets(&touched)[1..].to_vec(), floors(&touched))
    };
    let guess = vec![FloorWhy::Heuristic];
    for (more, found, floors) in [
        (r#""webhook":"http://169.254.169.254/""#, "url http://169.254.169.254/ at 169.254.169.254", guess.clone()),
        (r#""url":"https://evil.example""#, "url https://evil.example at evil.example", guess.clone()),
        (r#""attachment":"/etc/passwd""#, "unknown /etc/passwd", guess.clone()),
        (r#""command":"rm -rf x""#, "command rm -rf x", vec![FloorWhy::Heuristic; 2]),
        (r#""cc":"eve@evil.example""#, "address eve@evil.example at evil.example", vec![]),
        (r#""bcc":["Eve <eve@evil.example>"]"#, "address eve@evil.example at evil.example", vec![]),
        (r#""note":" https://evil.example/x ""#, "url  https://evil.example/x  at evil.example", vec![]),
        (
            r#""note":"--to=https://evil.example/x""#,
            "url --to=https://evil.example/x at evil.example",
            vec![FloorWhy::OptionLike],
        ),
    ] {
        let (facets, of) = said(&tell, more);
        assert_eq!((facets[0].as_str(), &of), (found, &floors), "{more}");
    }
    for more in
        [r#""subject":"hello @ana, see https://b.example""#, r#""note":"std::fmt""#, r#""at":"12:30""#, r#""n":"a: b""#]
    {
        assert_eq!(said(&tell, more), (vec![], vec![]), "{more}");
    }
    let nothing = take(&guess_tool(), &tree, r#"{"cc":"eve@evil.example","command":"ls"}"#);
    assert_eq!(facets(&nothing), ["address eve@evil.example at evil.example", "command ls", "read ."]);
}
