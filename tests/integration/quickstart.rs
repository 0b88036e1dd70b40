//! The policies and examples that a newcomer starts from load, and do what they say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use http::Method;
use portcullis::config::PolicyConfig;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, text};
use crate::harness::gateway::{Gateway, PORTCULLIS};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_policy_of_the_repository_loads() {
    let policies: Vec<PathBuf> = fs::read_dir(repository().join("policies"))
        .expect("policies/")
        .map(|entry| entry.expect("an entry").path())
        .filter(|file| file.extension().is_some_and(|ext| ext == "yaml"))
        // The tests beside them are no policies.
        .filter(|file| !file.to_string_lossy().ends_with(".test.yaml"))
        .collect();
    assert!(!policies.is_empty());
    for file in policies {
        let config = PolicyConfig { files: vec![file.display().to_string()], ..PolicyConfig::default() };
        let loaded = portcullis::policy::load(&config, &[]);
        assert!(loaded.is_ok(), "{}: {:?}", file.display(), loaded.err());
    }
}

#[test]
fn every_example_loads() {
    let mut seen = 0;
    for example in fs::read_dir(repository().join("examples")).expect("examples/") {
        let file = example.expect("an entry").path().join("portcullis.yaml");
        if !file.exists() {
            continue;
        }
        seen += 1;
        let config = portcullis::config::load(&file).unwrap_or_else(|errors| panic!("{}: {errors:?}", file.display()));
        if let Err(errors) = portcullis::policy::load(&config.policy, &[]) {
            panic!("{}: {errors:?}", file.display());
        }
    }
    assert!(seen > 0, "no example has a portcullis.yaml");
}

/// `init`, then `serve`: only the addresses are changed, so that tests can run beside each other.
#[tokio::test]
async fn what_init_writes_serves() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = fs::canonicalize(folder.path()).expect("its real path");
    let init = Command::new(PORTCULLIS).arg("init").current_dir(&here).env("HOME", &here).output().expect("it starts");
    assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
    let again = Command::new(PORTCULLIS).arg("init").current_dir(&here).env("HOME", &here).output().expect("it starts");
    assert_eq!(again.status.code(), Some(1), "a second init must not write over the first");
    let check = Command::new(PORTCULLIS)
        .args(["policy", "check"])
        .current_dir(&here)
        .env("HOME", &here)
        .output()
        .expect("it starts");
    assert!(
        check.status.success(),
        "{}{}",
        String::from_utf8_lossy(&check.stdout),
        String::from_utf8_lossy(&check.stderr)
    );

    let file = here.join("portcullis.yaml");
    let config = fs::read_to_string(&file).expect("portcullis.yaml");
    let free = config.replace("127.0.0.1:7070", "127.0.0.1:0").replace("127.0.0.1:7071", "127.0.0.1:0");
    assert_ne!(config, free, "it says where it listens:\n{config}");
    fs::write(&file, free).expect("portcullis.yaml");
    let mut command = Command::new(PORTCULLIS);
    command.arg("serve").current_dir(&here).env("HOME", &here).env("XDG_STATE_HOME", here.join("xdg"));
    let gateway = Gateway::start(command);
    let (status, _) = gateway.api(Method::GET, "approvals", Value::Null).await;
    assert_eq!(status, 401, "the test's token is not the first approver's");
    let loaded = portcullis::config::load(&file).expect("it loads");
    let (name, upstream) = loaded.upstreams.iter().next().expect("an upstream");
    fs::create_dir_all(upstream.root.join("secrets")).expect("a folder");
    fs::write(upstream.root.join("secrets/key.pem"), "the key").expect("a file");
    let agent = Agent::legacy(&gateway.url(name)).await;
    let refused = agent.call(1, "read_file", json!({ "path": "secrets/key.pem" })).await;
    assert_eq!(about(&refused)["reason"], "guardrail", "{refused}");
    assert!(!text(&refused).contains("the key"));
}
