//! What each kind of channel is sent. Whatever an agent had a hand in stands where the target reads plain text only.

use ring::hmac;
use serde_json::{Value, json};

use super::asks::Ask;
use super::plan::{Topic, Word};
use super::say::{Saying, link};
use super::text::tame;
use crate::clock::Timestamp;
use crate::record::Severity;
use crate::secret::Secret;

/// The body of a generic webhook.
pub fn generic(said: &Word, ended: &[Ask], base: &str, now: Timestamp) -> Value {
    let call = |ask: &Ask| {
        json!({
            "id": ask.approval,
            "state": ask.state,
            "outcome": (!ask.waits()).then_some(tame(&ask.ended)),
            "label": tame(&ask.label),
            "agent": ask.agent,
            "group": ask.group,
            "upstream": ask.upstream,
            "tool": ask.tool.as_deref().map(tame),
            "severity": ask.severity,
            "rules": ask.rules,
            "reason": ask.reason.as_deref().map(tame),
            "approvers": ask.approvers,
            "created_at": ask.created_at,
            "expires_at": ask.expires_at,
            "escalated_at": ask.escalated_at,
            "reminded_at": ask.reminded_at,
            "url": link(base, &ask.approval),
        })
    };
    json!({
        "version": 1,
        "event": said.topic,
        "message": said.message,
        "number": said.number,
        "at": now,
        "waiting": said.waiting.len(),
        "approvals": said.waiting.iter().chain(ended).map(call).collect::<Vec<_>>(),
    })
}

/// `v1=` and the HMAC-SHA256 of the time (seconds since 1970), a dot and the body, in hexadecimal.
pub fn signature(secret: &Secret, seconds: i64, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    let mut context = hmac::Context::with_key(&key);
    context.update(seconds.to_string().as_bytes());
    context.update(b".");
    context.update(body);
    format!("v1={}", hex::encode(context.sign()))
}

/// A message of Slack: `plain_text` blocks only, no links but our own, nobody mentioned.
pub fn slack(saying: &Saying) -> Value {
    let plain = |text: &str| json!({ "type": "plain_text", "text": escape(text), "emoji": false });
    let mut blocks = vec![json!({ "type": "section", "text": plain(&saying.headline) })];
    for item in &saying.items {
        let text = format!("{}\n{}", item.label, item.detail);
        // Slack takes up to 3,000 characters here.
        let button = json!({ "type": "button", "text": plain("Open"), "url": item.link });
        blocks.push(json!({ "type": "section", "text": plain(&shortened(&text, 2_900)), "accessory": button }));
    }
    if saying.more > 0 {
        blocks.push(json!({ "type": "section", "text": plain(&format!("and {} more", saying.more)) }));
    }
    json!({
        "text": escape(&saying.headline),
        "mrkdwn": false,
        "parse": "none",
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": blocks,
    })
}

/// A card for a workflow of Teams. Text runs know no markdown.
pub fn teams(saying: &Saying) -> Value {
    let run = |text: &str, weight: &str| json!({ "type": "TextRun", "text": text, "weight": weight });
    let rich = |runs: Vec<Value>| json!({ "type": "RichTextBlock", "inlines": runs });
    let mut body = vec![rich(vec![run(&saying.headline, "Bolder")])];
    for item in &saying.items {
        body.push(rich(vec![run(&item.label, "Default")]));
        body.push(rich(vec![run(&item.detail, "Lighter")]));
    }
    if saying.more > 0 {
        body.push(rich(vec![run(&format!("and {} more", saying.more), "Default")]));
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": body,
                "actions": [{ "type": "Action.OpenUrl", "title": "Open", "url": saying.link }],
            },
        }],
    })
}

/// An event for PagerDuty: the message is the incident.
pub fn pagerduty(saying: &Saying, said: &Word, key: &Secret) -> Value {
    let action = if said.topic == Topic::Closed { "resolve" } else { "trigger" };
    let severity = match saying.severity {
        Severity::Low => "info",
        Severity::Normal => "warning",
        Severity::High => "error",
        Severity::Critical => "critical",
    };
    let calls: Vec<Value> =
        saying.items.iter().map(|item| json!({ "what": item.label, "about": item.detail, "url": item.link })).collect();
    json!({
        "routing_key": key.expose(),
        "event_action": action,
        "dedup_key": said.message,
        "client": "Portcullis",
        "client_url": saying.link,
        "links": [{ "href": saying.link, "text": "Open" }],
        "payload": {
            "summary": shortened(&saying.headline, 1_000),
            "source": "portcullis",
            "severity": severity,
            "custom_details": { "calls": calls, "more": saying.more },
        },
    })
}

/// The text of a mail.
pub fn mail(saying: &Saying) -> String {
    let mut text = format!("{}\n", saying.headline);
    for item in &saying.items {
        text.push_str(&format!("\n{}\n{}\n{}\n", item.label, item.detail, item.link));
    }
    if saying.more > 0 {
        text.push_str(&format!("\nand {} more\n", saying.more));
    }
    text.push_str("\nDecide in the inbox, with your own login. Answers to this mail decide nothing.\n");
    text
}

/// What Slack reads as the beginning of a link or a mention (its docs, "Escaping text").
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn shortened(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
