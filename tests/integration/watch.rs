//! `approvals watch` at a terminal: a pseudo-terminal, keys, and the terminal as it was at the end.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, reply};
use crate::harness::gateway::{Gateway, Home, PORTCULLIS, TOKEN};

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: urgent, verdict: ask, tool: write_file, path: docs/, approval: { severity: high } }
";

/// Runs a command at a pseudo-terminal of 120 columns and 60 rows. Steps are pairs: what must be on the screen, and what is
/// typed then (`SIGTERM`: the signal). Prints all output, then one line of JSON.
const AT_A_TERMINAL: &str = r"
import fcntl, json, os, pty, select, signal, struct, subprocess, sys, termios, time
command, steps = json.load(sys.stdin)
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 60, 120, 0, 0))
before = termios.tcgetattr(slave)
def session():
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=session,
                         env=dict(os.environ, TERM='xterm'))
said, seen, until = b'', 0, time.time() + 60
while time.time() < until:
    if select.select([master], [], [], 0.05)[0]:
        said += os.read(master, 65536)
    if steps and steps[0][0].encode() in said[seen:]:
        # What was typed before must not meet what was on the screen before.
        seen = len(said)
        keys = steps.pop(0)[1]
        if keys == 'SIGTERM':
            child.send_signal(signal.SIGTERM)
        else:
            os.write(master, keys.encode())
    if child.poll() is not None and not select.select([master], [], [], 0.1)[0]:
        break
child.kill()
sys.stdout.buffer.write(said)
print()
print(json.dumps({'status': child.wait(), 'restored': termios.tcgetattr(slave) == before, 'left': steps}))
";

fn at_a_terminal(gateway: &Gateway, home: &Home, steps: Value) -> (String, Value) {
    let token_file = home.base().join("token");
    std::fs::write(&token_file, TOKEN).expect("a file");
    let command = json!([PORTCULLIS, "approvals", "watch", "--url", gateway.admin, "--token-file", token_file]);
    let mut python = Command::new("python3")
        .args(["-c", AT_A_TERMINAL])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let input = json!([command, steps]).to_string();
    python.stdin.take().expect("its input").write_all(input.as_bytes()).expect("the steps");
    let output = python.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (said, end) = text.trim_end().rsplit_once('\n').expect("a last line");
    (said.to_owned(), serde_json::from_str(end).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_opened_and_decided_by_keys_and_the_terminal_is_given_back() {
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let urgent = agent.begin(1, "write_file", json!({ "path": "docs/new.md", "content": "written once" })).await;
    let evil = json!({ "path": "b\u{202e}x.md", "content": "never \u{1b}[2J written" });
    let other = agent.begin(2, "write_file", evil).await;
    gateway.held(2).await;
    let steps = json!([
        ["2 calls wait for a decision", "\r"],
        ["a approve", "a"],
        ["type yes and Enter", "yes\r"],
        ["1 call waits for a decision", "\r"],
        ["a approve", "r"],
        ["a note for the agent", "too odd\r"],
        ["nothing waits for a decision", "q"],
    ]);
    let (said, end) = at_a_terminal(&gateway, &home, steps);
    assert_eq!(end, json!({ "status": 0, "restored": true, "left": [] }), "{said:?}");
    assert!(
        said.contains("\u{1b}[?1049h") && said.contains("\u{1b}[?1049l") && said.contains("\u{1b}[?25h"),
        "{said:?}"
    );
    assert!(!said.contains('\u{202e}') && !said.contains("\u{1b}[2J"), "{said:?}");
    assert!(said.contains(r"\u{202e}"), "{said:?}");
    let ran = reply(urgent, 1).await;
    assert_ne!(ran["result"]["isError"], true, "{ran}");
    let refused = reply(other, 2).await;
    assert_eq!((&about(&refused)["state"], &about(&refused)["reason"]), (&json!("rejected"), &json!("approver")));
    assert!(refused.to_string().contains("too odd"), "{refused}");
    assert!(home.root().join("docs/new.md").exists());

    // A signal ends it as well, and a key that is pressed at nothing decides nothing.
    let waits = agent.begin(3, "write_file", json!({ "path": "c.md", "content": "c" })).await;
    let id = gateway.held(1).await[0]["id"].clone();
    let (said, end) = at_a_terminal(&gateway, &home, json!([["1 call waits", "yyy"], ["1 call waits", "SIGTERM"]]));
    assert_eq!(end, json!({ "status": 0, "restored": true, "left": [] }), "{said:?}");
    assert_eq!(gateway.waiting().await[0]["id"], id);
    drop(waits);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_claimed_and_approved_and_remembered_by_keys() {
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let arguments = json!({ "path": "a.md", "content": "a" });
    let answer = agent.begin(1, "write_file", arguments.clone()).await;
    gateway.held(1).await;
    let steps = json!([
        ["1 call waits for a decision", "\r"],
        ["c look", "c"],
        ["you are looking", "m"],
        ["approve and remember: 1 to", "1"],
        ["and remember this?", "y"],
        ["nothing waits for a decision", "q"],
    ]);
    let (said, end) = at_a_terminal(&gateway, &home, steps);
    assert_eq!(end, json!({ "status": 0, "restored": true, "left": [] }), "{said:?}");
    assert!(said.contains("until it ends, without a question:"), "{said:?}");
    assert_ne!(reply(answer, 1).await["result"]["isError"], true);
    let again = agent.call(2, "write_file", arguments).await;
    assert_ne!(again["result"]["isError"], true, "it passes without a question: {again}");
    let grants = gateway.get("grants").await;
    assert_eq!((&grants["items"][0]["state"], &grants["items"][0]["used"]), (&json!("active"), &json!(1)), "{grants}");
}

#[test]
fn without_a_terminal_it_says_lines() {
    // `cli::` watches without one; here only that no terminal is looked for.
    let output = Command::new(PORTCULLIS)
        .args(["approvals", "watch", "--url", "http://127.0.0.1:9"])
        .env("PORTCULLIS_TOKEN", "x")
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(!String::from_utf8_lossy(&output.stdout).contains('\u{1b}'));
}
