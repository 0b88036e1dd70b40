//! Each refusal with its place, and what must be read.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use super::{Core, Fields, Kind, Node, Report, read};

/// `line:column: message` of everything found in a text.
fn found(text: impl AsRef<[u8]>) -> Vec<String> {
    let (report, _) = read("p.yaml", text.as_ref());
    lines(report)
}

fn lines(report: Report) -> Vec<String> {
    report.into_diagnostics().into_iter().map(|d| format!("{}:{}: {}", d.line, d.column, d.message)).collect()
}

fn tree(text: &str) -> Node {
    let (report, node) = read("p.yaml", text.as_bytes());
    assert!(!report.has_errors(), "{report:?}");
    node.unwrap()
}

#[test]
fn each_ambiguity_is_refused_with_its_place() {
    for (text, expected) in [
        ("a: 1\nb: 2\na: 3\n", &["3:1: `a` is given twice"][..]),
        ("a: 1\n\"a\": 3\n", &["2:1: `a` is given twice"]),
        ("x: {a: 1, b: 2, a: 1}\n", &["1:17: `a` is given twice"]),
        ("a: null\n", &["1:1: `a` has no value"]),
        ("a: ~\n", &["1:1: `a` has no value"]),
        ("a:\nb: 1\n", &["1:1: `a` has no value"]),
        ("a: [x, null]\n", &["1:8: there is no value here"]),
        ("a:\n  -\n", &["2:4: there is no value here"]),
        ("a: !!str 1\n", &["1:10: tags such as `!!str` are not read"]),
        ("a: !include b\n", &["1:13: tags such as `!include` are not read"]),
        ("!!map\na: 1\n", &["2:1: tags such as `!!map` are not read"]),
        ("a: &x 1\nb: *x\n", &["1:7: anchors are not read", "2:4: aliases are not read"]),
        ("a: *x\n", &["1:4: `*x` is an alias of nothing"]),
        ("a: {<<: {b: 1}}\n", &["1:5: merge keys are not read: parsers differ on them"]),
        ("? [a]\n: 1\n", &["1:3: a list or mapping cannot be the name of a field"]),
        (": 1\n", &["1:1: a field without a name"]),
        ("a: 1\n---\nb: 1\n", &["2:1: a second document begins here"]),
        ("", &["0:0: the file is empty"]),
        ("# only a remark\n", &["0:0: the file is empty"]),
        ("---\n", &["1:4: there is no value here"]),
        ("a: 1 # x\u{202e}y\n", &["1:9: U+202E stands here, which nobody can see"]),
        ("a: 1 # x\rb: 2\r\n", &["1:9: U+000D stands here, which nobody can see"]),
    ] {
        assert_eq!(found(text), expected, "{text:?}");
    }
}

#[test]
fn what_is_not_yaml_is_refused_where_it_breaks() {
    let texts = [
        "version: 1\ngroups:\n\tfs: {}\n",
        "version: [\n",
        "a: 'x\n",
        "a: {b: 1\nc: 2}\n",
        "a: b: c\n",
        "%YAML 1.1\n---\na: 1\n",
        "a: \"\\q\"\n",
        "a: 1\n b: 2\n",
    ];
    let said: Vec<String> = texts.iter().map(|text| format!("{text:?}: {}", found(text).join(" / "))).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    "version: 1\ngroups:\n\tfs: {}\n": 3:2: not YAML: tabs disallowed within this context (block indentation)
    "version: [\n": 1:10: not YAML: unclosed bracket '['
    "a: 'x\n": 2:1: not YAML: invalid indentation in multiline quoted scalar
    "a: {b: 1\nc: 2}\n": 2:1: not YAML: invalid indentation
    "a: b: c\n": 1:5: not YAML: mapping values are not allowed in this context
    "%YAML 1.1\n---\na: 1\n": 1:1: not YAML: YAML directives are disallowed
    "a: \"\\q\"\n": 1:4: not YAML: while parsing a quoted scalar, found unknown escape character
    "a: 1\n b: 2\n": 2:3: not YAML: mapping values are not allowed in this context
    "#);
}

#[test]
fn bytes_that_are_no_utf_8_are_refused() {
    assert_eq!(found(b"version: 1\ntool: 'caf\xe9'\n"), ["2:11: the file is not UTF-8 here"]);
    assert_eq!(found(b"\xff\xfev\0e\0"), ["0:0: the file begins with a UTF-16 byte-order mark"]);
    assert_eq!(found(vec![b'#'; (1 << 20) + 1]), ["0:0: the file is larger than 1024 KiB"]);
    assert_eq!(tree("\u{feff}a: 1\n"), tree("a: 1\n"), "a UTF-8 byte-order mark is no content");
}

#[test]
fn depth_and_laughs_are_bounded() {
    let deep = format!("a: {}{}\n", "[".repeat(200), "]".repeat(200));
    assert_eq!(found(&deep).len(), 1);
    let laughs = "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n";
    assert_eq!(found(laughs).len(), 6, "every anchor and alias is named, none is followed");
}

#[test]
fn all_errors_come_at_once() {
    let text = "a: 1\na: 2\nb: *x\nc: ~\nd: !t 1\n";
    assert_eq!(found(text).len(), 4);
    let (mut report, node) = read("p.yaml", text.as_bytes());
    let node = node.unwrap();
    let mut fields = Fields::new(&node, "the file", &mut report).unwrap();
    assert!(fields.required("b", &mut report).unwrap().text(&mut report).is_none());
    fields.optional("c").unwrap().text(&mut report);
    fields.optional("d").unwrap().integer(&mut report);
    fields.finish(&mut report);
    let found = lines(report);
    assert_eq!(found.len(), 5, "what is broken is reported once: {found:?}");
    assert_eq!(found[0], "1:1: unknown field `a` in the file");
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    for (text, core) in [
        ("no", Core::Text),
        ("on", Core::Text),
        ("Off", Core::Text),
        ("y", Core::Text),
        ("true", Core::Bool(true)),
        ("False", Core::Bool(false)),
        ("\"true\"", Core::Text),
        ("1", Core::Number),
        ("-1.5e3", Core::Number),
        ("0x1F", Core::Number),
        ("0o17", Core::Number),
        (".5", Core::Number),
        (".inf", Core::Number),
        ("1_000", Core::Text),
        ("12:30", Core::Text),
        ("2027-01-01", Core::Text),
        ("1.2.3", Core::Text),
        ("e5", Core::Text),
        (".", Core::Text),
        ("'1'", Core::Text),
    ] {
        let root = tree(&format!("a: {text}\n"));
        let Kind::Mapping(entries) = root.kind else { panic!("no mapping") };
        assert_eq!(entries[0].value.scalar().unwrap().core(), core, "{text}");
    }
}

/// Reads the value of `a` and answers what was read and said.
fn reading<T>(value: &str, read_as: impl Fn(&Node, &mut Report) -> Option<T>) -> Result<T, String> {
    let (mut report, root) = read("p.yaml", format!("a: {value}\n").as_bytes());
    let root = root.unwrap();
    let entries = root.mapping(&mut report).unwrap();
    let got = read_as(&entries[0].value, &mut report);
    got.ok_or_else(|| lines(report).join("; "))
}

#[test]
fn readings_take_their_type_and_no_other() {
    let text = |v| reading(v, |n, r| n.text(r).map(str::to_owned));
    assert_eq!(text("no").unwrap(), "no");
    assert_eq!(text("12").unwrap_err(), "1:4: expected a text, found the number `12`");
    assert_eq!(text("''").unwrap_err(), "1:4: the text is empty");
    assert_eq!(text("[a]").unwrap_err(), "1:4: expected a text, found a list");

    let integer = |v| reading(v, Node::integer);
    assert_eq!(integer("1").unwrap(), 1);
    for wrong in ["1.0", "01", "-1", "'1'", "0x1", "99999999999999999999", "true"] {
        assert!(integer(wrong).unwrap_err().starts_with("1:4: expected a whole number"), "{wrong}");
    }

    assert!(reading("true", Node::boolean).unwrap());
    assert_eq!(reading("yes", Node::boolean).unwrap_err(), "1:4: expected `true` or `false`, found a text");

    let duration = |v| reading(v, Node::duration);
    for (text, seconds) in [("50s", 50), ("15m", 900), ("8h", 28_800), ("2d", 172_800), ("1000ms", 1)] {
        assert_eq!(duration(text).unwrap(), Duration::from_secs(seconds));
    }
    for wrong in ["50", "0s", "s", "-5s", "5 s", "1.5h", "5y", "99999999999999999999d"] {
        assert!(duration(wrong).unwrap_err().starts_with("1:4: expected a time span"), "{wrong}");
    }

    assert_eq!(reading("4MiB", Node::bytes).unwrap(), 4 << 20);
    for wrong in ["4MB", "4", "0KiB", "20000000000GiB"] {
        assert!(reading(wrong, Node::bytes).is_err(), "{wrong}");
    }
    assert_eq!(reading("[a, b]", |n, r| n.texts(r).map(|t| t.len())).unwrap(), 2);
    assert_eq!(reading("a", |n, r| n.texts(r).map(|t| t.len())).unwrap(), 1);
    assert_eq!(reading("[]", |n, r| n.texts(r).map(|t| t.len())).unwrap_err(), "1:4: the list is empty");
    let verdict = |v| reading(v, |n, r| n.choice(&[("allow", 1), ("deny", 2)], r));
    assert_eq!(verdict("deny").unwrap(), 2);
    assert_eq!(verdict("on").unwrap_err(), "1:4: `on` is none of allow, deny");
}

#[test]
fn json_keeps_the_digits() {
    let json = |v| reading(v, Node::json);
    assert_eq!(
        json("{a: [9007199254740993, 1.50, x, 'y\"', true], \"b c\": {}}").unwrap(),
        r#"{"a":[9007199254740993,1.50,"x","y\"",true],"b c":{}}"#
    );
    for wrong in ["[.inf]", "0x1F", "+1"] {
        assert!(json(wrong).unwrap_err().contains("as JSON writes it"), "{wrong}");
    }
}

#[test]
fn a_finding_shows_the_line_and_a_way_out() {
    let (mut report, root) = read("policies/a.yaml", b"rules:\n  - tools: x\n    verdict: deny\n");
    let root = root.unwrap();
    let mut file = Fields::new(&root, "the file", &mut report).unwrap();
    let rules = file.required("rules", &mut report).unwrap().sequence(&mut report).unwrap();
    let mut rule = Fields::new(&rules[0], "a rule", &mut report).unwrap();
    rule.optional("tool");
    rule.optional("verdict");
    rule.required("name", &mut report);
    rule.finish(&mut report);
    file.finish(&mut report);
    let text: Vec<String> = report.into_diagnostics().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    policies/a.yaml:2:5: error: `name` is missing in a rule
      2 |   - tools: x
        |     ^
    policies/a.yaml:2:5: error: unknown field `tools` in a rule
      2 |   - tools: x
        |     ^
      help: did you mean `tool`?
    ");
}

#[test]
fn fields_of_a_later_version_are_named_as_such() {
    let (mut report, root) = read("p.yaml", b"quorum: 2\n");
    let root = root.unwrap();
    let mut fields = Fields::new(&root, "an approval", &mut report).unwrap();
    fields.later("quorum", &mut report);
    fields.finish(&mut report);
    assert_eq!(lines(report), ["1:1: `quorum` is not built yet"]);
}

proptest::proptest! {
    #[test]
    fn no_text_panics_and_no_error_is_silent(text in "[ab:\\- \\n\\t\\[\\]{}&*!|>'\"#%,?~<\u{feff}]{0,40}") {
        let (report, node) = read("p.yaml", text.as_bytes());
        proptest::prop_assert!(node.is_some() || report.has_errors());
    }
}

#[test]
fn words_of_other_languages_are_told_in_ours() {
    let said = |text: &str, take: fn(&Node, &mut Report)| {
        let (mut report, node) = super::read("p.yaml", text.as_bytes());
        take(&node.unwrap(), &mut report);
        report.into_diagnostics().into_iter().next().and_then(|found| found.help).unwrap_or_default()
    };
    for (text, help) in
        [("15 minutes", "write `15m`"), ("15 ms", "write `15ms`"), ("2 Days", "write `2d`"), ("5", "add the unit")]
    {
        assert_eq!(
            said(text, |node, report| {
                let _ = node.duration(report);
            }),
            help,
            "{text}"
        );
    }
    for (text, help) in [("4MB", "write `4MiB`"), ("64 kb", "write `64KiB`"), ("4 minutes", "")] {
        assert_eq!(
            said(text, |node, report| {
                let _ = node.bytes(report);
            }),
            help,
            "{text}"
        );
    }
    assert_eq!(
        said("yes", |node, report| {
            let _ = node.boolean(report);
        }),
        "write `true`"
    );
    let kinds = |node: &Node, report: &mut Report| {
        let _ = node.choice(&[("select", 1), ("ddl", 2)], report);
    };
    assert_eq!(said("SELECT", kinds), "did you mean `select`?");
    assert_eq!(said("drop", kinds), "`drop` is `ddl`");
}
