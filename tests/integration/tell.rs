//! People are told of held calls: by real requests and real mails, once, and nothing waits for that.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::harness::agent::{Agent, about, reply};
use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home, PORTCULLIS, TOKEN};
use crate::harness::receiver::{Answer, Receiver};

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: urgent, verdict: ask, tool: write_file, path: urgent/, reason: 'see https://wiki.example', approval: { severity: high } }
";

const SECRET: &str = "a secret of the tests";

fn home(notify: Value) -> Home {
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    home.with("approvals", json!({ "hold_for": "60s", "expires": "60s", "max_waiting": 500 })).with("notify", notify)
}

fn generic(receiver: &Receiver) -> Value {
    json!([{ "name": "ops", "webhook": format!("{}/hook", receiver.origin), "secret": SECRET }])
}

fn write(name: &str) -> Value {
    json!({ "path": name, "content": "a very secret content" })
}

/// The approval once a channel says this of it.
async fn notified(gateway: &Gateway, id: &str, state: &str) -> Value {
    let ask = || async {
        let approval = gateway.get(&format!("approvals/{id}")).await;
        Some(approval).filter(|approval| approval["notified"][0]["state"] == state)
    };
    eventually(&format!("{state} on {id}"), ask).await
}

/// All that the audit log has.
fn audit(home: &Home) -> String {
    let files = std::fs::read_dir(home.state().join("audit")).expect("the log").flatten();
    files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect()
}

/// `portcullis approvals show`.
fn show(home: &Home, gateway: &Gateway, id: &str) -> String {
    let token_file = home.base().join("token");
    std::fs::write(&token_file, TOKEN).expect("a file");
    let mut command = Command::new(PORTCULLIS);
    command.args(["approvals", "show", id, "--url", &gateway.admin, "--token-file"]).arg(token_file);
    String::from_utf8(command.output().expect("it runs").stdout).expect("text")
}

/// What the page tells receivers to do.
fn is_genuine_by_the_docs(timestamp: &str, signature: &str, body: &str) -> bool {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/notifications.md")).expect("the page");
    let code = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("its Python");
    let call = "import sys\nheaders = {'Portcullis-Timestamp': sys.argv[2], 'Portcullis-Signature': sys.argv[3]}\n\
                sys.exit(0 if is_genuine(sys.argv[1], headers, sys.stdin.buffer.read()) else 1)\n";
    let mut python = Command::new("python3")
        .args(["-c", &format!("{code}\n{call}"), SECRET, timestamp, signature])
        .stdin(Stdio::piped())
        .spawn()
        .expect("python3");
    python.stdin.take().expect("its input").write_all(body.as_bytes()).expect("the body");
    python.wait().expect("its end").success()
}

#[tokio::test]
async fn a_session_is_one_message_signed_and_told_in_order() {
    let receiver = Receiver::start().await;
    let home = home(generic(&receiver)).with(
        "listen",
        json!({
            "mcp": { "address": "127.0.0.1:0" },
            "admin": { "address": "127.0.0.1:0", "public_url": "https://gate.example/portcullis" },
        }),
    );
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let evil = "@channel <!here> https://evil.example/\u{202e}x";
    let one = agent.begin(1, "write_file", write(evil)).await;
    let opened = receiver.many(1).await.remove(0);
    let body = opened.json();
    assert_eq!(
        (opened.path.as_str(), &body["event"], &body["number"]),
        ("/hook", &json!("opened"), &json!(1)),
        "{body}"
    );
    assert_eq!(body["waiting"], 1);
    let told = &body["approvals"][0];
    assert!(told["rules"].as_array().unwrap().contains(&json!("otherwise:default")), "{told}");
    assert_eq!(told["url"], format!("https://gate.example/portcullis/#/approvals/{}", told["id"].as_str().unwrap()));
    for never in ["a very secret content", "evil.example", "@channel", "://evil", "\u{202e}"] {
        assert!(!opened.text.contains(never), "{never} in {}", opened.text);
    }
    assert!(told["label"].as_str().unwrap().chars().count() <= 120);
    let [timestamp, signature] = ["portcullis-timestamp", "portcullis-signature"].map(|name| opened.header(name));
    assert!(is_genuine_by_the_docs(timestamp, signature, &opened.text));
    assert!(!is_genuine_by_the_docs(timestamp, signature, &opened.text.replace("opened", "closed")));
    assert_eq!(opened.header("portcullis-delivery"), format!("{}.1", body["message"].as_str().unwrap()));

    let two = agent.begin(2, "write_file", write("urgent/b.md")).await;
    let updated = receiver.many(2).await.remove(1).json();
    assert_eq!((&updated["event"], &updated["number"], &updated["waiting"]), (&json!("updated"), &json!(2), &json!(2)));
    assert_eq!((&updated["message"], &updated["approvals"][0]["severity"]), (&body["message"], &json!("high")));
    assert_eq!(updated["approvals"][0]["reason"], "see https[:]//wiki[.]example");

    let held = gateway.held(2).await;
    let ids: Vec<String> = held.iter().map(|approval| approval["id"].as_str().unwrap().to_owned()).collect();
    for id in &ids {
        let approval = notified(&gateway, id, "delivered").await;
        assert_eq!(approval["notified"][0]["channel"], "webhook:ops");
    }
    for (approval, answer) in held.iter().zip([two, one].into_iter().enumerate()) {
        assert_eq!(gateway.reject(approval, "not now").await.0, 200);
        let (at, answer) = answer;
        assert_eq!(about(&reply(answer, 2 - at as u64).await)["state"], "rejected");
        receiver.many(3 + at).await;
    }
    let all = receiver.many(4).await;
    let events: Vec<Value> = all.iter().map(|one| one.json()["event"].clone()).collect();
    assert_eq!(events, ["opened", "updated", "updated", "closed"]);
    assert_eq!(
        (&all[3].json()["waiting"], &all[3].json()["approvals"][0]["outcome"]),
        (&json!(0), &json!("rejected by ana"))
    );
    for id in &ids {
        notified(&gateway, id, "closed").await;
    }
    let shown = show(&home, &gateway, &ids[0]);
    assert!(shown.contains("webhook:ops") && shown.contains("of its end"), "{shown}");
    let metrics = gateway.metrics().await;
    assert!(
        metrics.contains(r#"portcullis_notifications_total{channel="webhook:ops",result="delivered"} 2"#),
        "{metrics}"
    );
    let log = audit(&home);
    assert_eq!(log.matches("\"event\":\"approval.notified\"").count(), 4, "{log}");

    // A restart tells nothing again, and the next call of the session is another message.
    gateway.crash();
    let gateway = home.serve();
    let agent = agent.back_at(&gateway.url("work"));
    let _three = agent.begin(3, "write_file", write("c.md")).await;
    let again = receiver.many(5).await.remove(4).json();
    assert_eq!((&again["event"], &again["number"]), (&json!("opened"), &json!(1)));
    assert_ne!(again["message"], body["message"]);
}

/// The inbox shows a path whatever it looks like; a chat is told nothing that looks like a secret.
#[tokio::test]
async fn a_path_that_looks_like_a_secret_is_in_no_message() {
    let receiver = Receiver::start().await;
    let home = home(generic(&receiver));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let path = format!("notes/{}ghp_{}.md", "folder/".repeat(5), "a1".repeat(18));
    let _one = agent.begin(1, "write_file", write(&path)).await;
    let told = receiver.many(1).await.remove(0);
    assert_eq!(told.json()["approvals"][0]["label"], "write_file [redacted]");
    assert!(!told.text.contains("ghp_") && !told.text.contains("a1a1"), "{}", told.text);
    let held = gateway.held(1).await;
    assert_eq!(held[0]["call"]["arguments"]["path"], path);
}

#[tokio::test]
async fn what_fails_is_tried_again_and_shown() {
    let receiver = Receiver::start().await;
    receiver.will([
        Answer::Status(500, Vec::new(), Value::Null),
        Answer::Drop,
        Answer::Status(429, vec![("retry-after", "1".into())], Value::Null),
    ]);
    let home = home(generic(&receiver));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let _held = agent.begin(1, "write_file", write("a.md")).await;
    let id = gateway.held(1).await[0]["id"].as_str().unwrap().to_owned();
    let pending = notified(&gateway, &id, "pending").await;
    assert_eq!(pending["notified"][0]["detail"], "it answered 500");
    let all = receiver.many(4).await;
    let deliveries: Vec<&str> = all.iter().map(|one| one.header("portcullis-delivery")).collect();
    assert_eq!(deliveries, [deliveries[0]; 4], "the same word");
    let told = notified(&gateway, &id, "delivered").await;
    assert_eq!(told["notified"].as_array().unwrap().len(), 1);

    // What no other try would change is not tried again; redirects are not followed.
    let elsewhere = Receiver::start().await;
    receiver.will([Answer::Status(307, vec![("location", format!("{}/hook", elsewhere.origin))], Value::Null)]);
    let _other = Agent::modern(&gateway.url("work")).begin(2, "write_file", write("b.md")).await;
    let ids = gateway.held(2).await;
    let other = ids.iter().find(|approval| approval["id"] != id.as_str()).unwrap()["id"].as_str().unwrap();
    let failed = notified(&gateway, other, "failed").await;
    assert_eq!(failed["notified"][0]["detail"], "it answered 307");
    assert!(elsewhere.all().is_empty());
    assert_eq!(receiver.all().len(), 5);
}

#[tokio::test]
async fn ten_processes_tell_once() {
    let receiver = Receiver::start().await;
    let home = home(generic(&receiver));
    let gateways: Vec<Gateway> = (0..10).map(|_| home.serve()).collect();
    let agents =
        futures_util::future::join_all(gateways.iter().map(|one| async { Agent::legacy(&one.url("work")).await }))
            .await;
    let mut held = Vec::new();
    for (at, agent) in agents.iter().enumerate() {
        held.push(agent.begin(1, "write_file", write(&format!("{at}.md"))).await);
    }
    let all = gateways[0].held(10).await;
    for approval in &all {
        notified(&gateways[9], approval["id"].as_str().unwrap(), "delivered").await;
    }
    for (approval, gateway) in all.iter().zip(gateways.iter().rev()) {
        assert_eq!(gateway.reject(approval, "no").await.0, 200);
    }
    for approval in &all {
        notified(&gateways[4], approval["id"].as_str().unwrap(), "closed").await;
    }
    // Whoever was second looks again within a second or so.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let mut deliveries: Vec<String> =
        receiver.all().iter().map(|one| one.header("portcullis-delivery").to_owned()).collect();
    assert_eq!(deliveries.len(), 20, "ten messages, opened and closed: {deliveries:?}");
    deliveries.sort_unstable();
    deliveries.dedup();
    assert_eq!(deliveries.len(), 20);
}

#[tokio::test]
async fn a_receiver_that_hangs_delays_nothing() {
    let receiver = Receiver::start().await;
    receiver.will(std::iter::repeat_n(Answer::Hang, 50));
    let home = home(generic(&receiver));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("a.md")).await;
    receiver.many(1).await;
    let began = Instant::now();
    let held = gateway.held(1).await;
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    let ran = reply(answer, 1).await;
    assert_ne!(ran["result"]["isError"], true, "{ran}");
    assert!(home.root().join("a.md").exists());
    assert!(began.elapsed() < Duration::from_secs(8), "the receiver still hangs: {:?}", began.elapsed());
    assert_eq!(receiver.all().len(), 1);
}

#[tokio::test]
async fn what_a_process_was_saying_when_it_died_is_said_by_the_next() {
    let receiver = Receiver::start().await;
    receiver.will([Answer::Hang]);
    let home = home(generic(&receiver));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let _held = agent.begin(1, "write_file", write("a.md")).await;
    receiver.many(1).await;
    gateway.crash();
    let gateway = home.serve();
    let all = receiver.many(2).await;
    let [first, second] = [0, 1].map(|at: usize| all[at].header("portcullis-delivery").to_owned());
    assert_eq!(first, second, "the same word, to be known by its delivery id");
    let id = gateway.held(1).await[0]["id"].as_str().unwrap().to_owned();
    notified(&gateway, &id, "delivered").await;
}

#[tokio::test]
async fn those_who_were_asked_are_reminded() {
    let receiver = Receiver::start().await;
    let home = home(generic(&receiver)).with("approvals", json!({ "hold_for": "60s", "expires": "4s" }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("a.md")).await;
    assert_eq!(about(&reply(answer, 1).await)["reason"], "expired");
    let events: Vec<Value> = receiver.many(3).await.iter().map(|one| one.json()["event"].clone()).collect();
    assert_eq!(events, ["opened", "reminded", "closed"]);
    let log = audit(&home);
    assert_eq!(log.matches("\"event\":\"approval.reminded\"").count(), 1, "{log}");
}

#[tokio::test]
async fn a_slack_bot_changes_its_one_message_and_other_chats_are_told_in_their_forms() {
    let [bot, hook, teams, pager] =
        [Receiver::start().await, Receiver::start().await, Receiver::start().await, Receiver::start().await];
    bot.will([Answer::Status(200, Vec::new(), json!({ "ok": true, "ts": "17.5", "channel": "C1" }))]);
    let home = home(json!([
        { "name": "bot", "token": "xoxb-of-the-tests", "channel": "#sec", "api": format!("{}/api", bot.origin), "severity": "normal" },
        { "name": "hook", "webhook": hook.origin, "template": "slack" },
        { "name": "office", "webhook": teams.origin, "template": "teams", "groups": ["default"] },
        { "name": "pager", "webhook": pager.origin, "template": "pagerduty", "routing_key": "the routing key" },
        { "name": "never", "webhook": pager.origin, "template": "slack", "groups": ["other"] },
    ]));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let _held = agent.begin(1, "write_file", write("<!channel> *bold* [click](https://evil.example)")).await;
    let posted = bot.many(1).await.remove(0);
    assert_eq!(
        (posted.path.as_str(), posted.header("authorization")),
        ("/api/chat.postMessage", "Bearer xoxb-of-the-tests")
    );
    for (text, body) in
        [(posted.text.clone(), posted.json()), (hook.many(1).await[0].text.clone(), hook.all()[0].json())]
    {
        assert!(!text.contains("<!") && !text.contains("://evil") && text.contains("&lt;!channel&gt;"), "{text}");
        assert_eq!((&body["mrkdwn"], &body["unfurl_links"]), (&json!(false), &json!(false)));
        for block in body["blocks"].as_array().unwrap() {
            assert_eq!(block["text"]["type"], "plain_text", "{block}");
        }
    }
    let id = gateway.held(1).await[0]["id"].as_str().unwrap().to_owned();
    let link = format!("{}/#/approvals/{id}", gateway.admin);
    assert_eq!(posted.json()["blocks"][1]["accessory"]["url"], link);
    let card = teams.many(1).await[0].json()["attachments"][0]["content"].clone();
    for block in card["body"].as_array().unwrap() {
        assert_eq!((&block["type"], &block["inlines"][0]["type"]), (&json!("RichTextBlock"), &json!("TextRun")));
    }
    assert_eq!(card["actions"][0]["url"], link);
    let incident = pager.many(1).await[0].json();
    assert_eq!((&incident["event_action"], &incident["payload"]["severity"]), (&json!("trigger"), &json!("warning")));
    assert_eq!(incident["routing_key"], "the routing key");

    eventually("all four", || async {
        let approval = gateway.get(&format!("approvals/{id}")).await;
        let states =
            approval["notified"].as_array().unwrap().iter().filter(|told| told["state"] == "delivered").count();
        (states == 4).then_some(())
    })
    .await;
    assert_eq!(gateway.api(Method::POST, &format!("approvals/{id}/reject"), json!({ "note": "no" })).await.0, 200);
    let changed = bot.many(2).await.remove(1);
    assert_eq!(
        (changed.path.as_str(), &changed.json()["ts"], &changed.json()["channel"]),
        ("/api/chat.update", &json!("17.5"), &json!("C1"))
    );
    assert_eq!(changed.json()["text"], "a call of local: rejected by ana");
    let resolved = pager.many(2).await.remove(1).json();
    assert_eq!((&resolved["event_action"], &resolved["dedup_key"]), (&json!("resolve"), &incident["dedup_key"]));
    assert_eq!((hook.all().len(), teams.all().len(), pager.all().len()), (1, 1, 2));
    for secret in ["xoxb-of-the-tests", "the routing key"] {
        assert!(!gateway.log().contains(secret));
    }
}

#[tokio::test]
async fn a_mail_is_plain_text_without_headers_of_an_agent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mails = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        receive_mail(stream).await
    });
    let home = home(json!([{ "name": "mail", "smtp": format!("smtp://127.0.0.1:{port}"),
        "from": "Gate <gate@example.com>", "to": ["ops@example.com", "boss@example.com"] }]));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let _held = agent.begin(1, "write_file", write("Bcc: victim@example.com https://evil.example")).await;
    let (envelope, mail) = tokio::time::timeout(Duration::from_secs(30), mails).await.expect("a mail").expect("whole");
    assert_eq!(envelope, ["MAIL FROM:<gate@example.com>", "RCPT TO:<ops@example.com>", "RCPT TO:<boss@example.com>"]);
    let (headers, body) = mail.split_once("\n\n").expect("headers and a body");
    assert!(headers.contains("Subject: [portcullis] a call of local waits for a decision"), "{headers}");
    assert!(
        headers.contains("Content-Type: text/plain") && headers.contains("Auto-Submitted: auto-generated"),
        "{headers}"
    );
    assert!(!headers.contains("Bcc") && !headers.contains("victim"), "{headers}");
    assert!(!body.contains("://evil") && !body.contains("\nBcc") && !body.contains("a very secret content"), "{body}");
    let id = gateway.held(1).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(notified(&gateway, &id, "delivered").await["notified"][0]["channel"], "mail:mail");
}

/// Speaks as much SMTP (RFC 5321) as it takes to receive one mail: its envelope, and its text with lines that end in `\n`.
async fn receive_mail(stream: tokio::net::TcpStream) -> (Vec<String>, String) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 sink\r\n").await.expect("a greeting");
    let (mut envelope, mut mail) = (Vec::new(), String::new());
    while let Some(line) = lines.next_line().await.expect("a line") {
        let word = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer: &[u8] = match word.as_str() {
            "MAIL" | "RCPT" => {
                let parameters = line.find('>').map_or(line.len(), |at| at + 1);
                envelope.push(line[..parameters].to_owned());
                b"250 ok\r\n"
            }
            "DATA" => {
                write.write_all(b"354 go on\r\n").await.expect("an answer");
                while let Some(line) = lines.next_line().await.expect("a line").filter(|line| line != ".") {
                    mail.push_str(line.strip_prefix('.').unwrap_or(&line));
                    mail.push('\n');
                }
                write.write_all(b"250 taken\r\n").await.expect("an answer");
                return (envelope, mail);
            }
            _ => b"250 sink\r\n",
        };
        write.write_all(answer).await.expect("an answer");
    }
    panic!("the client left: {envelope:?}");
}
