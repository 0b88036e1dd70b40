//! Headless Chromium, driven by its own driver on a free port.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use http::Method;
use tempfile::TempDir;
use thirtyfour::prelude::*;

use super::eventually;
use super::http::Http;

/// A browser with a profile of its own; ended when dropped.
pub struct Browser {
    pub page: WebDriver,
    port: u16,
    _driver: Driver,
    _profile: TempDir,
}

impl Browser {
    pub async fn start() -> Self {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = Driver(command.spawn().expect("chromedriver starts: scripts/test --install brings it"));
        let mut lines = BufReader::new(driver.0.stdout.take().expect("its output")).lines().map_while(Result::ok);
        let port = lines
            .find_map(|line| line.rsplit_once("successfully on port ")?.1.trim_end_matches('.').parse::<u16>().ok())
            .expect("its port");
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().expect("a folder");
        let mut options = DesiredCapabilities::chrome();
        for argument in [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1000,1400",
            &format!("--user-data-dir={}", profile.path().display()),
        ] {
            options.add_arg(argument).expect("an argument");
        }
        let page = WebDriver::new(format!("http://127.0.0.1:{port}"), options).await.expect("a browser");
        Self { page, port, _driver: driver, _profile: profile }
    }

    /// The element, as soon as it is there and shown.
    pub async fn see(&self, css: &str) -> WebElement {
        self.page.query(By::Css(css)).and_displayed().first().await.unwrap_or_else(|e| panic!("{css}: {e}"))
    }

    /// Clicks on the element, as soon as it takes a click: one that comes while a button is guarded reaches nobody.
    pub async fn click(&self, by: By) {
        const HEAR: &str = "window.wasClicked = false;
            arguments[0].addEventListener('click', () => { window.wasClicked = true; }, { once: true, capture: true });";
        eventually("a click that counts", || async {
            let element = self.page.query(by.clone()).and_displayed().first().await.ok()?;
            element.is_enabled().await.ok().filter(|enabled| *enabled)?;
            element.scroll_into_view().await.ok()?;
            self.page.execute(HEAR, vec![element.to_json().ok()?]).await.ok()?;
            element.click().await.ok()?;
            let heard = self.page.execute("return window.wasClicked", Vec::new()).await.ok()?;
            (heard.json() == &serde_json::json!(true)).then_some(())
        })
        .await;
    }

    /// What a script returns.
    pub async fn run(&self, script: &str) -> serde_json::Value {
        self.page.execute(script, Vec::new()).await.expect("a script").json().clone()
    }

    /// Has the browser itself do something (Chrome DevTools Protocol).
    pub async fn devtools(&self, command: &str, params: serde_json::Value) {
        let session = self.page.session_id().to_string();
        let url = format!("http://127.0.0.1:{}/session/{session}/goog/cdp/execute", self.port);
        let body = serde_json::json!({ "cmd": command, "params": params }).to_string();
        let answer = Http::new().send(Method::POST, &url, &[("content-type", "application/json")], body).await;
        assert_eq!(answer.status, 200, "{command}");
    }

    /// Ends the browser.
    pub async fn quit(self) {
        let _ = self.page.clone().quit().await;
    }
}

/// Ended when dropped, whatever became of the browser.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
