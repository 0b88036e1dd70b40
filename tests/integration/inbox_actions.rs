//! What an approver does in the inbox besides yes and no, in a real browser; every page looked over by axe-core.

use std::time::Duration;

use serde_json::{Value, json};
use thirtyfour::prelude::*;

use crate::harness::agent::{Agent, about, reply, text};
use crate::harness::browser::Browser;
use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home};
use crate::harness::peers;

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: writes, verdict: ask, tool: [write_file, edit_file], reason: Somebody should look at what is written. }
      - { name: may-ask, verdict: allow, upstream: portcullis, tool: ask_user_clarification }
      - { name: closed, verdict: deny, tool: write_file, path: closed/, reason: Closed for good. }
      - name: removals
        verdict: ask
        command: rm
        approval: { severity: high }
        reason: Nothing is removed without a look.
";

struct Inbox {
    home: Home,
    gateway: Gateway,
    browser: Browser,
}

impl Inbox {
    async fn open() -> Self {
        let workspace = json!({ "work": { "workspace": true, "root": "$ROOT" } });
        let home = Home::new(POLICY, workspace).without("approvers").with("clarifications", json!(true));
        // However slow the browser is, nobody is told to come back meanwhile.
        let home = home.with("approvals", json!({ "hold_for": "20m", "expires": "30m" }));
        for folder in ["docs", "closed"] {
            std::fs::create_dir_all(home.root().join(folder)).expect("a folder");
        }
        std::fs::write(home.root().join("docs/plan.md"), "# Plan\n\nShip on Friday.\n").expect("a file");
        let gateway = home.serve();
        let link = eventually("the login link", || async {
            gateway.log().split_whitespace().find(|word| word.contains("/#login=")).map(str::to_owned)
        })
        .await;
        let browser = Browser::start().await;
        browser.page.goto(&link).await.expect("the inbox");
        browser.see("#inbox[data-connection=live]").await;
        Self { home, gateway, browser }
    }

    async fn agent(&self) -> Agent {
        Agent::legacy(&self.gateway.url("work")).await
    }

    async fn click(&self, css: &str) {
        self.browser.click(By::Css(css)).await;
    }

    async fn write(&self, css: &str, what: &str) {
        let field = self.browser.see(css).await;
        field.clear().await.expect("cleared");
        field.send_keys(what).await.expect("typed");
    }

    async fn says(&self, css: &str, what: &str) {
        let text = async || Some(self.browser.page.find(By::Css(css)).await.ok()?.text().await.ok()?);
        for _ in 0..300 {
            if text().await.is_some_and(|text| text.contains(what)) {
                return;
            }
            // Between two looks.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let page = self.browser.page.find(By::Css("body")).await.expect("a page").text().await.unwrap_or_default();
        panic!("{css} does not say {what:?}: {:?}\n{page}", text().await);
    }

    /// What axe-core finds wrong in what is on the screen (WCAG 2.2 A and AA).
    async fn is_accessible(&self, state: &str) {
        let axe = std::fs::read_to_string(peers::folder().join("node_modules/axe-core/axe.min.js")).expect("axe-core");
        self.browser.page.execute(&axe, Vec::new()).await.expect("axe-core runs");
        let script = "const done = arguments[arguments.length - 1];
            axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })
                .then((found) => done(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 160)).join(' | ')}`)));";
        let found = self.browser.page.execute_async(script, Vec::new()).await.expect("its answer");
        assert_eq!(found.json(), &json!([]), "{state}");
    }

    async fn resize(&self, width: u32) {
        let metrics = json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        self.browser.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        eventually("the other width", || async {
            (self.browser.run("return innerWidth").await == json!(width)).then_some(())
        })
        .await;
        self.frame().await;
    }

    /// Everything that was to be done by the next frame on the screen is done.
    async fn frame(&self) {
        let script = "const done = arguments[arguments.length - 1];
            requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done())));";
        self.browser.page.execute_async(script, Vec::new()).await.expect("a frame");
    }

    /// Scrolls to the end of a card; everybody who watches for that has seen it then.
    async fn scroll_to_the_end(&self, card: &str) {
        let script = "const done = arguments[arguments.length - 1], end = document.querySelector(`${arguments[0]} [data-slot=end]`);
            end.scrollIntoView();
            new IntersectionObserver((seen, observer) => {
                if (!seen.at(-1).isIntersecting) return;
                observer.disconnect();
                setTimeout(() => done());
            }).observe(end);";
        self.browser.page.execute_async(script, vec![json!(card)]).await.expect("its end");
    }

    /// Nothing is wider than the page.
    async fn fits(&self, width: u32) {
        let beyond =
            self.browser.run("const all = document.documentElement; return all.scrollWidth - all.clientWidth").await;
        assert_eq!(beyond, json!(0), "at {width} px");
    }

    async fn page(&self, name: &str) {
        self.click(&format!("#nav a[href='#/{name}']")).await;
    }
}

fn write(path: &str, content: &str) -> Value {
    json!({ "path": path, "content": content })
}

const CARD: &str = "#waiting [data-approval-id][data-state=waiting]";

#[tokio::test(flavor = "multi_thread")]
async fn see_the_change_edit_it_and_remember_the_next() {
    let inbox = Inbox::open().await;
    let agent = inbox.agent().await;

    let answer = agent.begin(1, "write_file", write("docs/plan.md", "# Plan\n\nShip on Monday.\n")).await;
    inbox.says(CARD, "- Ship on Friday.").await;
    inbox.says(CARD, "+ Ship on Monday.").await;
    inbox.is_accessible("a card with a change").await;
    inbox.click(&format!("{CARD} [data-action=claim]")).await;
    inbox.says(&format!("{CARD} [data-slot=claimed]"), "you are looking").await;
    inbox.click(&format!("{CARD} [data-action=extend]")).await;
    eventually("more time", || async {
        let held = inbox.gateway.get("approvals?state=waiting").await;
        held["items"][0]["extended_ms"].as_u64().filter(|ms| *ms > 0)
    })
    .await;

    // Denied so: it says why, and waits on.
    inbox.click(&format!("{CARD} [data-slot=edit] > summary")).await;
    inbox.write(&format!("{CARD} [data-field=arguments]"), r#"{"path": "closed/a.md", "content": "x"}"#).await;
    inbox.click(&format!("{CARD} [data-action=approve]")).await;
    inbox.says(&format!("{CARD} [data-slot=problem]"), "closed: Closed for good").await;
    inbox
        .write(
            &format!("{CARD} [data-field=arguments]"),
            r#"{"path": "docs/plan.md", "content": "Ship on Tuesday.\n"}"#,
        )
        .await;
    inbox.is_accessible("a card that is changed").await;
    inbox.click(&format!("{CARD} [data-action=approve]")).await;
    let ran = reply(answer, 1).await;
    assert!(text(&ran).contains("An approver changed the arguments"), "{ran}");
    let written = std::fs::read_to_string(inbox.home.root().join("docs/plan.md")).expect("written");
    assert_eq!(written, "Ship on Tuesday.\n");

    // What nobody has looked at yet is not approved by a click that was meant for what stood there before.
    let answer = agent.begin(20, "write_file", write("docs/b.md", "b")).await;
    inbox.click(&format!("{CARD} [data-slot=edit] > summary")).await;
    inbox.write(&format!("{CARD} [data-field=arguments]"), r#"{"path": "docs/plan.md", "content": "x"}"#).await;
    let watch = "const card = document.querySelector('#waiting [data-state=waiting]');
        const approve = card.querySelector('[data-action=approve]');
        new MutationObserver(() => setTimeout(() => { window.guarded = approve.disabled; }, 60))
            .observe(card, { attributeFilter: ['data-digest'] });";
    inbox.browser.run(watch).await;
    inbox.click(&format!("{CARD} [data-action=approve]")).await;
    inbox.says(&format!("{CARD} [data-slot=changed]"), "look again, then approve").await;
    eventually("a moment", || async { inbox.browser.run("return window.guarded ?? null").await.as_bool() }).await;
    assert_eq!(inbox.browser.run("return window.guarded").await, json!(true));
    inbox.click(&format!("{CARD} [data-action=reject]")).await;
    assert_eq!(about(&reply(answer, 20).await)["reason"], "approver");

    let answer = agent.begin(2, "write_file", write("docs/b.md", "b")).await;
    inbox.click(&format!("{CARD} [data-slot=remember] > summary")).await;
    inbox.click(&format!("{CARD} [data-slot=options] .option:nth-of-type(2) input")).await;
    inbox.is_accessible("a card with what may be remembered").await;
    inbox.resize(360).await;
    inbox.fits(360).await;
    inbox.is_accessible("a card on a phone").await;
    inbox.resize(1000).await;
    inbox.click(&format!("{CARD} [data-action=approve]")).await;
    let ran = reply(answer, 2).await;
    assert_ne!(ran["result"]["isError"], true, "{ran}");
    let again = agent.call(3, "write_file", write("docs/c.md", "c")).await;
    assert_ne!(again["result"]["isError"], true, "it passes without a question: {again}");

    inbox.page("grants").await;
    inbox.says("#grants-list [data-grant-id][data-state=active]", "write_file below docs/").await;
    inbox.is_accessible("the grants").await;
    inbox.click("#grants-list [data-grant-id] [data-action=revoke]").await;
    inbox.says("#grants-list [data-grant-id][data-state=revoked]", "Ended: ").await;

    inbox.page("history").await;
    inbox.says("#history-list", "write_file docs/c.md").await;
    inbox.write("#history-form [name=q]", "docs/c.md").await;
    inbox.click("#history-form [type=submit]").await;
    eventually("the calls that match", || async {
        let rows = inbox.browser.run("return document.querySelectorAll('#history-list [data-call-id]').length").await;
        (rows == json!(1)).then_some(())
    })
    .await;
    inbox.is_accessible("the history").await;
    inbox.browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_revealed_by_an_act_of_its_own_and_what_is_severe_is_looked_at_to_its_end() {
    let inbox = Inbox::open().await;
    let agent = inbox.agent().await;
    let token = format!("ghp_{}", "a1".repeat(18));
    let answer = agent.begin(1, "write_file", write("docs/a.md", &token)).await;
    let card = inbox.browser.see(CARD).await;
    // In its place stands what tells it from another, also in what would change.
    inbox.says(&format!("{CARD} [data-slot=diff] .redacted"), "secret: 40 characters, gh…a1 #").await;
    let hashes = "return [...document.querySelectorAll('#waiting .redacted code')].map((one) => one.textContent)";
    let hashes = inbox.browser.run(hashes).await;
    assert_eq!((hashes.as_array().map(Vec::len), &hashes[0]), (Some(2), &hashes[1]), "{hashes}");
    inbox.says(&format!("{CARD} [data-slot=arguments] .redacted"), "secret: 40 characters, gh…a1 #").await;
    assert!(!card.text().await.expect("its text").contains(&token));
    inbox.click(&format!("{CARD} [data-action=reveal]")).await;
    inbox.says(CARD, &token).await;
    inbox.click(&format!("{CARD} [data-action=reject]")).await;
    assert_eq!(about(&reply(answer, 1).await)["reason"], "approver");

    let long = format!("rm docs/plan.md # {}", "x ".repeat(12_000));
    let answer = agent.begin(2, "execute_cmd", json!({ "command": long })).await;
    let severe = "#waiting [data-state=waiting][data-severity=high]";
    inbox.browser.see(severe).await;
    inbox.browser.run("scrollTo(0, 0)").await;
    let reject = inbox.browser.see(&format!("{severe} [data-action=reject]")).await;
    let unguarded = async || {
        eventually("a click that would count", || async { reject.is_enabled().await.ok().filter(|on| *on) }).await
    };
    unguarded().await;
    let approve = inbox.browser.see(&format!("{severe} [data-action=approve]")).await;
    // Guarded until the end of its arguments was on the screen, and no key does it.
    let page = &inbox.browser.page;
    page.find(By::Css(format!("{severe} summary"))).await.expect("a head").focus().await.expect("focused");
    page.active_element().await.expect("the head").send_keys("a").await.expect("typed");
    inbox.says(&format!("{severe} [data-slot=problem]"), "use the button").await;
    inbox.scroll_to_the_end(severe).await;
    unguarded().await;
    assert!(!approve.is_enabled().await.expect("a button"), "a part of it is still left out");
    inbox
        .browser
        .run("document.querySelectorAll('[data-severity=high] .more button').forEach((one) => one.click())")
        .await;
    inbox.frame().await;
    inbox.scroll_to_the_end(severe).await;
    eventually("the end to be seen", || async { approve.is_enabled().await.ok().filter(|enabled| *enabled) }).await;
    inbox.is_accessible("a severe card").await;
    inbox.click(&format!("{severe} [data-action=approve]")).await;
    assert_ne!(reply(answer, 2).await["result"]["isError"], true);
    assert!(!inbox.home.root().join("docs/plan.md").exists());
    inbox.browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_are_found_grouped_and_decided_together() {
    let inbox = Inbox::open().await;
    let (one, other) = (inbox.agent().await, inbox.agent().await);
    let mut answers = Vec::new();
    for n in 1..=3 {
        answers.push((n, one.begin(n, "write_file", write(&format!("docs/{n}.md"), "x")).await));
    }
    let apart =
        other.begin(9, "edit_file", json!({ "path": "docs/plan.md", "old_text": "Friday", "new_text": "never" })).await;
    eventually("four cards", || async {
        let cards = inbox.browser.run(&format!("return document.querySelectorAll('{CARD}').length")).await;
        (cards == json!(4)).then_some(())
    })
    .await;
    inbox.write("#search", "edit_file").await;
    inbox.says("#filtered", "3 more are not shown").await;
    inbox.write("#search", " ").await;
    inbox
        .browser
        .run("const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))")
        .await;
    inbox
        .browser
        .run("const g = document.getElementById('group-by'); g.value = 'tool'; g.dispatchEvent(new Event('input'))")
        .await;
    inbox.says("#waiting .group", "Tool work/").await;
    inbox.is_accessible("a grouped list").await;

    // Not before each was looked at to its end.
    let group = "//div[contains(@class,'group')][.//button[contains(.,'Approve these 3')]]";
    let all = || By::XPath(format!("{group}//button[@data-action='approve-group']"));
    inbox.browser.click(all()).await;
    eventually("the refusal", || async {
        let text = inbox.browser.page.find(By::XPath(group)).await.ok()?.text().await.ok()?;
        text.contains("were not looked at to the end").then_some(())
    })
    .await;
    assert_eq!(inbox.gateway.held(4).await.len(), 4);
    inbox.browser.run("document.querySelectorAll('#waiting details').forEach((one) => { if (one.matches('.card > details')) one.open = true; })").await;
    for n in 0..4 {
        inbox
            .browser
            .run(&format!("document.querySelectorAll('#waiting [data-slot=end]')[{n}].scrollIntoView()"))
            .await;
        eventually("a look at it", || async {
            let seen = inbox.browser.run("return document.querySelectorAll('#waiting .card.seen').length").await;
            (seen.as_u64() > Some(n)).then_some(())
        })
        .await;
    }
    inbox.browser.click(all()).await;
    for (n, answer) in answers {
        assert_ne!(reply(answer, n).await["result"]["isError"], true);
    }
    let left = inbox.gateway.held(1).await;
    assert_eq!(left[0]["call"]["tool"], "edit_file");

    // The keyboard alone: to the card, to its note, and the rejection is sent.
    inbox.browser.run("document.activeElement.blur()").await;
    let page = &inbox.browser.page;
    let body = page.find(By::Css("body")).await.expect("the page");
    body.send_keys("?").await.expect("typed");
    inbox.browser.see("#help[open]").await;
    inbox.is_accessible("the list of keys").await;
    inbox.click("#help button").await;
    eventually("the card that is left to be reached", || async {
        page.active_element().await.ok()?.send_keys("j").await.ok()?;
        let at = inbox.browser.run("return document.activeElement.closest('[data-state=waiting]') !== null").await;
        (at == json!(true)).then_some(())
    })
    .await;
    page.active_element().await.expect("the card").send_keys("r").await.expect("typed");
    let note = page.active_element().await.expect("the note");
    note.send_keys("leave the date alone").await.expect("typed");
    note.send_keys(Key::Control + Key::Enter).await.expect("sent");
    let refused = reply(apart, 9).await;
    assert!(text(&refused).contains("leave the date alone"), "{refused}");
    inbox.browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_paused_and_policy_is_asked() {
    let inbox = Inbox::open().await;
    let agent = inbox.agent().await;
    let answer = agent.begin(1, "write_file", write("docs/a.md", "x")).await;
    inbox.browser.see(CARD).await;
    inbox.page("agents").await;
    inbox.says("#agents-list [data-agent=local]", "1 waiting").await;
    inbox.is_accessible("the agents").await;
    inbox.write("#agents-list [data-agent=local] input", "it writes too much").await;
    inbox.click("#agents-list [data-agent=local] [data-action=pause]").await;
    let refused = reply(answer, 1).await;
    assert!(text(&refused).contains("it writes too much"), "{refused}");
    inbox.says("#agents-list [data-agent=local]", "Paused by").await;
    inbox.click("#agents-list [data-agent=local] [data-action=resume]").await;
    inbox.says("#agents-list [data-agent=local]", "may call").await;
    assert_ne!(agent.call(2, "read_file", json!({ "path": "docs/plan.md" })).await["result"]["isError"], true);

    inbox.page("policy").await;
    inbox.says("#rules [data-rule=writes]", "writes").await;
    let call = json!({ "agent": "local", "upstream": "work", "tool": "write_file", "arguments": { "path": "closed/a", "content": "" } });
    inbox.write("#explain-text", &call.to_string()).await;
    inbox.click("#explain-form [type=submit]").await;
    inbox.says("#explain-answer", "deny").await;
    inbox.is_accessible("the policy").await;
    inbox.browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_on_a_page_of_its_own() {
    let inbox = Inbox::open().await;
    let agent = Agent::legacy(&inbox.gateway.url("portcullis")).await;
    let asked = json!({ "question": "Which branch?\u{202e} <b>Approve</b>", "choices": ["main", "staging"] });
    let answer = agent.begin(1, "ask_user_clarification", asked).await;
    inbox.page("questions").await;
    let waiting = "#questions-list [data-question-id][data-state=waiting]";
    inbox.says(waiting, "<b>Approve</b>").await;
    inbox.is_accessible("the questions").await;
    assert_eq!(
        inbox.browser.run("return document.querySelectorAll('#waiting [data-approval-id]').length").await,
        json!(0)
    );
    inbox.write(&format!("{waiting} input"), &format!("ghp_{}", "a1".repeat(18))).await;
    inbox.click(&format!("{waiting} [data-action=answer]")).await;
    inbox.says(&format!("{waiting} [data-action=answer]"), "although it looks like a secret").await;
    inbox.click(&format!("{waiting} .presets button:nth-of-type(2)")).await;
    inbox.click(&format!("{waiting} [data-action=answer]")).await;
    let told = reply(answer, 1).await;
    assert!(text(&told).contains("staging"), "{told}");
    inbox.says("#questions-list [data-state=answered]", "answered: “staging”").await;
    inbox.browser.quit().await;
}

/// The tools with what policy says of them in each group; they follow the policy, and are searched.
#[tokio::test(flavor = "multi_thread")]
async fn tools_have_a_page_of_their_own() {
    let inbox = Inbox::open().await;
    inbox.agent().await.request(1, "tools/list", json!({})).await;
    inbox.page("tools").await;
    let row = |tool: &str| format!("#tools-accepted [data-tool='work/{tool}']");
    inbox.browser.see(&format!("{} [data-group=default][data-verdict=ask]", row("write_file"))).await;
    inbox.browser.see(&format!("{} [data-group=default][data-verdict=depends]", row("read_file"))).await;
    inbox.is_accessible("the tools").await;
    inbox.click(&format!("{} summary", row("write_file"))).await;
    inbox.says(&row("write_file"), "Digest").await;
    inbox.is_accessible("a tool").await;
    inbox.resize(360).await;
    inbox.fits(360).await;
    inbox.is_accessible("the tools on a phone").await;
    inbox.resize(1000).await;
    inbox.write("#tools-search", "read_file").await;
    let shown =
        "return [...document.querySelectorAll('#tools [data-tool]')].filter((one) => one.checkVisibility()).length";
    eventually("the one that is searched for", || async { (inbox.browser.run(shown).await == json!(1)).then_some(()) })
        .await;

    // Another policy says something else of the same tools.
    inbox.home.write_policy("version: 1\ngroups: { default: { otherwise: deny } }\n");
    inbox.browser.see(&format!("{} [data-group=default][data-verdict=deny]", row("read_file"))).await;
    inbox.browser.quit().await;
}

/// On an ordinary screen the first card can be decided without scrolling, and what is severe only after it was scrolled.
#[tokio::test(flavor = "multi_thread")]
async fn the_buttons_of_the_card_that_is_looked_at_are_at_hand() {
    let inbox = Inbox::open().await;
    let metrics = json!({ "width": 1440, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
    inbox.browser.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    let agent = inbox.agent().await;
    let lines: String = (1..=200).map(|n| format!("line {n}\n")).collect();
    let _one = agent.begin(1, "write_file", write("docs/plan.md", &lines)).await;
    inbox.says(CARD, "+ line 1").await;
    let _two = agent.begin(2, "write_file", write("docs/b.md", &lines)).await;
    let _three =
        agent.begin(3, "execute_cmd", json!({ "command": format!("rm docs/plan.md # {}", "x ".repeat(2_000)) })).await;
    inbox.gateway.held(3).await;
    eventually("three cards", || async {
        let cards = inbox.browser.run(&format!("return document.querySelectorAll('{CARD}').length")).await;
        (cards == json!(3)).then_some(())
    })
    .await;
    // Severe comes first: its buttons are there, and it cannot be approved yet.
    let at_hand = |card: &str| {
        format!(
            "const card = document.querySelector('{card}'), button = card.querySelector('[data-action=approve]');
             const {{ top, bottom }} = button.getBoundingClientRect();
             return [top > 0 && bottom <= innerHeight, !button.disabled, card.classList.contains('current'), document.querySelectorAll('.current').length];"
        )
    };
    let is = async |card: &str, what: Value| {
        eventually(&format!("{card}: {what}"), || async {
            (inbox.browser.run(&at_hand(card)).await == what).then_some(())
        })
        .await;
    };
    let severe = "[data-severity=high]";
    inbox.browser.run("scrollTo(0, 0)").await;
    is(severe, json!([true, false, true, 1])).await;
    inbox.is_accessible("a card with its buttons at hand").await;

    // The next takes its turn when that one is scrolled away; for a moment no click counts.
    let watch = "window.guarded = null;
        const approve = document.querySelector('#waiting [data-severity=normal] [data-action=approve]');
        const card = approve.closest('.card');
        new MutationObserver(() => { if (card.matches('.current')) window.guarded ??= approve.disabled; }).observe(card, { attributeFilter: ['class'] });
        const end = card.getBoundingClientRect().top + scrollY;
        scrollTo(0, end - 100);";
    inbox.browser.run(watch).await;
    let first = "[data-severity=normal]";
    is(first, json!([true, true, true, 1])).await;
    assert_eq!(inbox.browser.run("return window.guarded").await, json!(true), "they are another call's now");
    let order = inbox
        .browser
        .run("return [...document.querySelectorAll('#waiting .card')].map((card) => card.dataset.severity)")
        .await;
    assert_eq!(order, json!(["high", "normal", "normal"]));

    // An ordinary one is decided from there.
    inbox.click(&format!("{first} [data-action=reject]")).await;
    inbox.gateway.held(2).await;
    inbox.resize(360).await;
    inbox.fits(360).await;
    inbox.is_accessible("buttons at hand on a phone").await;
    inbox.browser.quit().await;
}

/// The pictures in `docs/img/`: run by hand (`cargo test --test integration pictures -- --ignored`).
#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes the pictures of the README anew"]
async fn pictures() {
    let inbox = Inbox::open().await;
    let (agent, other) = (inbox.agent().await, inbox.agent().await);
    let _one = agent.begin(1, "write_file", write("docs/plan.md", "# Plan\n\nShip on Monday.\n")).await;
    let _two = other.begin(1, "execute_cmd", json!({ "command": "rm -r docs/old && git push origin main" })).await;
    let _three = agent.begin(2, "write_file", write("docs/notes.md", "Notes.\n")).await;
    inbox.gateway.held(3).await;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/img");
    std::fs::create_dir_all(&folder).expect("a folder");
    for scheme in ["light", "dark"] {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        inbox.browser.devtools("Emulation.setEmulatedMedia", media).await;
        for width in [360, 768, 1440] {
            inbox.resize(width).await;
            inbox.fits(width).await;
            let calm = "return [...document.querySelectorAll('#waiting details[open] ~ .bar [data-action=reject]')].every((one) => !one.disabled)";
            eventually("the end of the guard", || async {
                (inbox.browser.run(calm).await == json!(true)).then_some(())
            })
            .await;
            let file = folder.join(format!("inbox-{width}-{scheme}.png"));
            inbox.browser.page.screenshot(&file).await.expect("a picture");
        }
    }
    inbox.browser.quit().await;
}
