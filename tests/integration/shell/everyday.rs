//! What agents run every day: a refusal that nobody needs is a fault like any other.

use std::fs;
use std::os::unix::fs::symlink;

use portcullis::record::Verdict;

use super::gate::Gate;

/// A policy that a careful person would write for a coding agent.
const POLICY: &str = "version: 1
guardrails:
  - { name: credentials, verdict: deny, path: ['**/.env'], reason: Credentials never reach a model. }
groups:
  default:
    rules:
      - { verdict: deny, command: [rm, sudo], reason: Ask a person. }
      - { verdict: deny, command: git push, option: [--force, -f], reason: History is shared. }
      - verdict: allow
        command: [ls, cat, head, tail, wc, sort, uniq, cut, tr, grep, rg, sed, find, echo, printf, date, which, type, test, '[', '[[',
          'true', 'false', pwd, cd, jq, stat, file, du, df, tree, basename, dirname, diff, nl, comm, realpath, uname, whoami, seq, sleep,
          md5sum, sha256sum, xargs, env, time, timeout,
          git status, git log, git diff, git show, git branch, git rev-parse, git blame, git remote, git ls-files, git grep, git stash list,
          git tag, git fetch, cargo tree, npm ls, pip list]
      - { verdict: allow, command: find, option: [-exec] }
      - verdict: allow
        command: [git add, git commit, git checkout, git switch, git stash, cargo build, cargo test, cargo check, cargo clippy,
          cargo fmt, npm test, npm run]
        path: ./
      - { verdict: allow, command: [mkdir, touch], path: out/ }
      - { verdict: allow, command: cp, path: [docs/, out/], except: [{ access: write, path: docs/ }] }
      - { verdict: allow, tool: '@fs_write', path: out/ }
";

#[test]
fn everyday_commands_get_the_verdict_that_a_person_would_give() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for path in ["docs", "src", "out", ".git"] {
        fs::create_dir(root.join(path)).unwrap();
    }
    for file in ["docs/a.md", "docs/b.md", "src/main.rs", "README.md", "package.json", "log.txt", "list.txt", ".env"] {
        fs::write(root.join(file), "x\n").unwrap();
    }
    symlink("a.md", root.join("docs/near.md")).unwrap();
    // Searches of the whole root come by `.env`, and so ask; they are judged in a root without it.
    let bare = tempfile::tempdir().unwrap();
    let bare = bare.path().canonicalize().unwrap();
    fs::create_dir(bare.join("src")).unwrap();
    fs::create_dir(bare.join("docs")).unwrap();
    let gates = [Gate::new(&root, POLICY), Gate::new(&bare, POLICY)];
    let mut wrong = Vec::new();
    for line in include_str!("everyday.txt").lines().filter(|line| !line.starts_with('#')) {
        let (wanted, text) = line.split_once(' ').unwrap();
        let text = text.replace("\\nsome", "\nsome").replace("/\\nEOF", "/\nEOF");
        let wanted = match wanted {
            "allow" => Verdict::Allow,
            "ask" => Verdict::Ask,
            _ => Verdict::Deny,
        };
        let got = gates[1].judged(&text).unwrap();
        if got.verdict != wanted {
            wrong.push(format!(
                "{text:?}: {wanted:?} is due, got {:?} by {:?}: {:?}",
                got.verdict, got.decided_by, got.reasons
            ));
        }
        if wanted != Verdict::Allow {
            assert!(gates[0].verdict(&text) >= wanted, "{text}");
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}
