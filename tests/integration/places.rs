//! Where calls are decided when something else has the address: never where nobody can, and no token goes to strangers.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::json;

use crate::harness::gateway::{Home, PORTCULLIS};
use crate::harness::peers;

const POLICY: &str = "version: 1\ngroups: { default: { otherwise: ask } }\n";

/// A `portcullis wrap` that waits for its client.
struct Wrapped(Child, BufReader<ChildStderr>);

impl Wrapped {
    fn start(home: &Home) -> Self {
        let line = home.wrap("faulty", peers::fixture("faulty.py", &[]));
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.current_dir(home.base()).spawn().expect("it starts");
        let said = BufReader::new(child.stderr.take().expect("its standard error"));
        Self(child, said)
    }

    /// The address after these words.
    fn says(&mut self, words: &str) -> String {
        let mut line = String::new();
        while self.1.read_line(&mut line).expect("text") > 0 {
            if let Some((_, rest)) = line.split_once(words) {
                let place = rest.trim_start_matches("http://").split(['/', ',', ' ']).next();
                return place.unwrap_or_default().to_owned();
            }
            line.clear();
        }
        panic!("it did not say where calls are decided");
    }
}

impl Drop for Wrapped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn approvals(home: &Home) -> (bool, String) {
    let config = home.base().join("portcullis.yaml");
    let mut command = Command::new(PORTCULLIS);
    command.args(["approvals", "list", "--format", "json", "--config"]).arg(config);
    let output = command.env_remove("PORTCULLIS_URL").env_remove("PORTCULLIS_TOKEN").output().expect("it runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_does_not_share_the_state_folder_decides_nothing_and_hears_no_token() {
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    stranger.set_nonblocking(true).expect("nonblocking");
    let taken = stranger.local_addr().expect("its address").to_string();
    let home = Home::new(POLICY, json!({ "faulty": { "command": ["true"], "new_tools": "accept" } }))
        .without("approvers")
        .with("listen", json!({ "mcp": { "address": "127.0.0.1:0" }, "admin": { "address": taken } }));

    let mut first = Wrapped::start(&home);
    let place = first.says("approvals are decided at ");
    assert_ne!(place, taken);
    let mut second = Wrapped::start(&home);
    assert_eq!(second.says("approvals are decided at "), place, "one inbox for the processes of a state folder");
    assert_eq!(approvals(&home), (true, String::new()), "the command line finds it");

    // A crash: the other one takes its place.
    drop(first);
    let next = second.says("approvals are now decided at ");
    assert_ne!(next, taken);
    assert_eq!(approvals(&home), (true, String::new()));

    drop(second);
    let (found, said) = approvals(&home);
    assert!(!found && said.contains("no gateway runs on the state folder"), "{said}");
    assert!(stranger.accept().is_err(), "something connected to the stranger");
}
