//! Whole files: what is read, and everything that is refused.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::{AllowSelf, Channel, Config, FileSystem, ForwardPaths, NewTools, Role, Transport};
use super::load_with;
use crate::catalog::{Argument, Pointer};
use crate::record::{Access, Depth, Severity, Source};

/// The smallest file that loads.
const SMALL: &str = "policy: { files: [a.yaml] }\nupstreams: {}\n";

fn environment(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/ana".into()),
        "TOKEN" => Some("tuna-salad-42".into()),
        _ => None,
    }
}

/// A folder with `work` in it and this `portcullis.yaml`.
fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    std::fs::write(folder.path().join("portcullis.yaml"), text).unwrap();
    folder
}

fn good(text: &str) -> (Config, PathBuf) {
    let folder = folder(text);
    let path = folder.path().to_owned();
    let found = load_with(&path.join("portcullis.yaml"), &environment);
    (found.unwrap_or_else(|found| panic!("{}", shown(&path, &found))), path)
}

/// Everything that is said about a file, with its folder's name taken out.
fn bad(text: &str) -> String {
    let folder = folder(text);
    let found = load_with(&folder.path().join("portcullis.yaml"), &environment).unwrap_err();
    shown(folder.path(), &found)
}

fn shown(folder: &Path, found: &[crate::diagnostic::Diagnostic]) -> String {
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    lines.join("\n").replace(&format!("{}/", folder.display()), "")
}

/// The same without snippets and help.
fn messages(text: &str) -> Vec<String> {
    let folder = folder(text);
    let found = load_with(&folder.path().join("portcullis.yaml"), &environment).unwrap_err();
    found.iter().map(|d| format!("{}:{}: {}", d.line, d.column, d.message)).collect()
}

#[test]
fn a_small_file_has_the_defaults() {
    let (config, folder) = good(SMALL);
    assert_eq!((config.mcp.address.to_string().as_str(), config.mcp.max_body), ("127.0.0.1:7070", 4 << 20));
    assert_eq!(config.admin.address.to_string(), "127.0.0.1:7071");
    assert_eq!(config.state_dir, Path::new("/home/ana/.local/state/portcullis"));
    assert_eq!(config.policy.files, [folder.join("a.yaml").to_str().unwrap()]);
    assert_eq!(config.file, Some(folder.join("portcullis.yaml")));
    assert_eq!(config.approvals.hold_for, Duration::from_secs(50));
    assert!(config.agents.is_empty() && config.approvers.is_empty());
}

#[test]
fn everything_the_contract_names_is_read() {
    let hash = "0123456789abcdef".repeat(4);
    let other = "f".repeat(64);
    let (config, folder) = good(&format!(
        r#"
listen:
  mcp:   {{ address: "[::1]:0", max_body: 64KiB }}
  admin: {{ address: 127.0.0.1:8071, public_url: https://gate.example }}
state_dir: ./state
store: sqlite
policy:
  files: [policies/*.yaml, /etc/portcullis/**/*.yaml]
  require: [secrets, default]
  disable: [runs-later]
upstreams:
  files:
    command: [npx, -y, "@modelcontextprotocol/server-filesystem", ./work]
    root: ./work
    cwd: .
    filesystem: shared
    os: linux
    case_insensitive: false
    path_map: {{ /data: ./work, /data/deep: /srv }}
    expands: [tilde, env]
    forward_paths: canonical
    hard_links: ignore
    catalogue:
      tools:
        move_file:
          category: filesystem
          /source: {{ path: [read, delete], keep: true }}
          /destination: {{ path: write, recursive: true, missing: ".", base: /source }}
          /files/*/na~1me: {{ path: unknown }}
          /note: text
        kubectl: {{ category: shell, argv: [kubectl, /command, /args/*], /args/*: text }}
    on_disconnect: keep
    new_tools: accept
    timeout: 2m
  far:
    url: https://mcp.example/v1
    headers: {{ Authorization: "Bearer ${{TOKEN}}", x-team: "a$b" }}
  near: {{ url: http://127.0.0.1:9000/mcp }}
  script: {{ command: [./bin/server] }}
agents:
  - {{ name: claude, group: default, owner: ana, tokens: [{{ sha256: {hash}, expires: 2027-01-01 }}], source: background, depth: sub }}
approvers:
  - {{ name: ana, roles: [approver, operator], groups: [default], teams: [finance], tokens: [{{ sha256: {other} }}] }}
approvals: {{ hold_for: 10s, expires: 1h, hold_grace: 3m, result_ttl: 1d, max_waiting: 5, allow_self: never }}
audit: {{ sync: always, arguments: none, stdout: true, rotate: 1MiB, keep: 7d }}
"#
    ));
    assert_eq!((config.mcp.address.to_string().as_str(), config.mcp.max_body), ("[::1]:0", 65_536));
    assert_eq!(config.public_url.as_deref(), Some("https://gate.example"));
    assert_eq!(config.state_dir, folder.join("state"));
    assert_eq!(config.policy.files, [folder.join("policies/*.yaml").to_str().unwrap(), "/etc/portcullis/**/*.yaml"]);
    assert_eq!((config.policy.require.len(), config.policy.disable.len()), (2, 1));

    let files = &config.upstreams["files"];
    assert!(matches!(&files.transport, Transport::Command(words) if words[0] == "npx" && words[3] == "./work"));
    assert_eq!((&files.root, &files.cwd), (&folder.join("work"), &folder));
    assert_eq!((files.new_tools, config.upstreams["near"].new_tools), (NewTools::Accept, NewTools::Ask));
    assert_eq!(files.path_map, [("/data/deep".into(), "/srv".into()), ("/data".into(), folder.join("work"))]);
    assert!(files.expands_env && files.expands_tilde && !files.hard_links_ask);
    assert_eq!(files.forward_paths, ForwardPaths::Canonical);
    assert_eq!(files.timeout, Duration::from_secs(120));
    let moved = &files.catalogue.tools["move_file"];
    let pointer = |keys: &[&str]| Pointer(keys.iter().map(|k| Box::from(*k)).collect());
    let path = |access, keep_last| Argument::Path { access, recursive: false, missing: None, base: None, keep_last };
    assert_eq!(moved.category.as_deref(), Some("filesystem"));
    assert_eq!(
        moved.arguments,
        [
            (pointer(&["source"]), path(Some(Access::Read), true)),
            (pointer(&["source"]), path(Some(Access::Delete), true)),
            (
                pointer(&["destination"]),
                Argument::Path {
                    access: Some(Access::Write),
                    recursive: true,
                    missing: Some(".".into()),
                    base: Some(pointer(&["source"])),
                    keep_last: false
                }
            ),
            (pointer(&["files", "*", "na/me"]), path(None, false)),
            (pointer(&["note"]), Argument::Text),
        ]
    );
    assert_eq!(files.catalogue.tools["kubectl"].argv.as_deref().unwrap(), ["kubectl", "/command", "/args/*"]);

    let far = &config.upstreams["far"];
    assert_eq!(far.filesystem, FileSystem::Remote, "another machine's files are not ours");
    let Transport::Url { headers, .. } = &far.transport else { panic!("no url") };
    assert_eq!((headers[0].0.as_str(), headers[0].1.expose()), ("authorization", "Bearer tuna-salad-42"));
    assert_eq!(headers[1].1.expose(), "a$b");
    assert_eq!(config.redaction().text("tuna-salad-42"), "[redacted]");
    assert_eq!(config.upstreams["near"].filesystem, FileSystem::Shared);
    assert!(
        matches!(&config.upstreams["script"].transport, Transport::Command(words) if *words[0] == *folder.join("bin/server"))
    );

    let agent = &config.agents[0];
    assert_eq!((agent.source, agent.depth, agent.owner.as_deref()), (Source::Background, Depth::Sub, Some("ana")));
    assert_eq!(agent.tokens[0].expires.unwrap().to_string(), "2027-01-01T00:00:00.000Z");
    assert_eq!(config.approvers[0].roles, [Role::Approver, Role::Operator]);
    assert_eq!((config.approvals.max_waiting, config.approvals.allow_self), (5, AllowSelf::Never));
    assert!(config.audit.sync_always && !config.audit.arguments && config.audit.stdout);
}

#[test]
fn all_errors_are_told_at_once_with_a_way_out() {
    insta::assert_snapshot!(bad(r#"
listen:
  mcp: { adress: 127.0.0.1:7070 }
  admin: { address: localhost:7071 }
store: postgres://db
policy:
  files: [~/policies/*.yaml, ../**x.yaml]
  disable: [secret]
upstreams:
  Files: { command: npx }
  portcullis: { url: ftp://x }
  none: {}
  both:
    url: http://u:p@h/mcp
    workspace: true
    headers: { host: x, authorization: "Bearer ${NOT_SET}" }
    timeout: 120
    dialect: postgres
    new_tools: hold
  files:
    command: [server]
    root: ./gone
    catalogue: { tools: { t: { categry: x, /p: path, /q: sql, r: text, /s~2: text, /u: { path: reed } } } }
agents:
  - { name: claude, tokens: [{ sha256: abc, expires: tomorrow }] }
approvers:
  - { name: ana, roles: [aprover] }
approvals: { hold_for: 50, max_waiting: 0, grant_ttl: 15 }
"#));
}

#[test]
fn a_token_belongs_to_one() {
    let hash = "a".repeat(64);
    let text = format!(
        "{SMALL}agents:\n  - {{ name: a, group: g, tokens: [{{ sha256: {hash} }}] }}\napprovers:\n  - {{ name: b, roles: [viewer], tokens: [{{ sha256: {hash} }}] }}\n"
    );
    assert_eq!(messages(&text), ["6:42: this token is also one of `a`"]);
}

#[test]
fn people_have_plain_names_once() {
    let text =
        format!("{SMALL}agents: [{{ name: a b, group: g }}, {{ name: a, group: g }}, {{ name: a, group: g }}]\n");
    assert_eq!(messages(&text), ["3:18: `a b` is no name", "3:66: `a` is named twice"]);
}

#[test]
fn no_message_holds_a_secret() {
    let text = format!(
        "{SMALL}\n{}",
        "  far:\n    url: https://h/\n    headers:\n      authorization: Bearer hunter2hunter2\n      authorization: \"x${TOKEN}\n"
    );
    let text = text.replace("upstreams: {}", "upstreams:");
    let said = bad(&text);
    assert!(said.contains("portcullis.yaml:"), "{said}");
    assert!(!said.contains("hunter2") && !said.contains("tuna"), "{said}");
}

#[test]
fn a_missing_file_says_what_to_do() {
    let found = load_with(Path::new("/nonexistent/portcullis.yaml"), &environment).unwrap_err();
    assert!(found[0].to_string().starts_with("/nonexistent/portcullis.yaml: error: cannot be read: "));
    assert!(found[0].help.as_deref().unwrap().contains("portcullis init"));
}

#[test]
fn one_address_cannot_serve_agents_and_approvers() {
    let text = format!("{SMALL}listen: {{ mcp: {{ address: 127.0.0.1:9 }}, admin: {{ address: 127.0.0.1:9 }} }}\n");
    assert_eq!(messages(&text), ["3:9: agents and approvers would meet at 127.0.0.1:9"]);
}

#[test]
fn a_wildcard_in_the_folders_name_is_no_wildcard() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("a[b]*");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("portcullis.yaml"), SMALL).unwrap();
    let config = load_with(&folder.join("portcullis.yaml"), &environment).unwrap();
    assert!(config.policy.files[0].ends_with(r"/a\[b\]\*/a.yaml"), "{:?}", config.policy.files);
}

#[test]
fn built_in_catalogues_are_named() {
    let text = "policy: { files: [a.yaml] }\nupstreams:\n  a: { command: [x], catalogue: filesystem }\n  w: { workspace: true, root: work }\n";
    let (config, folder) = good(text);
    assert!(config.upstreams["a"].catalogue.tools.contains_key("read_text_file"));
    let workspace = &config.upstreams["w"];
    assert!(workspace.catalogue.tools.contains_key("write_file"));
    assert_eq!((workspace.forward_paths, &workspace.root), (ForwardPaths::Canonical, &folder.join("work")));

    let wrong = text.replace("filesystem", "filesytem").replace("root: work", "catalogue: git, filesystem: none");
    assert_eq!(
        messages(&wrong),
        [
            "3:33: there is no built-in catalogue `filesytem`",
            "4:6: the workspace has no `root`",
            "4:36: the workspace brings its own catalogue",
            "4:53: the workspace works on this machine's files",
        ]
    );
}

#[test]
fn channels_are_read_with_their_secrets() {
    let (config, _) = good(&format!(
        "{SMALL}notify:
  - {{ name: ops, webhook: 'https://hooks.example/${{TOKEN}}', secret: '${{TOKEN}}-long-enough', severity: [high, critical] }}
  - {{ name: bot, token: '${{TOKEN}}', channel: C1, groups: [default] }}
  - {{ name: card, webhook: 'http://127.0.0.1:9/x', template: teams }}
  - {{ name: pager, template: pagerduty, routing_key: '${{TOKEN}}' }}
  - {{ name: post, smtp: 'smtps://u:${{TOKEN}}@mail.example:465', from: 'Gate <gate@example.com>', to: ops@example.com }}
  - {{ name: sink, smtp: 'smtp://127.0.0.1:25', from: gate@example.com, to: [a@example.com, b@example.com] }}
"
    ));
    let labels: Vec<String> = config.notify.iter().map(Channel::label).collect();
    assert_eq!(labels, ["webhook:ops", "slack:bot", "teams:card", "pagerduty:pager", "mail:post", "mail:sink"]);
    assert!(config.notify[0].wants(Severity::High, "any") && !config.notify[0].wants(Severity::Normal, "any"));
    assert!(config.notify[1].wants(Severity::Low, "default") && !config.notify[1].wants(Severity::Low, "other"));
    let printed = format!("{config:?}");
    assert!(!printed.contains("tuna-salad-42"), "{printed}");
    let text = "a tuna-salad-42-long-enough b tuna-salad-42 c https://hooks.example/tuna-salad-42";
    assert_eq!(config.redaction().text(text), "a [redacted] b [redacted] c [redacted]");
}

#[test]
fn channels_that_could_not_be_used_or_would_tell_others_are_refused() {
    for (channel, message) in [
        (
            "{ name: a, webhook: 'http://hooks.example/x', template: slack }",
            "this is no address that messages may be sent to",
        ),
        (
            "{ name: a, webhook: 'https://u:p@hooks.example/x', template: slack }",
            "the address holds a user name or a password",
        ),
        ("{ name: a, webhook: 'https://hooks.example/x' }", "`secret` is missing in a channel"),
        (
            "{ name: a, webhook: 'https://hooks.example/x', secret: short }",
            "the secret has less than 16 characters and could be guessed",
        ),
        (
            "{ name: a, webhook: 'https://hooks.example/x', template: teams, secret: 'long enough to be one' }",
            "`secret` goes with `template: generic` only",
        ),
        (
            "{ name: a, webhook: 'https://hooks.example/x', template: pigeon }",
            "`pigeon` is none of generic, slack, teams, pagerduty",
        ),
        ("{ name: a, template: pagerduty }", "`routing_key` is missing in a channel"),
        ("{ name: a, token: x }", "`channel` is missing in a channel"),
        ("{ name: a }", "a channel is reached in exactly one way"),
        (
            "{ name: a, token: x, channel: c, smtp: 'smtps://h', from: a@b.example, to: a@b.example }",
            "a channel is reached in exactly one way",
        ),
        (
            "{ name: a, smtp: 'smtp://mail.example:25', from: a@b.example, to: a@b.example }",
            "this is no mail server that may be used",
        ),
        (
            "{ name: a, smtp: 'smtp://mail.example:25?tls=opportunistic', from: a@b.example, to: a@b.example }",
            "this is no mail server that may be used",
        ),
        ("{ name: a, smtp: 'smtps://mail.example', from: nobody, to: a@b.example }", "`nobody` is no e-mail address"),
        ("{ name: a, smtp: 'smtps://mail.example', from: a@b.example }", "`to` is missing in a channel"),
        ("{ name: 'a b', webhook: 'https://hooks.example/x', template: slack }", "`a b` is no name"),
    ] {
        let found = messages(&format!("{SMALL}notify: [{channel}]\n"));
        assert!(found.len() == 1 && found[0].ends_with(message), "{channel}\n{found:?}");
    }
    let twice = "{ name: a, webhook: 'https://hooks.example/x', template: slack }";
    let found = messages(&format!("{SMALL}notify: [{twice}, {twice}]\n"));
    assert!(found[0].ends_with("the channel `a` is there twice"), "{found:?}");
}
