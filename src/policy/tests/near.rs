//! What stands between a call and an allow.

use super::{bare, call, json, needed, reads, rules, writes};
use crate::clock::Timestamp;
use crate::policy::Subject;
use crate::record::Source;

#[test]
fn what_the_nearest_allow_lacks_is_named() {
    let policy = rules(&[
        "{ name: read-docs, verdict: allow, tool: '@fs_read', path: [docs/, src/] }",
        "{ name: jobs, verdict: allow, tool: mail, source: background }",
        "{ name: small, verdict: allow, tool: refund, args: { amount: { le: 100 } } }",
        "{ name: new-files, verdict: allow, access: write, path: out/, except: [ { path: out/old/ } ] }",
        "{ name: over, verdict: allow, tool: fetch, until: 2020-01-01 }",
    ]);
    let of = |subject: &Subject<'_>, facet| needed(&policy, subject, &[facet]).join("\n");
    let said = of(&call("t"), writes("/w/docs/a"));
    assert!(said.starts_with("write of /w/docs/a (`/path`): no allow of group `g` covers it; the allow `"), "{said}");
    assert!(
        said.ends_with(") covers read only") && said.contains(") covers out/ only; the allow `read-docs` ("),
        "{said}"
    );
    let said = of(&call("t"), reads("/w/lib/a"));
    assert!(said.ends_with(") covers docs/, src/ only"), "{said}");
    let said = of(&call("mail"), bare());
    assert!(said.ends_with(") is for `source` background only"), "{said}");
    assert!(of(&Subject { source: Some(Source::Background), ..call("mail") }, bare()).is_empty());
    let arguments = json(r#"{"amount":500}"#);
    let said = of(&Subject { arguments: Some(arguments.root()), ..call("refund") }, bare());
    assert!(said.ends_with(") needs its `args` on `/amount` to hold"), "{said}");
    let said = of(&call("t"), writes("/w/out/old/a"));
    assert!(said.contains("`new-files`") && said.ends_with(") has an exception for it"), "{said}");
    let said = of(&Subject { at: Some(Timestamp::from_millis(1_900_000_000_000)), ..call("fetch") }, bare());
    assert!(said.contains("`over`") && said.contains(") ended at 2020-01-02T00:00:00.000Z"), "{said}");
    let other = Subject { method: "x/y", tool: None, ..call("t") };
    let said = of(&other, bare());
    assert!(said.ends_with("covers it; an allow with `tool` would"), "{said}");
}
