//! `notify:`, the channels by which people are told of held calls.

use std::net::IpAddr;
use std::str::FromStr;

use lettre::message::Mailbox;
use url::{Host, Url};

use super::super::yaml::{Fields, Node, Report};
use super::super::{Channel, Chat, Means, Template, is_name};
use super::values::Surroundings;
use crate::record::Severity;
use crate::secret::Secret;

const SEVERITIES: [(&str, Severity); 4] =
    [("low", Severity::Low), ("normal", Severity::Normal), ("high", Severity::High), ("critical", Severity::Critical)];

/// Characters of a secret with which webhooks are signed.
const SHORTEST_SECRET: usize = 16;

/// Where PagerDuty takes events.
const PAGERDUTY: &str = "https://events.pagerduty.com/v2/enqueue";

/// Where Slack's Web API is.
const SLACK: &str = "https://slack.com/api/";

/// What a webhook's `template` can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Generic,
    Slack,
    Teams,
    PagerDuty,
}

pub(super) fn channels(node: Option<&Node>, around: &Surroundings<'_>, report: &mut Report) -> Vec<Channel> {
    let mut channels: Vec<Channel> = Vec::new();
    for node in node.and_then(|node| node.sequence(report)).unwrap_or_default() {
        let Some(channel) = channel(node, around, report) else { continue };
        if channels.iter().any(|other| other.name == channel.name) {
            report
                .error(node.at, format!("the channel `{}` is there twice", channel.name))
                .help("give each a name of its own: it is how approvals and metrics call it");
        }
        channels.push(channel);
    }
    channels
}

fn channel(node: &Node, around: &Surroundings<'_>, report: &mut Report) -> Option<Channel> {
    let mut fields = Fields::new(node, "a channel", report)?;
    let name = fields.required("name", report).and_then(|node| {
        let name = node.text(report)?;
        if !is_name(name) {
            report.error(node.at, format!("`{name}` is no name")).help("use up to 64 letters, digits and . _ @ + -");
            return None;
        }
        Some(name.to_owned())
    });
    let means = means(&mut fields, around, report);
    let severity = fields.optional("severity").and_then(|node| node.one_or_more(report)).unwrap_or_default();
    let severity = severity.iter().filter_map(|node| node.choice(&SEVERITIES, report)).collect();
    let groups = fields.optional("groups").and_then(|node| node.texts(report)).unwrap_or_default();
    let groups = groups.into_iter().map(str::to_owned).collect();
    fields.finish(report);
    Some(Channel { name: name?, means: means?, severity, groups })
}

/// Every key is read whatever the kind, so that all errors are told.
fn means(fields: &mut Fields<'_>, around: &Surroundings<'_>, report: &mut Report) -> Option<Means> {
    let kinds =
        [("generic", Kind::Generic), ("slack", Kind::Slack), ("teams", Kind::Teams), ("pagerduty", Kind::PagerDuty)];
    let at = fields.at;
    let template = fields.optional("template").map(|node| node.choice(&kinds, report));
    let webhook = fields.optional("webhook").map(|node| (node, address(node, around, report)));
    let secret = fields.optional("secret").map(|node| (node, around.secret(node, report)));
    let routing_key = fields.optional("routing_key").map(|node| (node, around.secret(node, report)));
    let token = fields.optional("token").map(|node| (node, around.secret(node, report)));
    let chat = fields.optional("channel").map(|node| (node, node.text(report).map(str::to_owned)));
    let api = fields.optional("api").map(|node| (node, address(node, around, report)));
    let smtp = fields.optional("smtp").map(|node| (node, server(node, around, report)));
    let from = fields.optional("from").map(|node| (node, mailbox(node, report)));
    let to = fields.optional("to").map(|node| {
        let to = node.one_or_more(report).unwrap_or_default();
        (node, to.iter().filter_map(|node| mailbox(node, report)).collect::<Vec<_>>())
    });

    let mut only_with = |given: Option<&Node>, key: &str, with: &str, fits: bool| {
        if let Some(node) = given.filter(|_| !fits) {
            report.error(node.at, format!("`{key}` goes with {with} only")).help("leave it out");
        }
    };
    if template == Some(None) {
        return None;
    }
    let (is_mail, is_bot) = (smtp.is_some(), token.is_some());
    let kind = template.flatten().unwrap_or(Kind::Generic);
    let is_generic = !is_mail && !is_bot && kind == Kind::Generic;
    only_with(secret.as_ref().map(|given| given.0), "secret", "`template: generic`", is_generic);
    let pages = !is_mail && !is_bot && kind == Kind::PagerDuty;
    only_with(routing_key.as_ref().map(|given| given.0), "routing_key", "`template: pagerduty`", pages);
    only_with(chat.as_ref().map(|given| given.0), "channel", "a `token` of a Slack bot", is_bot);
    only_with(api.as_ref().map(|given| given.0), "api", "a `token` of a Slack bot", is_bot);
    only_with(from.as_ref().map(|given| given.0), "from", "`smtp`", is_mail);
    only_with(to.as_ref().map(|given| given.0), "to", "`smtp`", is_mail);
    let wrong_template = is_mail && template.is_some() || is_bot && !matches!(template, None | Some(Some(Kind::Slack)));
    let ways = [webhook.is_some(), is_bot, is_mail].iter().filter(|given| **given).count();
    if ways > 1 || ways == 0 && kind != Kind::PagerDuty || wrong_template {
        report.error(at, "a channel is reached in exactly one way").help(
            "give one of `webhook: https://…` with its `template`, `token` and `channel` of a Slack bot, or `smtp` with `from` and `to`",
        );
        return None;
    }
    let mut needed = |key: &str, help: &str| {
        report.error(at, format!("`{key}` is missing in a channel")).help(help);
    };
    if let Some((_, smtp)) = smtp {
        if from.is_none() {
            needed("from", "write `from: portcullis@example.com`");
        }
        if to.is_none() {
            needed("to", "write `to: [ops@example.com]`");
        }
        return Some(Means::Mail { smtp: smtp?, from: from?.1?, to: to?.1 });
    }
    if let Some((_, token)) = token {
        if chat.is_none() {
            needed("channel", "write the channel's id, such as `channel: C0123456789`");
        }
        let api = match api {
            Some((_, api)) => {
                let mut api = Url::parse(api?.expose()).ok()?;
                if !api.path().ends_with('/') {
                    api.set_path(&format!("{}/", api.path()));
                }
                api
            }
            None => Url::parse(SLACK).ok()?,
        };
        return Some(Means::Slack(Chat { token: token?, channel: chat?.1?, api }));
    }
    let url = match webhook {
        Some((_, url)) => url,
        None => Some(Secret::new(PAGERDUTY)),
    };
    let template = match kind {
        Kind::Generic => {
            let Some((node, secret)) = secret else {
                needed(
                    "secret",
                    "a generic webhook is signed: write `secret: \"${NAME}\"`, and give the receiver the same",
                );
                return None;
            };
            let secret = secret?;
            if secret.expose().len() < SHORTEST_SECRET {
                report
                    .error(
                        node.at,
                        format!("the secret has less than {SHORTEST_SECRET} characters and could be guessed"),
                    )
                    .help("make one with `openssl rand -base64 32`");
            }
            Template::Generic { secret }
        }
        Kind::Slack => Template::Slack,
        Kind::Teams => Template::Teams,
        Kind::PagerDuty => {
            let Some((_, routing_key)) = routing_key else {
                needed("routing_key", "write the integration key of the service: `routing_key: \"${NAME}\"`");
                return None;
            };
            Template::PagerDuty { routing_key: routing_key? }
        }
    };
    Some(Means::Webhook { url: url?, template })
}

/// An address that messages may go to: `https`, or `http` on this machine. No message holds it: it may be a credential.
fn address(node: &Node, around: &Surroundings<'_>, report: &mut Report) -> Option<Secret> {
    let secret = around.secret(node, report)?;
    let url = Url::parse(secret.expose()).ok().filter(|url| url.has_host());
    let fits = url.as_ref().is_some_and(|url| match url.scheme() {
        "https" => true,
        "http" => is_loopback(url),
        _ => false,
    });
    if !fits {
        report
            .error(node.at, "this is no address that messages may be sent to")
            .help("write one with https://; http:// is for this machine only (127.0.0.1, [::1], localhost)");
        return None;
    }
    if url.is_some_and(|url| !url.username().is_empty() || url.password().is_some()) {
        report
            .error(node.at, "the address holds a user name or a password")
            .help("no such channel takes them; leave them out");
        return None;
    }
    Some(secret)
}

fn server(node: &Node, around: &Surroundings<'_>, report: &mut Report) -> Option<Secret> {
    let secret = around.secret(node, report)?;
    let url = Url::parse(secret.expose()).ok().filter(Url::has_host);
    let is_private = url.as_ref().is_some_and(|url| match url.scheme() {
        "smtps" => url.query().is_none(),
        "smtp" => match url.query() {
            Some("tls=required") => true,
            None => is_loopback(url),
            Some(_) => false,
        },
        _ => false,
    });
    if !is_private {
        report.error(node.at, "this is no mail server that may be used").help(
            "write `smtps://USER:PASSWORD@HOST:465`, or `smtp://USER:PASSWORD@HOST:587?tls=required`; without TLS on this machine only",
        );
        return None;
    }
    Some(secret)
}

fn mailbox(node: &Node, report: &mut Report) -> Option<String> {
    let text = node.text(report)?;
    if Mailbox::from_str(text).is_err() {
        report
            .error(node.at, format!("`{text}` is no e-mail address"))
            .help("write one such as ops@example.com, or `Ops <ops@example.com>`");
        return None;
    }
    Some(text.to_owned())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        // Of `smtp` addresses the host is not read further.
        Some(Host::Domain(name)) => {
            let address = name.parse::<IpAddr>().map(|address| address.is_loopback());
            address.unwrap_or_else(|_| name.eq_ignore_ascii_case("localhost"))
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
