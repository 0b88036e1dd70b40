//! The inbox with many waiting calls: it is shown at once, is filtered at once, and a new call touches no other.

use serde_json::{Value, json};

use crate::harness::agent::Agent;
use crate::harness::browser::Browser;
use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home, TOKEN};

const POLICY: &str = "version: 1\ngroups: { default: { otherwise: ask } }\n";

/// Notes when that many cards are there and drawn, from the beginning of each page on.
const WATCH: &str = "
    new MutationObserver((_, observer) => {
        const shown = document.querySelectorAll('#waiting [data-approval-id]').length;
        if (shown < COUNT) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => { window.shownAfter = performance.now(); }));
    }).observe(document, { childList: true, subtree: true });
";

/// How long it takes until a filter has its effect on the screen, in ms: with the work, and the frame after it.
const FILTER: &str = "
    const done = arguments[arguments.length - 1], search = document.getElementById('search');
    requestAnimationFrame(() => {
        const from = performance.now();
        search.value = arguments[0];
        search.dispatchEvent(new Event('input'));
        const worked = performance.now() - from;
        requestAnimationFrame(() => setTimeout(() => done([worked, performance.now() - from])));
    });
";

/// From now on, the cards of which anything is changed but their time; and the longest stretch in which nothing else ran.
const TOUCHED: &str = "
    window.touched = new Set();
    new MutationObserver((changes) => {
        for (const { target } of changes) {
            const element = target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement;
            const card = element?.closest('[data-approval-id]');
            if (card && !element.closest('[data-expires-at]')) window.touched.add(card.dataset.approvalId);
        }
    }).observe(document.getElementById('waiting'), { attributes: true, childList: true, subtree: true, characterData: true });
    window.longest = 0;
    new PerformanceObserver((list) => {
        for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
    }).observe({ type: 'longtask' });
";

struct Many {
    _home: Home,
    gateway: Gateway,
    browser: Browser,
    agents: Vec<Agent>,
    /// Streams of calls that wait.
    answers: Vec<Box<dyn std::any::Any>>,
}

impl Many {
    /// An inbox in which so many calls wait.
    async fn open(count: usize) -> Self {
        let workspace = json!({ "work": { "workspace": true, "root": "$ROOT" } });
        let waits = json!({ "hold_for": "20m", "expires": "30m", "max_waiting": 2_000 });
        let home = Home::new(POLICY, workspace).with("approvals", waits);
        let gateway = home.serve();
        let mut agents = Vec::new();
        for _ in 0..4 {
            agents.push(Agent::legacy(&gateway.url("work")).await);
        }
        let browser = Browser::start().await;
        let mut many = Self { _home: home, gateway, browser, agents, answers: Vec::new() };
        for n in 0..count {
            many.ask(n).await;
        }
        eventually("all calls to wait", || async {
            let agents = many.gateway.get("agents").await;
            (agents["items"][0]["waiting"].as_u64() == Some(count as u64)).then_some(())
        })
        .await;
        many
    }

    async fn ask(&mut self, n: usize) {
        let agent = &self.agents[n % self.agents.len()];
        let content = format!("# Note {n}\n\n{}", "It says something that somebody should read.\n".repeat(20));
        let arguments = json!({ "path": format!("notes/{n}.md"), "content": content });
        let answer = agent.begin(n as u64, "write_file", arguments).await;
        self.answers.push(Box::new(answer));
    }

    /// Signs in, and how long it takes then until so many are shown, in ms since the page was asked for.
    async fn shown(&self, count: usize) -> f64 {
        self.browser.page.goto(&self.gateway.admin).await.expect("the page");
        self.browser.see("#login-token").await.send_keys(TOKEN).await.expect("typed");
        let source = WATCH.replace("COUNT", &count.to_string());
        self.browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source })).await;
        self.browser.click(thirtyfour::By::Css("#login-submit")).await;
        self.browser.see("#inbox[data-connection=live]").await;
        self.browser.page.refresh().await.expect("the page again");
        eventually("all that waits", || async { self.browser.run("return window.shownAfter ?? null").await.as_f64() })
            .await
    }

    async fn filtered(&self, words: &str) -> [f64; 2] {
        let told = self.browser.page.execute_async(FILTER, vec![json!(words)]).await.expect("its time");
        let told: Vec<f64> = serde_json::from_value(told.json().clone()).expect("two numbers");
        [told[0], told[1]]
    }

    async fn count(&self, what: &str) -> u64 {
        let script = format!("return document.querySelectorAll('#waiting [data-approval-id]{what}').length");
        self.browser.run(&script).await.as_u64().expect("a number")
    }

    /// One more call; the cards that were touched by that, and the longest task meanwhile in ms.
    async fn one_more(&mut self, n: usize) -> (Vec<Value>, f64) {
        let before = self.count("").await;
        self.browser.run(TOUCHED).await;
        self.ask(n).await;
        eventually("the new card", || async { (self.count("").await > before).then_some(()) }).await;
        // Until a click counts again.
        let open = "return [...document.querySelectorAll('#waiting details[open] ~ .bar [data-action=approve]')].every((one) => !one.disabled)";
        eventually("the end of the guard", || async { (self.browser.run(open).await == json!(true)).then_some(()) })
            .await;
        let touched = self.browser.run("return [...window.touched]").await;
        let longest = self.browser.run("return window.longest").await.as_f64().expect("a number");
        (touched.as_array().expect("a list").clone(), longest)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_call_touches_no_other_card_and_a_filter_finds_the_one() {
    let mut many = Many::open(40).await;
    many.shown(40).await;
    assert_eq!(many.count(":has(details[open])").await, 3, "only the first are unfolded");
    let (touched, _) = many.one_more(40).await;
    // The open ones are guarded for a moment; the new one is there.
    assert!(touched.len() <= 4, "{touched:?}");
    many.filtered("notes/17.md").await;
    assert_eq!(many.count(":not([hidden])").await, 1);
    many.filtered("").await;
    assert_eq!(many.count(":not([hidden])").await, 41);
    many.browser.quit().await;
}

/// The figures of `docs/performance.md`: `cargo test --test integration five_hundred -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn five_hundred() {
    let mut many = Many::open(500).await;
    let shown = many.shown(500).await;
    let found = many.filtered("notes/417.md").await;
    assert_eq!(many.count(":not([hidden])").await, 1);
    let all = many.filtered("").await;
    let (touched, longest) = many.one_more(500).await;
    println!("500 waiting calls, all shown after   {shown:.0} ms");
    println!("a filter for one of them             {:.0} ms of work, on the screen after {:.0} ms", found[0], found[1]);
    println!("all of them again                    {:.0} ms of work, on the screen after {:.0} ms", all[0], all[1]);
    println!("one more call                        touched {} cards, longest task {longest:.0} ms", touched.len());
    many.browser.quit().await;
}
