//! What an allow covers in a shell text, and what a deny reaches there.

use super::*;
use crate::facet::extract_shell;
use crate::record::Verdict::{self, Allow, Ask, Deny};

/// The verdict for a text, in the root `/root` of a file system that nobody shares.
fn verdict(rules: &[&str], text: &str) -> Verdict {
    let config = UpstreamConfig::new("files", Transport::Workspace, "/root".into());
    let space = Space::new(&UpstreamConfig { filesystem: crate::config::FileSystem::None, ..config });
    let touched = extract_shell(&space, text).unwrap();
    judge(&super::rules(rules), &call("run_shell"), &touched, &space).verdict
}

const LOOK: &str = "{verdict: allow, command: [ls, cat, grep, find, sort, sed, echo, git status, git log, git diff, head, xargs, sh, bash, env, cd, tar, curl, jq, cp, tool]}";

#[test]
fn an_allow_without_a_path_covers_reading_in_the_root() {
    for text in [
        "ls",
        "cat a b | sort -n | head -5",
        "git log --oneline -5",
        "git diff HEAD",
        "cd docs && cat a",
        "bash -c 'cat a'",
        "grep -rn x docs",
        "find docs -name '*.md'",
        "ls a > /dev/null 2>&1",
        "echo \"$X\" $Y *",
        "LANG=C sort a",
        "sh -c 'cd a; ls'",
        "git -C docs status",
        "cat <<< x",
        "echo $(ls docs)",
        "sed -n 's/a/b/p' x",
        "env LANG=C ls",
        "jq -r .a x",
    ] {
        assert_eq!(verdict(&[LOOK], text), Allow, "{text}");
    }
    for text in [
        "cat /etc/passwd",
        "cat ../a",
        "cd .. && cat a",
        "cd docs; cat ../../a",
        "git -C .. log",
        "ls > a",
        "cat a >> b",
        "cp a b",
        "ls; pwd",
        "ls | sh",
        "git push",
        "git",
        "git -c x=y status",
        "git log --output=x",
        "sort -o x a",
        "sort --compress-program=x a",
        "find . -exec rm {} +",
        "find . -delete",
        "find . -fprint x",
        "sed -i s/a/b/ x",
        "sed -n 'w x' a",
        "sed -n -l 5p 'w x' a",
        "tar -cf x a",
        "tar -tf a -I x",
        "tar xf a",
        "curl http://h.example/",
        "curl -o x h.example",
        "jq -f a b",
        "jq 'import \"a\"; .'",
        "xargs ls",
        "xargs -I ls sh -c ls",
        "sh x.sh",
        "bash",
        "env ls=1 ls",
        "env X=1 ls",
        "env -S 'ls'",
        "X=1 ls",
        "cat $X",
        "cat *",
        "cat ~/x",
        "./ls",
        "/tmp/ls",
        "LS",
        "ls\u{a0}-l",
        "tool a",
        "tool -o a",
        "tool --out=a",
        "tool $(ls)",
        "grep -f /etc/x a",
        "cat < /etc/passwd",
        "ls &> a",
        "cat a <> b",
        "ls >| a",
        "bash -c 'ls > a'",
        "bash --rcfile x -c ls",
        "sh -c \"$X\"",
        "ls () { x; }",
        "env -C / cat etc/passwd",
        "cd / && cat etc/passwd",
        "cd $X && cat a",
        "git diff --no-index a /etc/passwd",
        "git log --ext-diff",
        "echo ${X@P}",
        "echo $((X))",
        "time ls",
        "! ls",
        "cat a\\\n /etc/passwd",
        "zsh -c ls",
        "ls -la --hyperlink-x",
        "git log -p ../x",
        "head -n 1 -- /etc/passwd",
        "cat -- ../x",
        "cat file:///root/a",
        "git show HEAD",
        "grep -r x /",
        "find / -name x",
        "ls ..",
    ] {
        // `time` and `!` are harmless, and may be understood one day.
        if !matches!(text, "! ls") {
            assert_eq!(verdict(&[LOOK], text), Ask, "{text}");
        }
    }
}

#[test]
fn the_index_finds_every_rule_on_commands_and_their_places() {
    use crate::policy::index::{Names, Near, RuleSet};
    use crate::policy::judge::{matches, target};
    let policy = super::rules(&[
        "{verdict: deny, command: [rm, git push], reason: r}",
        "{verdict: allow, command: cat, path: docs/}",
        "{verdict: allow, command: ls, path: ./}",
        "{verdict: allow, tool: '@shell', path: out/}",
        "{verdict: ask, option: [-f]}",
        "{verdict: ask, path: '**/DOCS/'}",
        "{verdict: ask, tool: run_shell, command: 'kubectl delete'}",
    ]);
    let space = {
        let config = UpstreamConfig::new("files", Transport::Workspace, "/root".into());
        Space::new(&UpstreamConfig { filesystem: crate::config::FileSystem::None, ..config })
    };
    let set = RuleSet::new(policy.rules().to_vec());
    let subject = call("run_shell");
    let concerning = set.concerning(&Names::of(&subject));
    let mut found = 0;
    for text in [
        "/bin/RM -f docs/a",
        "cat docs/a docs/b",
        "cat < docs/a",
        "ls",
        "cd docs && ls > /dev/null",
        "cd out && cat a",
        "git -C x push -f",
        "r\\m x; $X; ls (",
        "rm.exe a",
        "kubectl -n x delete pod",
        "tool docs/a",
    ] {
        let touched = extract_shell(&space, text).unwrap();
        for facet in &touched.facets {
            let target = target(facet, &touched.facets);
            let near: Vec<&str> = concerning.near(&Near::of(target)).map(|rule| rule.label.as_str()).collect();
            for rule in policy.rules().iter().filter(|rule| matches(rule, &subject, target)) {
                assert!(near.contains(&rule.label.as_str()), "{} for {facet:?} of {text}", rule.label);
                found += 1;
            }
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn denied_programs_are_found_among_the_words_of_unknown_ones() {
    let denied =
        ["{verdict: allow, tool: '@any', path: ./}", "{verdict: deny, command: [rm, python3.11, a@b], reason: r}"];
    for text in ["tool rm", "tool -x=RM", "tool /bin/rm.exe", "tool python3.11", "tool 'x y' b@a", "tool a b"] {
        assert_eq!(verdict(&denied, text), Ask, "{text}");
    }
    for text in ["tool rmdir", "tool python3", "tool a", "tool x"] {
        assert_eq!(verdict(&denied, text), Allow, "{text}");
    }
    let nameless = ["{verdict: allow, tool: '@any', path: ./}", "{verdict: deny, command: ['@'], reason: r}"];
    assert_eq!(verdict(&nameless, "tool x"), Ask, "what has no name may stand anywhere");
}

#[test]
fn powers_and_places_need_to_be_named() {
    let sort = "{verdict: allow, command: sort, option: [-o], path: out/}";
    assert_eq!(verdict(&[sort], "sort -o out/a out/b"), Allow);
    assert_eq!(verdict(&[sort], "sort -o out/a in/b"), Ask, "all of a command's paths, by one rule");
    assert_eq!(verdict(&[sort], "sort --compress-program=x -o out/a out/b"), Ask);
    let write = "{verdict: allow, command: echo, path: out/}";
    assert_eq!(verdict(&[write], "echo x > out/a"), Allow);
    assert_eq!(verdict(&[write], "echo x > a"), Ask);
    assert_eq!(verdict(&[write], "echo x"), Ask, "it runs in the root, not in out/");
    assert_eq!(verdict(&[write], "cd out && echo x"), Ask, "`cd` is a command of its own");
    let two = ["{verdict: allow, command: [echo, cat]}", "{verdict: allow, tool: '@fs_write', path: out/}"];
    assert_eq!(verdict(&two, "cat a > out/b"), Allow);
    assert_eq!(verdict(&two, "tool > out/b"), Ask);
    assert_eq!(verdict(&["{verdict: allow, tool: run_shell}"], "cat a; ls"), Allow);
    assert_eq!(verdict(&["{verdict: allow, tool: run_shell}"], "cat a > b"), Ask);
    assert_eq!(verdict(&["{verdict: allow, command: tool, path: ./}"], "tool -x a b=c"), Allow);
    assert_eq!(verdict(&["{verdict: allow, command: tool, path: ./}"], "tool -x --out=/etc/a"), Ask);
}

#[test]
fn a_deny_reaches_every_command_and_spelling() {
    let deny =
        ["{verdict: allow, tool: '@any', path: ./}", "{verdict: deny, command: [rm, git push, tool drop], reason: r}"];
    for text in [
        "rm a",
        "ls; rm a",
        "/bin/rm a",
        "'r'm a",
        "sudo rm a",
        "bash -c 'rm a'",
        "echo $(rm a)",
        "cat <(rm a)",
        "git -C x push",
        "git --no-pager push",
        "git -c a=b push",
        "git push -f",
        "tool -n x drop",
        "tool drop",
        "git $X",
        "find . -exec rm {} \\;",
        "env -S 'rm a'",
        "select x in a; do rm a; done",
        "RM a",
        "rm.exe a",
        "strange rm a; rm",
        "f() { rm a; }",
        "xargs rm",
    ] {
        assert_eq!(verdict(&deny, text), Deny, "{text}");
    }
    for text in ["rmdir a", "git commit -m 'rm a; git push'", "echo rm", "grep rm a", "cat 'rm'", "git log --grep push"]
    {
        assert_ne!(verdict(&deny, text), Deny, "{text}");
    }
    assert_eq!(verdict(&deny, "strange rm a"), Ask, "an unknown program may run what it is given");
    let option = ["{verdict: deny, command: git push, option: [--force, -f], reason: r}"];
    for text in ["git push --force", "git push -f", "git push -uf origin", "git push origin --forc", "git push $X"] {
        assert_eq!(verdict(&option, text), Deny, "{text}");
    }
    assert_eq!(verdict(&option, "git push origin"), Ask);
    let except = ["{verdict: deny, command: rm, reason: r, except: [{path: build/}]}"];
    assert_eq!(verdict(&except, "rm -r build/x"), Ask);
    assert_eq!(verdict(&except, "rm -r build/x src"), Deny);
}

#[test]
fn an_allow_covers_the_words_that_it_names() {
    for (command, text) in [
        ("terraform plan", "terraform plan"),
        ("gh pr list", "gh pr list"),
        ("aws s3 ls", "aws s3 ls"),
        ("mvn test", "mvn test -q"),
        ("npm run build", "npm run build"),
        ("pip install requests", "pip install requests"),
        ("docker compose up", "docker compose up"),
        ("cargo +nightly check", "cargo +nightly check"),
    ] {
        let rule = format!("{{verdict: allow, command: {command}}}");
        assert_eq!(verdict(&[&rule], text), Allow, "{text}");
    }
    for (command, text) in [
        ("terraform", "terraform plan"),
        ("terraform plan", "terraform plan plan"),
        ("terraform plan", "terraform plan /etc/passwd"),
        ("terraform plan", "terraform plan > plan"),
        ("terraform plan", "terraform -chdir=x plan"),
        ("npm run build", "npm run build build"),
        ("npm run", "npm run build"),
        ("cargo check", "cargo +nightly check"),
        ("rm plan", "rm plan"),
    ] {
        let rule = format!("{{verdict: allow, command: {command}}}");
        assert_eq!(verdict(&[&rule], text), Ask, "{text}");
    }
    let rules = ["{verdict: allow, command: terraform plan}", "{verdict: deny, path: plan}"];
    assert_eq!(verdict(&rules, "terraform plan"), Deny);
}

#[test]
fn words_that_kinds_are_listed_in_are_refused_with_them() {
    let deny = [
        "{verdict: allow, command: kubectl get}",
        "{verdict: deny, command: [kubectl get secret, kubectl get secrets]}",
    ];
    let except =
        ["{verdict: allow, command: kubectl get, except: [{command: [kubectl get secret, kubectl get secrets]}]}"];
    for text in [
        "kubectl get secret",
        "kubectl get secret/db",
        "kubectl get pods,secrets",
        "kubectl get secrets.v1. -o yaml",
        "kubectl get pod/a secret/b",
        "kubectl -n x get -o yaml secrets",
    ] {
        assert_eq!(verdict(&deny, text), Deny, "{text}");
        assert_eq!(verdict(&except, text), Ask, "{text}");
    }
    assert_eq!(verdict(&deny, "kubectl get --raw /api/v1/namespaces/x/secrets"), Deny);
    assert_eq!(verdict(&deny, "kubectl get --raw=/api/v1/secrets"), Deny);
    for text in ["kubectl get pods", "kubectl get pods,services -o wide", "kubectl get pod/secret-free"] {
        assert_eq!(verdict(&deny, text), Allow, "{text}");
        assert_eq!(verdict(&except, text), Allow, "{text}");
    }
}

#[test]
fn what_may_run_a_denied_command_asks_where_the_rest_is_allowed() {
    let config = UpstreamConfig::new("files", Transport::Workspace, "/root".into());
    let space = Space::new(&UpstreamConfig { filesystem: crate::config::FileSystem::None, ..config });
    let policy = policy("groups:\n  g:\n    otherwise: allow\n    rules:\n      - {verdict: deny, command: rm}\n");
    let verdict = |text: &str| {
        let touched = extract_shell(&space, text).unwrap();
        judge(&policy, &call("run_shell"), &touched, &space).verdict
    };
    for text in [
        "caffeinate rm x",
        "setpriv --nnp rm x",
        "fakeroot -- rm x",
        "bwrap --bind / / rm x",
        "valgrind rm x",
        "hyperfine 'rm x'",
        "docker exec c rm x",
        "kubectl exec p -- rm x",
        "npm exec -- rm x",
        "uv run rm x",
        "git submodule foreach 'rm x'",
        "git bisect run rm x",
        "git -c alias.x='!rm x' x",
        "sort --compress-program=rm a",
        "sed '1e rm x' a",
    ] {
        assert_eq!(verdict(text), Ask, "{text}");
    }
    for text in ["rm x", "fish -c 'rm x'", "nice rm x"] {
        assert_eq!(verdict(text), Deny, "{text}");
    }
    for text in
        ["echo rm", "caffeinate ls x", "git commit -m 'rm x'", "sort -o out a", "grep rm a", "docker run alpine ls"]
    {
        assert_eq!(verdict(text), Allow, "{text}");
    }
}

#[test]
fn a_deny_reaches_what_is_copied_into_a_folder() {
    let rules = ["{verdict: allow, tool: '@any', path: ./}", "{verdict: deny, path: docs/frozen.md, access: write}"];
    for text in ["cp x/frozen.md docs", "mv x/frozen.md docs/", "install x/frozen.md docs", "cp -t docs x/frozen.md"] {
        assert_eq!(verdict(&rules, text), Deny, "{text}");
    }
    assert_eq!(verdict(&rules, "cp x/frozen.md docs/other.md"), Allow);
    assert_eq!(verdict(&["{verdict: deny, command: tar, option: -x}"], "tar xf a"), Deny);
}

#[test]
fn what_an_earlier_command_makes_may_be_a_link() {
    let rules = ["{verdict: allow, tool: '@any', path: ./}"];
    for text in [
        "tar xf docs/a.tgz -C docs/c && cat docs/c/link",
        "cp -a docs/sub docs/c && cat docs/c/l",
        "mv docs/sub docs/c; cat docs/c/l",
        "tar xf a.tgz -C c && cd c/link && cat x",
        "cat docs/c/l & cp -a docs/sub docs/c",
    ] {
        assert_eq!(verdict(&rules, text), Ask, "{text}");
    }
    for text in [
        "cp docs/a docs/b && cat docs/b",
        "cat docs/c/l && cp -a docs/sub docs/c",
        "mkdir -p docs/a && touch docs/a/b",
        "rm -r build && cp -r dist build",
        "tar xf docs/a.tgz -C docs/c && cat docs/d",
        "gh pr list; gh pr status",
    ] {
        assert_eq!(verdict(&rules, text), Allow, "{text}");
    }
}

#[test]
fn a_test_by_any_name_is_one() {
    for text in ["[ -d docs ]", "[[ -f x ]]", "test -d docs"] {
        assert_eq!(verdict(&["{verdict: allow, command: test}"], text), Allow, "{text}");
        assert_eq!(verdict(&["{verdict: deny, command: test}"], text), Deny, "{text}");
    }
}
