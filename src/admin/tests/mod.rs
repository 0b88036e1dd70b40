#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

//! A real gate behind a real listener, asked by a plain HTTP client.

pub mod side;
mod sweep;

use std::time::Duration;

use http::{StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use self::side::{AGENT, ANA, DIGEST, EVE, START, Side, VIC, read_until};
use super::*;

#[tokio::test]
async fn nobody_gets_in_without_an_approvers_credential() {
    let side = Side::start().await;
    for path in ["approvals", "approvals/apr_1", "calls", "calls/call_1", "policy", "events", "me"] {
        let answer = side.ask("GET", &format!("/api/v1/{path}"), &[], "").await;
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(answer.json()["type"], "urn:portcullis:unauthorized");
        assert_eq!(side.get("wrong", path).await.status, 401, "{path}");
        let agents = side.get(AGENT, path).await;
        assert_eq!(agents.status, 401, "{path}");
        assert!(agents.text.contains("an agent's token is not good here"), "{}", agents.text);
    }
    for path in ["approvals/apr_1/approve", "approvals/apr_1/reject", "calls/call_1/cancel", "policy/reload"] {
        assert_eq!(side.post(AGENT, path, json!({"digest": "x"})).await.status, 401, "{path}");
    }
    assert_eq!(side.log_in(AGENT).await.unwrap_err().status, 401);
    assert_eq!(side.get(ANA, "nothing/here").await.status, 404);
    assert_eq!(side.ask("DELETE", "/api/v1/approvals", &[], "").await.status, 405);
}

#[tokio::test]
async fn a_slip_is_told_and_nothing_else() {
    let side = Side::start().await;
    side.hold("1").await;
    for (path, told) in [
        ("aprovals", "did you mean `/api/v1/approvals`?"),
        ("approvals/apr_1/aprove", "did you mean `/api/v1/approvals/apr_1/approve`?"),
        ("nothing/like/this", "/api/v1/openapi.json lists all"),
        ("approvals/call_1", "begin with `apr_`; `GET approvals` has them"),
        ("calls/apr_1", "begin with `call_`"),
    ] {
        let answer = side.get(ANA, path).await;
        assert!(answer.status == 404 && answer.text.contains(told), "{path}: {}", answer.text);
    }
    let near = |who| side.post(who, "agents/claud/resume", json!({}));
    assert!(near(ANA).await.text.contains("did you mean `claude`?"));
    let (hidden, missing) = (near(EVE).await, side.post(EVE, "agents/nobody/resume", json!({})).await);
    assert_eq!((hidden.status, &hidden.text), (404, &missing.text), "agents of other groups do not exist");
    let (hidden, missing) = (side.get(EVE, "approvals/apr_1").await, side.get(EVE, "approvals/apr_2").await);
    assert_eq!((hidden.status, &hidden.text), (404, &missing.text));
}

#[tokio::test]
async fn a_call_is_seen_and_approved_once() {
    let side = Side::start().await;
    side.hold("1").await;
    side.hold("2").await;
    let list = side.get(ANA, "approvals?state=waiting").await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert_eq!(list["next"], Value::Null);
    let first = side.get(ANA, "approvals?limit=1").await.json();
    let second = side.get(ANA, &format!("approvals?limit=1&cursor={}", first["next"].as_str().unwrap())).await.json();
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);
    for nonsense in ["approvals?cursor=x", "approvals?cursor=apr_1", "calls?cursor=x", "calls?cursor=1.apr_1"] {
        let refused = side.get(ANA, nonsense).await;
        assert!(refused.status == 400 && refused.text.contains("cursor"), "{nonsense}: {}", refused.text);
    }

    let shown = side.get(VIC, "approvals/apr_1").await.json();
    assert_eq!((&shown["state"], &shown["call"]["digest"]), (&json!("waiting"), &json!(DIGEST)));
    assert_eq!(side.get(ANA, "approvals/call_1").await.status, 404, "a call's id is not an approval's");

    let approved = side.post(ANA, "approvals/apr_1/approve", json!({"digest": DIGEST, "note": " fine "})).await;
    assert_eq!(approved.status, 200, "{}", approved.text);
    let vote = &approved.json()["votes"][0];
    assert_eq!((&vote["by"], &vote["channel"], &vote["note"]), (&json!("ana"), &json!("api"), &json!("fine")));
    let otherwise = side.post(ANA, "approvals/apr_1/reject", json!({})).await;
    assert_eq!((otherwise.status, &otherwise.json()["state"]), (409, &json!("approved")));

    let rejected = side.post(ANA, "approvals/apr_2/reject", json!({"note": "not today"})).await.json();
    assert_eq!((&rejected["call"]["state"], &rejected["call"]["reason"]), (&json!("rejected"), &json!("approver")));
    assert_eq!(side.post(ANA, "approvals/apr_2/approve", json!({"digest": DIGEST})).await.status, 409);
    assert_eq!(side.get(ANA, "calls/call_2").await.json()["detail"], "not today");
}

#[tokio::test]
async fn nobody_approves_what_they_were_not_shown() {
    let side = Side::start().await;
    side.hold("1").await;
    let path = "approvals/apr_1/approve";
    assert_eq!(side.post(ANA, path, json!({"digest": "sha256:other"})).await.status, 412);
    for bad in [
        json!({}),
        json!({"digest": null}),
        json!({"digest": DIGEST, "extra": 1}),
        json!({"digest": DIGEST, "remember": {"scope": "tool"}}),
        json!({"digest": DIGEST, "note": "x".repeat(4001)}),
        json!([]),
    ] {
        assert_eq!(side.post(ANA, path, bad.clone()).await.status, 400, "{bad}");
    }
    let bearer = format!("Bearer {ANA}");
    let twice = format!("{{\"digest\":\"{DIGEST}\",\"digest\":\"x\"}}");
    let plain = [("authorization", bearer.as_str())];
    let typed = [plain[0], ("content-type", "application/json")];
    let path = "/api/v1/approvals/apr_1/approve";
    assert_eq!(side.ask("POST", path, &typed, &twice).await.status, 400);
    assert_eq!(side.ask("POST", path, &plain, &json!({"digest": DIGEST}).to_string()).await.status, 415);
    assert_eq!(side.ask("POST", path, &typed, &" ".repeat((1 << 20) + 1)).await.status, 413);
    assert_eq!(side.get(ANA, "approvals/apr_1").await.json()["state"], "waiting");
}

#[tokio::test]
async fn what_a_role_or_a_group_does_not_cover_is_refused() {
    let side = Side::start().await;
    side.hold("1").await;
    let approve = json!({"digest": DIGEST});
    assert_eq!(side.post(VIC, "approvals/apr_1/approve", approve.clone()).await.status, 403);
    assert_eq!(side.post(VIC, "approvals/apr_1/reject", json!({})).await.status, 403);
    assert_eq!(side.post(VIC, "calls/call_1/cancel", json!({})).await.status, 403);
    assert_eq!(side.post(VIC, "policy/reload", json!({})).await.status, 403);
    for list in ["approvals", "calls"] {
        assert_eq!(side.get(EVE, list).await.json()["items"], json!([]), "{list}");
    }
    for (method, path) in [
        ("GET", "approvals/apr_1"),
        ("GET", "calls/call_1"),
        ("POST", "approvals/apr_1/approve"),
        ("POST", "calls/call_1/cancel"),
    ] {
        let invisible =
            if method == "GET" { side.get(EVE, path).await } else { side.post(EVE, path, approve.clone()).await };
        let unknown = side.get(EVE, "approvals/apr_9").await;
        assert_eq!(
            (invisible.status, &invisible.text),
            (404, &unknown.text),
            "{path}: not told apart from the unknown"
        );
    }
    assert_eq!(side.get(ANA, "approvals/apr_1").await.json()["state"], "waiting");
}

#[tokio::test]
async fn an_operator_withdraws_a_waiting_call_and_a_late_decision_is_told() {
    let side = Side::start().await;
    side.hold("1").await;
    let cancelled = side.post(ANA, "calls/call_1/cancel", json!({})).await;
    assert_eq!((cancelled.status, &cancelled.json()["state"]), (200, &json!("cancelled")), "{}", cancelled.text);
    let late = side.post(ANA, "approvals/apr_1/approve", json!({"digest": DIGEST})).await;
    assert_eq!((late.status, &late.json()["state"]), (410, &json!("withdrawn")));
}

#[tokio::test]
async fn a_login_link_works_once_and_not_for_long() {
    let side = Side::start().await;
    let link = login_link(side.gate.store(), side.clock.now(), "ana", "http://gate/").await.unwrap();
    let token = link.strip_prefix("http://gate/#login=").unwrap();
    let (cookie, key) = side.log_in(token).await.map_err(|answer| answer.text).unwrap();
    let used = side.log_in(token).await.unwrap_err();
    assert!(used.status == 401 && used.text.contains("used already"), "{}", used.text);
    let old = login_link(side.gate.store(), side.clock.now(), "ana", "http://gate").await.unwrap();
    side.clock.advance(Duration::from_secs(15 * 60));
    assert_eq!(side.log_in(old.rsplit('=').next().unwrap()).await.unwrap_err().status, 401);
    assert_eq!(
        side.ask("GET", "/api/v1/me", &[("cookie", &cookie), ("x-portcullis-key", &key)], "").await.json()["name"],
        "ana"
    );
}

#[tokio::test]
async fn a_cookie_decides_only_from_our_own_page() {
    let side = Side::start().await;
    side.hold("1").await;
    let (cookie, key) = side.log_in(ANA).await.map_err(|answer| answer.text).unwrap();
    let me = side.ask("GET", "/api/v1/me", &[("cookie", &cookie), ("x-portcullis-key", &key)], "").await.json();
    assert_eq!((&me["name"], &me["groups"]), (&json!("ana"), &json!(["default"])));
    let approve = json!({"digest": DIGEST}).to_string();
    let path = "/api/v1/approvals/apr_1/approve";
    let json = ("content-type", "application/json");
    for origin in ["http://evil.example", "http://127.0.0.1:1", "null"] {
        let foreign = side
            .ask("POST", path, &[("cookie", &cookie), ("x-portcullis-key", &key), ("origin", origin), json], &approve)
            .await;
        assert_eq!(foreign.status, 403, "{origin}");
    }
    assert_eq!(
        side.ask("POST", path, &[("cookie", &cookie), ("x-portcullis-key", &key), json], &approve).await.status,
        403,
        "no origin"
    );
    let bearer = format!("Bearer {AGENT}");
    let mixed = [
        ("cookie", cookie.as_str()),
        ("x-portcullis-key", &key),
        ("authorization", &bearer),
        ("origin", &side.base),
        json,
    ];
    assert_eq!(side.ask("POST", path, &mixed, &approve).await.status, 401, "a bad token is not made good by a cookie");
    let headers = [("cookie", cookie.as_str()), ("origin", side.base.as_str()), json];
    let stolen = side.ask("POST", path, &headers, &approve).await;
    assert_eq!(stolen.status, 401, "what else is served on this host is shown the cookie: {}", stolen.text);
    assert_eq!(
        side.ask("GET", "/api/v1/me", &[("cookie", &cookie), ("x-portcullis-key", "pc_key_x")], "").await.status,
        401
    );
    assert_eq!(side.ask("GET", "/api/v1/events", &[("cookie", &cookie)], "").await.status, 401);
    let own = side
        .ask("POST", path, &[("cookie", &cookie), ("x-portcullis-key", &key), ("origin", &side.base), json], &approve)
        .await;
    assert_eq!((own.status, &own.json()["votes"][0]["channel"]), (200, &json!("inbox")));

    let out = side
        .ask("POST", "/api/v1/logout", &[("cookie", &cookie), ("x-portcullis-key", &key), ("origin", &side.base)], "")
        .await;
    assert_eq!(out.status, 204);
    assert_eq!(side.ask("GET", "/api/v1/me", &[("cookie", &cookie), ("x-portcullis-key", &key)], "").await.status, 401);
}

#[tokio::test]
async fn a_session_ends_with_its_time() {
    let side = Side::start().await;
    let (cookie, key) = side.log_in(VIC).await.map_err(|answer| answer.text).unwrap();
    side.clock.advance(Duration::from_secs(12 * 60 * 60 - 1));
    assert_eq!(side.ask("GET", "/api/v1/me", &[("cookie", &cookie), ("x-portcullis-key", &key)], "").await.status, 200);
    side.clock.advance(Duration::from_secs(1));
    assert_eq!(side.ask("GET", "/api/v1/me", &[("cookie", &cookie), ("x-portcullis-key", &key)], "").await.status, 401);
}

#[tokio::test]
async fn a_session_is_no_longer_than_its_token() {
    let side = Side::start_with(|config| {
        config.approvers[0].tokens[0].expires = Some(START.after(Duration::from_secs(60)));
    })
    .await;
    let (cookie, key) = side.log_in(ANA).await.map_err(|answer| answer.text).unwrap();
    assert_eq!(side.ask("GET", "/api/v1/me", &[("cookie", &cookie), ("x-portcullis-key", &key)], "").await.status, 200);
    side.clock.advance(Duration::from_secs(61));
    assert_eq!(side.ask("GET", "/api/v1/me", &[("cookie", &cookie), ("x-portcullis-key", &key)], "").await.status, 401);
    assert!(side.get(ANA, "me").await.text.contains("expired"));
}

#[tokio::test]
async fn under_https_the_cookie_is_held_to_its_host() {
    let side = Side::start_with(|config| config.public_url = Some("https://gate.example".into())).await;
    let headers = [("host", "gate.example"), ("origin", "https://gate.example"), ("content-type", "application/json")];
    let answer = side.ask("POST", "/api/v1/login", &headers, &json!({"token": ANA}).to_string()).await;
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("__Host-portcullis=") && cookie.ends_with("; Secure"), "{cookie}");
}

#[tokio::test]
async fn events_tell_those_who_may_see() {
    let side = Side::start().await;
    let (ana, eve) = (format!("Bearer {ANA}"), format!("Bearer {EVE}"));
    let stream = side.send("GET", "/api/v1/events", &[("authorization", &ana)], "").await;
    assert_eq!(stream.status(), StatusCode::OK);
    assert_eq!(stream.headers()[header::CONTENT_TYPE], "text/event-stream");
    let (mut seen, mut unseen) =
        (stream.into_body(), side.send("GET", "/api/v1/events", &[("authorization", &eve)], "").await.into_body());
    side.hold("1").await;
    let text = read_until(&mut seen, "event: call").await;
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    assert!(text.contains("event: approval"), "{text}");
    assert_eq!(serde_json::from_str::<Value>(data).unwrap()["id"], "apr_1");

    assert_eq!(side.post(ANA, "policy/reload", json!({})).await.status, 200);
    read_until(&mut seen, "event: policy").await;
    let others = read_until(&mut unseen, "event: policy").await;
    assert!(!others.contains("apr_1") && !others.contains("call_1"), "{others}");

    let stopping = tokio::time::timeout(Duration::from_secs(3), side.stop());
    stopping.await.expect("open streams do not hold up the shutdown");
    while let Some(frame) = seen.frame().await {
        frame.unwrap();
    }
}

#[tokio::test]
async fn the_policy_is_shown_asked_and_reloaded() {
    let side = Side::start().await;
    let policy = side.get(VIC, "policy").await.json();
    assert_eq!((&policy["groups"], &policy["error"]), (&json!(["default"]), &Value::Null));
    let rule = policy["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == "reads").unwrap().clone();
    assert_eq!((&rule["verdict"], &rule["line"]), (&json!("allow"), &json!(6)));

    let explained = side.post(VIC, "policy/explain", json!({"group": "default", "method": "ping"})).await;
    assert_eq!((explained.status, &explained.json()["verdict"]), (200, &json!("allow")), "{}", explained.text);

    std::fs::write(side.folder.path().join("base.yaml"), "version: 1\ngroups: { default: { rulez: [] } }\n").unwrap();
    let refused = side.post(ANA, "policy/reload", json!({})).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("base.yaml:2") && refused.text.contains("rulez"), "{}", refused.text);
    let kept = side.get(ANA, "policy").await.json();
    assert_eq!(kept["version"], policy["version"]);
    assert!(kept["error"].as_str().unwrap().contains("rulez"), "{kept}");
}

#[tokio::test]
async fn probes_and_prometheus_need_no_credential_on_loopback() {
    let side = Side::start().await;
    side.hold("1").await;
    side.post(ANA, "approvals/apr_1/reject", json!({"note": "no"})).await;
    assert_eq!(side.ask("GET", "/healthz", &[], "").await.status, 200);
    assert_eq!(side.ask("GET", "/readyz", &[], "").await.json()["status"], "ready");
    let metrics = side.ask("GET", "/metrics", &[], "").await;
    assert!(
        metrics.text.contains("portcullis_approval_decisions_total{channel=\"api\",decision=\"reject\"} 1"),
        "{}",
        metrics.text
    );
    assert_eq!(side.ask("GET", "/metrics", &[("host", "evil.example")], "").await.status, 421);
}

#[tokio::test]
async fn the_page_is_served_with_a_policy_that_runs_nothing_foreign() {
    let side = Side::start().await;
    let page = side.ask("GET", "/", &[], "").await;
    assert_eq!((page.status, &page.headers[header::CONTENT_TYPE]), (200, &"text/html; charset=utf-8".parse().unwrap()));
    let csp = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(csp.contains("default-src 'none'; script-src 'self'") && csp.contains("frame-ancestors 'none'"), "{csp}");
    for (name, value) in
        [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"), ("cache-control", "no-store")]
    {
        assert_eq!(page.headers[name], value);
    }
    for forbidden in ["style=", "onclick", "http://", "https://", "<script>"] {
        assert!(!page.text.contains(forbidden), "{forbidden}");
    }
    let parts: Vec<&str> =
        page.text.split('"').filter(|part| part.ends_with(".js") || part.ends_with(".css")).collect();
    assert_eq!(parts.len(), 2);
    for part in parts {
        assert_eq!(side.ask("GET", &format!("/{part}"), &[], "").await.status, 200, "{part}");
    }
}

#[tokio::test]
async fn a_client_that_stops_in_the_middle_holds_nobody_up() {
    use tokio::io::AsyncWriteExt;
    let side = Side::start().await;
    let address = side.base.strip_prefix("http://").unwrap();
    let mut slow = Vec::new();
    for half in ["GET /healthz HT", "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(half.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    assert_eq!(side.ask("GET", "/healthz", &[], "").await.status, 200);
}
