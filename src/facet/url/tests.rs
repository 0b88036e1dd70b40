#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn hosts_are_read_as_a_browser_does() {
    for (url, host) in [
        ("https://Example.com/x", "example.com"),
        (" https://example.com/a b?q=\\ ", "example.com"),
        ("http://me@host.example:8080/", "host.example"),
        ("http://user:pass@host.example/", "host.example"),
        ("https://good.example@evil.example/", "evil.example"),
        ("http://127.0.0.1:80/", "127.0.0.1"),
        ("http://[::1]:8080/", "[::1]"),
        ("http://[0:0:0:0:0:ffff:7f00:1]/", "[::ffff:7f00:1]"),
        ("http://[::ffff:169.254.169.254]/", "[::ffff:a9fe:a9fe]"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://BÜCHER.example/", "xn--bcher-kva.example"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("https://under_score.example/", "under_score.example"),
        ("https://example.com?x=1#y", "example.com"),
        ("https://example.com/?to=a@b.example", "example.com"),
        ("memo://insights", "insights"),
        ("ssh://git@HOST.example/x", "host.example"),
        ("ssh://127.0.0.1/x", "127.0.0.1"),
    ] {
        assert_eq!(read(url).unwrap(), (Some(host.to_owned()), Vec::new()), "{url}");
    }
    for url in ["mailto:me@x.example", "data:text/plain,x", "about:blank", "note:///1"] {
        assert_eq!(read(url).unwrap(), (None, Vec::new()), "{url}");
    }
}

#[test]
fn what_another_reader_would_take_differently_is_odd() {
    for (url, host) in [
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://0177.0.0.1/", "127.0.0.1"),
        ("http://127.1/", "127.0.0.1"),
        ("http://0xa9fea9fe/", "169.254.169.254"),
        ("ssh://0x7f.1/", "127.0.0.1"),
        ("http://①②⑦.0.0.1/", "127.0.0.1"),
        ("http:\\\\host.example\\x", "host.example"),
        ("http://good.example\\@evil.example/", "good.example"),
        ("http://good.example/x\\@evil.example/", "good.example"),
        ("http:host.example/", "host.example"),
        ("http:/host.example/", "host.example"),
        ("http:///host.example/", "host.example"),
        ("http://a@good.example@evil.example/", "evil.example"),
        ("http://a b@evil.example/", "evil.example"),
        ("http://good.example#@evil.example/", "good.example"),
        ("http://good.example?@evil.example/", "good.example"),
        ("http://%65xample.com/", "example.com"),
        ("http://example%2ecom/", "example.com"),
        ("http://example.com./", "example.com."),
        ("http://good.example,evil.example/", "good.example,evil.example"),
        ("http://good.example&evil.example/", "good.example&evil.example"),
        ("http://ｅxample.com/", "example.com"),
        ("http://example。com/", "example.com"),
        ("http://faß.example/", "xn--fa-hia.example"),
        ("http://exam\u{ad}ple.com/", "example.com"),
        ("x://evil.example\\@good.example/", "good.example"),
        ("ssh://-x.good.example/", "-x.good.example"),
        ("http://.good.example/", ".good.example"),
        ("postgres://good.example/?host=evil.example", "good.example"),
        ("mysql://good.example/x?HostAddr=10.0.0.1", "good.example"),
    ] {
        let (read, floors) = read(url).unwrap();
        assert_eq!(read.as_deref(), Some(host), "{url}");
        assert!(floors.iter().any(|floor| floor.why == FloorWhy::OddUrl), "{url}");
    }
}

#[test]
fn nested_and_broken_urls_are_odd() {
    for url in [
        "view-source:file:///x",
        "jar:file:///x.jar!/k",
        "blob:https://x.example/1",
        "http://",
        "http://[::1%25eth0]/",
        "http://1.2.3.256/",
        "http://a b.example/",
        "http://host.example:99999/",
        "http://1.1.1.1 &@2.2.2.2# @3.3.3.3/",
        "x.example/y",
        "//x.example/y",
        "\u{a0}https://x.example/",
        "/etc/passwd",
        "",
        "localhost:8080/x",
        "metadata.google.internal:80/computeMetadata/v1/",
        "evil.example:80/x",
        "gopher:evil.example",
        "rsync:evil.example",
        "evil.example::module",
        "ext::sh -c id",
        "unix:/run/docker.sock",
        "unix:///run/docker.sock",
        "postgresql:///x?host=evil.example",
        "redis+socket:///x",
        "note:///1?host=evil.example",
    ] {
        assert!(!read(url).unwrap().1.is_empty(), "{url}");
    }
    for text in ["fi\tle:///etc/passwd", "http://good.exam\nple/", "http://x\0.example/", "http://x\u{85}.example/"] {
        assert!(read(text).is_err(), "{text:?}");
    }
}
