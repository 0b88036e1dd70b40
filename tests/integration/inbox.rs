//! The inbox in a real browser: log in by the link, see what waits as it comes, decide, see how it ends.

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, reply, text};
use crate::harness::browser::Browser;
use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home};
use crate::harness::http::Http;

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: writes, verdict: ask, tool: '@fs_write', reason: Somebody should look at what is written. }
";

/// Markup, and text that reads the other way round.
const EVIL: &str =
    "<img src=x onerror=\"window.harmed = true\"> \u{202e}dlrow\u{202c} \u{200b}<script>window.harmed = true</script>";

/// The login link, once the gateway has printed it.
fn link(gateway: &Gateway) -> Option<String> {
    gateway.log().split_whitespace().find(|word| word.contains("/#login=")).map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn log_in_see_approve_and_reject() {
    let workspace = json!({ "work": { "workspace": true, "root": "$ROOT" } });
    let home = Home::new(POLICY, workspace).without("approvers");
    let gateway = home.serve();
    let link = eventually("the login link", || async { link(&gateway) }).await;
    let browser = Browser::start().await;
    browser.page.goto(&link).await.expect("the inbox");
    browser.see("#inbox[data-connection=live]").await;
    let address = browser.page.current_url().await.expect("an address");
    assert_eq!(address.fragment(), None, "the token stays in the address bar");
    browser.see("#waiting-empty").await;

    // Held while the page is open: it appears by itself.
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", json!({ "path": "new.md", "content": EVIL })).await;
    let card = browser.see("#waiting [data-approval-id][data-state=waiting]").await;
    let shown = card.text().await.expect("its text");
    assert!(shown.contains("new.md"), "{shown}");
    assert!(shown.contains("<img src=x onerror="), "{shown}");
    assert!(shown.contains("\\u{202e}") && shown.contains("\\u{200b}"), "{shown}");
    assert!(shown.contains("Somebody should look at what is written"), "{shown}");
    let unseen = browser.run("return document.body.textContent.match(/[\\u202e\\u202c\\u200b]/g)").await;
    assert_eq!(unseen, Value::Null, "raw control characters are in the page");
    let tags =
        browser.run("return document.querySelectorAll('#waiting img, #waiting script, #recent img').length").await;
    assert_eq!((tags, browser.run("return window.harmed ?? null").await), (json!(0), Value::Null));
    assert!(!home.root().join("new.md").exists());

    click(&browser, "#waiting [data-state=waiting] [data-action=approve]").await;
    let done = reply(answer, 1).await;
    assert_ne!(done["result"]["isError"], true, "{done}");
    assert_eq!(std::fs::read_to_string(home.root().join("new.md")).expect("written"), EVIL);
    browser.see("#recent [data-call-id][data-state=completed]").await;

    let answer = agent.begin(2, "write_file", json!({ "path": "other.md", "content": "x" })).await;
    let note = browser.see("#waiting [data-state=waiting] [data-field=note]").await;
    note.send_keys("not this file").await.expect("typed");
    click(&browser, "#waiting [data-state=waiting] [data-action=reject]").await;
    let refused = reply(answer, 2).await;
    assert_eq!(about(&refused)["reason"], "approver", "{refused}");
    assert!(text(&refused).contains("not this file"), "{refused}");
    browser.see("#recent [data-call-id][data-state=rejected]").await;
    assert!(!home.root().join("other.md").exists());

    // The link was good once; the cookie is the browser's own and no script's.
    let token = link.split_once("#login=").expect("a token").1;
    let body = json!({ "token": token }).to_string();
    let again = Http::new()
        .send(Method::POST, &format!("{}/api/v1/login", gateway.admin), &[("content-type", "application/json")], body)
        .await;
    assert_eq!(again.status, 401);
    assert_eq!(browser.run("return document.cookie").await, json!(""));
    browser.quit().await;
}

/// Clicks when the button has stood still for long enough to be aimed at.
async fn click(browser: &Browser, css: &str) {
    let button = browser.see(css).await;
    eventually("a button that can be clicked", || async { button.is_enabled().await.ok().filter(|enabled| *enabled) })
        .await;
    button.click().await.expect("clicked");
}
