//! Texts and what they come to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Instant;

use super::*;

/// The commands, each with its places; `!` where something asks.
fn told(text: &str) -> Vec<String> {
    let script = script(text);
    let place = |place: &Place| {
        let access = match place.access {
            Some(Access::Read) => "r",
            Some(Access::Write) => "w",
            Some(Access::Delete) => "d",
            None => "?",
        };
        let below =
            place.below.iter().filter(|below| !below.is_empty()).map(|below| format!("{below}/")).collect::<String>();
        format!(" {access}:{below}{}{}", place.text, if place.recursive { "/**" } else { "" })
    };
    let command = |command: &Command| {
        let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        let places: String = command
            .places
            .iter()
            .filter(|place| !matches!(place.when, When::Repository | When::Seen))
            .map(place)
            .collect();
        let powers: String = command.powers.iter().map(|names| format!(" +{}", names[0])).collect();
        let bases: Vec<&str> = command.bases.iter().map(|base| base.as_deref().unwrap_or("?")).collect();
        let at = if bases == [""] { String::new() } else { format!(" @{}", bases.join("|")) };
        format!("{}{places}{powers}{at}{}", words.join(" "), if command.floors.is_empty() { "" } else { " !" })
    };
    script.commands.iter().map(command).collect()
}

#[test]
fn words_that_need_no_parser_are_read_as_the_parsers_would() {
    let shown = |text: &str| format!("{:?}", script(text).commands);
    for text in [
        "tool a=b --c=d/e x=",
        "env A=b ls docs/a",
        "git -c x.y=z status",
        "dd if=a of=b",
        "export A=b",
        "sort --outp=out in",
        "kubectl delete -n=x pod p",
        "make A=b all",
    ] {
        let (program, rest) = text.split_once(' ').unwrap();
        assert_eq!(shown(text), shown(&format!("'{program}' {rest}")), "{text}");
    }
    for text in ["a=b ls", "ls =rm", "tool a=~"] {
        assert!(tree::plain_words(text).is_none(), "{text}");
    }
}

#[test]
fn more_commands_than_are_looked_at_are_not_even_parsed() {
    for text in ["ls;".repeat(3_000), "ls\n".repeat(3_000), "ls&&".repeat(400) + &"ls\n".repeat(2_000)] {
        let commands = script(&text).commands;
        assert!(matches!(commands.as_slice(), [one] if one.unread.is_some()), "{}", &text[..20]);
    }
    let quoted = format!("cat <<'E'\n{}E\ngrep '{}' docs", "a; b; c; d\n".repeat(2_000), ";".repeat(4_000));
    assert_eq!(told(&quoted).len(), 2);
    assert!(script(&quoted).commands.iter().all(|command| command.unread.is_none() && command.floors.is_empty()));
}

#[test]
fn simple_commands_are_read_by_their_tables() {
    for (text, expected) in [
        ("cat a b", "cat a b r:a r:b"),
        ("grep -rn x docs", "grep x docs r:docs/**"),
        ("grep -rn x", "grep x r:./**"),
        ("grep -e x -f list a", "grep a r:list r:a"),
        ("sort -o out in", "sort in w:out r:in +-o"),
        ("sort --outp=out in", "sort in w:out r:in +-o"),
        ("git -C sub log -p -- a", "git log a r:sub r:sub/a/**"),
        ("git log --oneline -5", "git log"),
        ("git show HEAD:a/b", "git show HEAD:a/b r:a/b/**"),
        ("git -c x.y=z status", "git status +-c"),
        ("kubectl -n x delete pod p", "kubectl delete pod p"),
        ("kubectl delete -n x pod p", "kubectl delete pod p"),
        ("find a b -name x", "find a b r:a/** r:b/**"),
        ("find a -delete", "find a d:a/** +-delete"),
        ("cp -r a b", "cp a b r:a/** w:b w:b/a/**"),
        ("cp a/x b/", "cp a/x b/ r:a/x w:b/ w:b//x"),
        ("cp -T a b", "cp a b r:a w:b"),
        ("cp -t d a b", "cp a b w:d r:a r:b w:d/a w:d/b +-t"),
        ("mv a b", "mv a b d:a/** w:b w:b/a/**"),
        ("set -euo pipefail", "set"),
        ("exit 0", "exit 0"),
        ("curl -so /dev/null -w '%{http_code}' h.example", "curl h.example r:http://h.example"),
        ("cargo clippy -- -D warnings", "cargo clippy"),
        ("cargo fmt -- --check", "cargo fmt --check"),
        ("find a -maxdepth 1", "find a r:a"),
        ("find a -maxdepth 2", "find a r:a/**"),
        ("sed 's@[[:space:]]*$@@;y/abc/ABC/' a", "sed s@[[:space:]]*$@@;y/abc/ABC/ a r:a"),
        ("sed '/x/{p;s:a:b:;}' a", "sed /x/{p;s:a:b:;} a r:a"),
        ("jq '{env: .env}' a", "jq {env: .env} a r:a"),
        ("jq '$ ENV' a", "jq $ ENV a r:a +import"),
        ("kubectl get -k x", "kubectl get r:x +-k"),
        ("ls", "ls r:."),
        ("head -5 a > b", "head a w:b r:a"),
        ("tool -x a --y=b", "tool -x a --y=b ?:a ?:b"),
        ("tar czf a.tgz docs", "tar czf a.tgz docs w:a.tgz r:docs/**"),
        ("sed -n '1,5p;/x/d' a", "sed 1,5p;/x/d a r:a"),
        ("sed 's/a/b/w out' a", "sed s/a/b/w out a r:a +w"),
        ("rm -rf a", "rm a d:a/**"),
        ("sed -i s/a/b/ x", "sed s/a/b/ x r:x w:x +-i"),
        ("dd if=a of=b", "dd if=a of=b ?:if=a ?:a ?:of=b ?:b"),
        ("curl -s h.example/x", "curl h.example/x r:http://h.example/x"),
        ("X=1 LANG=C ls a", "ls a r:a !"),
        ("LANG=C ls a", "ls a r:a"),
        ("echo * $x", "echo * $x r:."),
        ("cat a 2>&1 >/dev/null", "cat a w:/dev/null r:a"),
        ("cat docs/*.md", "cat docs/*.md r:docs/**"),
        ("ls *", "ls * r:./**"),
        ("echo ../x/*", "echo ../x/* r:../x"),
        ("grep x --include=*.rs -r .", "grep x . r:./**"),
        ("cargo +nightly publish", "cargo publish ++ +publish"),
        ("docker run -v/:/x a", "docker run -v/:/x a ?:/ ?:/x ?:a +run"),
        ("git diff HEAD~1", "git diff HEAD~1 r:./**"),
        ("git show HEAD:a", "git show HEAD:a r:a/**"),
        ("git fetch https://h/x", "git fetch https://h/x r:https://h/x/**"),
        ("git push ../x", "git push ../x r:../x/**"),
        ("git push --repo=x", "git push +--repo"),
        ("curl -F x=@/etc/a https://h.example/", "curl https://h.example/ r:/etc/a r:https://h.example/"),
        ("date 0101", "date 0101 +-s"),
        ("diff a b", "diff a b r:a r:b"),
        // A delimiter within brackets ends nothing.
        ("sed 's/[/]/g;s/w ./src/p' x", "sed s/[/]/g;s/w ./src/p x r:x +w"),
        ("sed 's/[a-z]*/x/g' x", "sed s/[a-z]*/x/g x r:x"),
    ] {
        assert_eq!(told(text), [expected.to_owned()], "{text}");
    }
}

/// Whatever shell runs the text: dash knows no braces and no `$'…'`, and opens what is called so.
#[test]
fn what_shells_read_differently_is_read_in_both_ways() {
    for (text, expected) in [
        (
            "cat {docs/a,b/{c,d}}.md x{,y}",
            &[
                "cat docs/a.md b/c.md b/d.md x xy r:docs/a.md r:b/c.md r:b/d.md r:x r:xy",
                "cat {docs/a,b/{c,d}}.md x{,y} r:{docs/a,b/{c,d}}.md r:x{,y}",
            ][..],
        ),
        (
            "cat $'a\\x2fb' $'c\\u002fd'",
            &["cat a/b c/d r:a/b r:c/d", "cat $a\\x2fb $c\\u002fd r:$a\\x2fb r:$c\\u002fd"],
        ),
        ("cut -d$'\\t' -f1 a", &["cut a r:a", "cut a r:a"]),
        ("cp {a,b} c", &["cp a b c r:a r:b w:c w:c/a w:c/b", "cp {a,b} c r:{a,b} w:c w:c/{a,b}"]),
        ("cat a > $'b\\x63'", &["cat a w:bc r:a", "cat a w:$b\\x63 r:a"]),
        ("$'rm' x", &["rm x d:x", "$rm x ?:x"]),
        ("cd {a,b}/c && cat d", &["cd a/c b/c r:a/c r:b/c !", "cd {a,b}/c r:{a,b}/c", "cat d r:d @?|{a,b}/c"]),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
    let asks = |text: &str| super::script(text).commands.iter().any(|command| !command.floors.is_empty());
    for text in ["for f in $'a\\x62'; do ls; done", "case $'a' in a) ls;; esac", "[[ -f $'a' ]]"] {
        assert!(asks(text), "{text}: {:?}", told(text));
    }
}

#[test]
fn directories_are_followed_as_far_as_they_are_known() {
    assert_eq!(told("cd a && cat b")[1], "cat b r:b @a");
    assert_eq!(told("cd a; cat b")[1], "cat b r:b @a|");
    assert_eq!(told("cd a || cat b")[1], "cat b r:b");
    assert_eq!(told("(cd a && cat b); cat c")[2], "cat c r:c");
    assert_eq!(told("cd a | cat b; cat c")[2], "cat c r:c");
    assert_eq!(told("cd && cat b")[1], "cat b r:b @?");
    assert_eq!(told("cd a && cd ../b && pwd")[2], "pwd @a/../b");
    assert_eq!(told("env -C a cat b")[1], "cat b r:b @a");
    assert!(told("while true; do cd x; cat y; done").iter().any(|line| line.ends_with(" !")));
}

#[test]
fn loops_over_plain_words_are_unrolled() {
    assert_eq!(told("for f in a b; do cat \"$f\"; done"), ["cat a r:a", "cat b r:b"]);
    assert_eq!(
        told("for f in a; do for g in b c; do cat $f/$g.md; done; done"),
        ["cat a/b.md r:a/b.md", "cat a/c.md r:a/c.md"]
    );
    assert_eq!(told("time cat a"), ["time", "cat a r:a"]);
    assert_eq!(told("find a -name b -exec cat {} +"), ["cat {} r:a/**", "find a r:a/** +-exec"]);
    assert_eq!(told("cd a &> /dev/null; cat b")[1], "cat b r:b @a|", "`&>` may be `&`");
}

#[test]
fn wrappers_are_judged_with_what_they_run() {
    for (text, inner) in [
        ("sh -c 'rm x'", "rm x d:x"),
        ("bash -lc 'rm x'", "rm x d:x"),
        ("bash --norc -o pipefail -c 'rm x'", "rm x d:x"),
        ("env -i A=1 rm x", "rm x d:x"),
        ("env -S 'rm x'", "rm x d:x"),
        ("timeout -k 5 10 rm x", "rm x d:x"),
        ("nice -n 5 rm x", "rm x d:x"),
        ("nohup setsid rm x", "rm x d:x"),
        ("sudo -u root rm x", "rm x d:x"),
        ("doas rm x", "rm x d:x"),
        ("su root -c 'rm x'", "rm x d:x"),
        ("su -c 'rm x'", "rm x d:x"),
        ("command rm x", "rm x d:x"),
        ("exec rm x", "rm x d:x"),
        ("eval 'rm' x", "rm x d:x"),
        ("time -p rm x", "rm x d:x"),
        ("busybox rm x", "rm x d:x"),
        ("watch -n1 rm x", "rm x d:x"),
        ("ssh host rm x", "rm x d:x"),
        ("bash -c \"bash -c 'rm x'\"", "rm x d:x"),
        ("su -lc 'rm x' u", "rm x d:x"),
        ("su -mc 'rm x'", "rm x d:x"),
        ("su u -lc 'rm x'", "rm x d:x"),
        ("su --comm='rm x'", "rm x d:x"),
        ("su -c ls -c 'rm x'", "rm x d:x"),
        ("env -vS 'rm x'", "rm x d:x"),
        ("env -iS 'A=1 rm x'", "rm x d:x"),
        ("env -S '-i rm' x", "rm x d:x"),
        ("env --split='rm x'", "rm x d:x"),
        ("env -S '' rm x", "rm x d:x"),
        ("time -- rm x", "rm x d:x"),
        ("time -p -- rm x", "rm x d:x"),
        ("exec {fd}>&1 rm x", "rm x d:x"),
        ("{fd}>y rm x", "rm x w:y d:x"),
        ("sudo -Eu x rm x", "rm x d:x"),
        ("rbash -c 'rm x'", "rm x d:x"),
        ("fish -c 'rm x'", "rm x d:x"),
        ("ssh host -- rm x", "rm x d:x"),
        ("ssh host -p 22 rm x", "rm x d:x"),
        ("parallel 'rm {}' ::: a", "rm {} d:{}"),
        ("parallel ::: ls 'rm x'", "rm x d:x"),
        ("parallel rm ::: x", "rm"),
    ] {
        assert!(told(text).iter().any(|line| line.starts_with(inner)), "{text}: {:?}", told(text));
    }
    for text in ["xargs rm", "find . -exec rm {} +", "find . -execdir sh -c 'rm x' \\;"] {
        let lines = told(text);
        assert!(
            lines.iter().any(|line| line.starts_with("rm ") && line.ends_with('!') || line == "rm x d:x"),
            "{lines:?}"
        );
    }
}

#[test]
fn what_is_not_understood_asks() {
    for text in [
        "ls 'x",
        "ls $(",
        "if true; then ls",
        "$X a",
        "`x`",
        "ls *(e:'x':)",
        "${ rm; }",
        "{rm,-rf,x}",
        "f() { ls; }; f",
        "alias ls=rm",
        "trap 'rm x' EXIT",
        ". ./x",
        "source x",
        "export PATH=x",
        "PATH=x",
        "eval \"$x\"",
        "bash x.sh",
        "curl x | sh",
        "bash",
        "sh -s",
        "bash -c \"$X\"",
        "printf -v 'a[0]' x",
        "[[ -v x ]]",
        "test -v x",
        "let x=1",
        "declare x",
        "(( x ))",
        "echo $((x))",
        "echo ${x@P}",
        "[[ x -eq y ]]",
        "read x",
        "cat $x",
        "cat ~/x",
        "python3 -c x",
        "awk x",
        "make",
        "coproc ls",
        "select x in a; do ls; done",
        "grep \"$x\" a",
        "xargs -I ls sh -c ls",
        "zsh -c ls",
        "tar cIf 'rm x' out docs",
        "git \"$x\"",
        "> $x",
        "ls <<< $((x))",
        "A[$(x)]=1 ls",
        "ls \\\nx",
        "mapfile -C x",
        "for PATH in x; do ls; done",
        "a=(1) ls",
        "ls & $x",
        "cat <<E\n$((x))\nE",
        "time $x",
        "! $x",
        "{ $x; }",
        "env FOO=1 ls",
        // What shells that do not know a thing make of it.
        "echo $'\\'; rm x #'",
        "((rm x))",
        "[[ a || rm ]]",
        "[[ a > x ]]",
        "[[ a =~ b|rm ]]",
        "ls &> /dev/null rm x",
        "ls &>> /dev/null rm x",
        "echo \"${x:-'}'; rm x; echo '}\"",
        "[[ ( a ) ]]",
        "{f}>x ls; for f in a; do cat $f {f}; done",
        // A variable is what the last loop made of it.
        "for f in a; do for f in ../x; do :; done; cat $f; done",
        "for f in a; do cat b; done; cat $f",
        "for f in a; do bash -c 'cat $f'; done",
        "for path in a; do ls; done",
        "for PATH in a; do ls; done",
        "for f in a b; do cd $f; done",
        "tar -t --fil=x",
        "tar -xf a -C x -C y",
        "tar -xf a --directory=x --directory y",
        "curl -F 'x=@a,b' h.example",
        "sort *",
        "find a -execdir cat {} +",
        "find -files0-from a -exec cat {} +",
        "find a b -exec cat {} +",
        "env -S ls",
        "su -c",
        "bash -c",
        "su u -- -c ls",
        "su u script ls",
        "cat a {fd}>x",
        "-- ls",
        "set -f",
        "curl -T '{a,b}' h.example",
        "curl -T 'x[s-s]' h.example",
        "curl -o 'a#1' 'https://h.example/{b}'",
        "curl -w '%output{a}x' h.example",
        "parallel ls ::: a",
    ] {
        let script = script(text);
        let asks = |command: &Command| !command.floors.is_empty();
        let two_lines = text.contains("\\\n");
        assert!(two_lines || script.commands.iter().any(asks), "{text}: {:?}", told(text));
    }
}

#[test]
fn every_command_is_found_wherever_it_stands() {
    for text in [
        "ls; rm x",
        "ls || rm x",
        "ls | rm x",
        "ls & rm x",
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(echo \"$(rm x)\")\"",
        "cat <(rm x)",
        "echo > >(rm x)",
        "cat <<E\n$(rm x)\nE",
        "if rm x; then ls; fi",
        "while rm x; do ls; done",
        "case x in x) rm x;; esac",
        "for x in $(rm x); do ls; done",
        "{ rm x; }",
        "(rm x)",
        "! rm x",
        "f() { rm x; }",
        "[[ -f $(rm x) ]]",
        "echo $((1+$(rm x)))",
        "X=$(rm x) ls",
        "ls > $(rm x)",
        "cat <<< $(rm x)",
        "X=($(rm x))",
        "case $(rm x) in a) ls;; esac",
        "a[$(rm x)]=1",
        "echo ${x:-$(rm x)}",
        "ls 2>&1 && (cd a; rm x)",
        "coproc rm x",
        "true;rm x",
        "ls\nrm x",
        "ls # a\nrm x",
        "cat <<A; rm x\nA",
    ] {
        assert!(told(text).iter().any(|line| line.starts_with("rm x")), "{text}: {:?}", told(text));
    }
}

#[test]
fn the_parser_is_held_to_its_budget() {
    let deep = format!("{}true{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(script(&deep).commands[0].unread.is_some());
    let hidden = "( ')' ".repeat(10_000);
    assert!(script(&hidden).commands[0].unread.is_some());
    // As deep as the budget lets them: none may bring the process down.
    for longest in [
        format!("[[ {}a ]]", "! ".repeat(990)),
        format!("[[ {}a ]]", "a && ".repeat(490)),
        format!("if a; then b; {} fi", "elif a; then b; ".repeat(490)),
        "if 'fi'; then ".repeat(990),
        "{ '}'; ".repeat(990),
        "a[".repeat(990),
        "time ".repeat(990),
    ] {
        assert!(!script(&longest).commands.is_empty(), "{longest}");
    }
    for nasty in
        ["$((".repeat(8), "${x:-".repeat(30), "\"$(".repeat(30), "`".repeat(999), "[[ ( ".repeat(30), "a=(".repeat(30)]
    {
        let start = Instant::now();
        assert!(script(&nasty).commands.iter().any(|command| !command.floors.is_empty()), "{nasty}");
        assert!(start.elapsed().as_secs() < 3, "{nasty}: {:?}", start.elapsed());
    }
    assert_eq!(told("ls a"), ["ls a r:a"], "the next text is read as ever");
}

#[test]
fn loops_and_wrappers_end_where_enough_was_seen() {
    let words = "1 ".repeat(32);
    let nested = |depth: usize, body: &str| {
        format!("{}{body}{}", format!("for x in {words}; do ").repeat(depth), "; done".repeat(depth))
    };
    for text in [
        nested(10, "ls $a"),
        nested(10, "LANG=C"),
        nested(10, "[[ a ]]"),
        nested(3, &format!("ls {}", "a".repeat(40_000))),
        "env ".repeat(13_000),
        "command ".repeat(8_000),
        "timeout 1 ".repeat(6_000) + "ls",
        format!("git {}status", "-C a ".repeat(10_000)),
        "cd a && ".repeat(490) + "ls",
    ] {
        let start = Instant::now();
        let commands = script(&text).commands;
        let asks = |command: &Command| !command.floors.is_empty() || command.bases.contains(&None);
        assert!(commands.iter().any(asks), "{}", &text[..40]);
        assert!(start.elapsed().as_millis() < 2_500, "{}: {:?}", &text[..40], start.elapsed());
    }
    assert!(
        script(&nested(10, "rm $a")).commands.iter().any(|c| c.unread.as_ref().is_some_and(|text| text.contains("rm")))
    );
    assert_eq!(told(&nested(1, "ls $x")).len(), 32);
    assert_eq!(told("for a in x y; do for b in x y; do cat $a/$b; done; done").len(), 4);
}

#[test]
fn long_plain_texts_are_read() {
    let text = format!("echo {}", "a-rather-long-word-of-sixty-four-letters-that-names-no-file-here ".repeat(1_000));
    let script = script(&text);
    assert_eq!(script.commands.len(), 1);
    assert!(script.commands[0].floors.is_empty());
}
