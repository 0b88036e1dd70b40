//! The kinds of channels, each with what it takes to say a word there.

use std::str::FromStr;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use lettre::message::header::{ContentType, HeaderName as MailHeader, HeaderValue as MailValue};
use lettre::message::{Mailbox, Message};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use serde_json::{Value, json};

use super::asks::Ask;
use super::form;
use super::plan::{Style, Topic, Word};
use super::say::saying;
use super::send::{Failure, Sender};
use crate::clock::Timestamp;
use crate::config::{Channel, Chat, Means, Template};

/// How long a mail server is waited for, at each step.
const MAIL_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// A channel that can be used.
pub struct Way {
    channel: Channel,
    http: Option<Sender>,
}

impl Way {
    /// # Errors
    /// It cannot be used on this machine; says what to do.
    pub fn new(channel: Channel) -> Result<Self, String> {
        let url = match &channel.means {
            Means::Webhook { url, .. } => Some(url.expose()),
            Means::Slack(chat) => Some(chat.api.as_str()),
            Means::Mail { .. } => None,
        };
        let http = url.map(|url| Sender::new(url.starts_with("https:"))).transpose()?;
        Ok(Self { channel, http })
    }

    /// What is configured.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Whether it can change what it has said.
    pub fn style(&self) -> Style {
        match &self.channel.means {
            Means::Webhook { template: Template::Generic { .. } | Template::PagerDuty { .. }, .. }
            | Means::Slack(_) => Style::Updates,
            Means::Webhook { template: Template::Slack | Template::Teams, .. } | Means::Mail { .. } => Style::Says,
        }
    }

    /// Says a word. `ended`: all of the message that has ended; answers what the channel calls the message, if it does.
    ///
    /// # Errors
    /// It could not be said.
    pub async fn say(&self, said: &Word, ended: &[Ask], base: &str, now: Timestamp) -> Result<Option<String>, Failure> {
        let saying = saying(said, ended, base);
        match &self.channel.means {
            Means::Webhook { url, template } => {
                let body = match template {
                    Template::Generic { .. } => form::generic(said, ended, base, now),
                    Template::Slack => form::slack(&saying),
                    Template::Teams => form::teams(&saying),
                    Template::PagerDuty { routing_key } => form::pagerduty(&saying, said, routing_key),
                };
                let body = body.to_string().into_bytes();
                let mut headers = HeaderMap::new();
                if let Template::Generic { secret } = template {
                    let seconds = now.as_millis().div_euclid(1_000);
                    set(&mut headers, "portcullis-timestamp", &seconds.to_string());
                    set(&mut headers, "portcullis-signature", &form::signature(secret, seconds, &body));
                    set(&mut headers, "portcullis-delivery", &format!("{}.{}", said.message, said.number));
                }
                self.post(url.expose(), headers, body, now).await?;
                Ok(None)
            }
            Means::Slack(chat) => self.chat(chat, said, form::slack(&saying), &saying.headline, now).await,
            Means::Mail { smtp, from, to } => {
                let subject = format!("[portcullis] {}", saying.headline);
                let mail = mail(said, from, to, subject, form::mail(&saying))?;
                let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(smtp.expose())
                    .map_err(|_| Failure::lasting("its mail server's address is none"))?
                    .timeout(Some(MAIL_PATIENCE))
                    .build();
                match tokio::time::timeout(2 * MAIL_PATIENCE, transport.send(mail)).await {
                    Ok(Ok(_)) => Ok(None),
                    Ok(Err(error)) if error.is_permanent() => {
                        let code = error.status().map_or_else(String::new, |code| format!(" {code}"));
                        Err(Failure::lasting(format!("the mail server refused it{code}")))
                    }
                    Ok(Err(error)) if error.is_timeout() => {
                        Err(Failure::passing("the mail server did not answer in time"))
                    }
                    Ok(Err(_)) => Err(Failure::passing("the mail server did not take it")),
                    Err(_) => Err(Failure::passing("the mail server did not answer in time")),
                }
            }
        }
    }

    /// A bot posts once and changes that; a reminder goes below it, where people are called again.
    async fn chat(
        &self,
        chat: &Chat,
        said: &Word,
        form: Value,
        headline: &str,
        now: Timestamp,
    ) -> Result<Option<String>, Failure> {
        let handle = said.then.handle.as_deref().and_then(|handle| handle.split_once(' '));
        let Some((channel, ts)) = handle else {
            let body = with(&form, &[("channel", &chat.channel)]);
            let answer = self.ask(chat, "chat.postMessage", &body, now).await?;
            let of = |name: &str| answer.get(name).and_then(Value::as_str);
            return Ok(of("ts").map(|ts| format!("{} {ts}", of("channel").unwrap_or(&chat.channel))));
        };
        let body = with(&form, &[("channel", channel), ("ts", ts)]);
        match self.ask(chat, "chat.update", &body, now).await {
            Ok(_) => {}
            // Somebody removed it.
            Err(failure) if failure.why.contains("message_not_found") && said.topic != Topic::Closed => {
                let body = with(&form, &[("channel", channel)]);
                let answer = self.ask(chat, "chat.postMessage", &body, now).await?;
                let ts = answer.get("ts").and_then(Value::as_str);
                return Ok(ts.map(|ts| format!("{channel} {ts}")));
            }
            Err(failure) => return Err(failure),
        }
        if said.loud {
            let call = json!({
                "channel": channel, "thread_ts": ts, "reply_broadcast": true, "mrkdwn": false, "parse": "none",
                "text": headline.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
            });
            self.ask(chat, "chat.postMessage", &call, now).await?;
        }
        Ok(said.then.handle.clone())
    }

    /// One method of Slack's Web API, which says in the body whether it worked.
    async fn ask(&self, chat: &Chat, method: &str, body: &Value, now: Timestamp) -> Result<Value, Failure> {
        let url = chat.api.join(method).map_err(|_| Failure::lasting("its `api` is no address"))?;
        let mut headers = HeaderMap::new();
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", chat.token.expose()))
            .map_err(|_| Failure::lasting("its token has characters that no token has"))?;
        bearer.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, bearer);
        let answer = self.post(url.as_str(), headers, body.to_string().into_bytes(), now).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if answer.get("ok").and_then(Value::as_bool) == Some(true) {
            return Ok(answer);
        }
        let word = answer.get("error").and_then(Value::as_str).unwrap_or("no reason given");
        let passing = ["ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"];
        let why = format!("Slack refused it: {}", super::text::tame(word));
        Err(Failure { why, again: passing.contains(&word), after: None })
    }

    async fn post(&self, url: &str, headers: HeaderMap, body: Vec<u8>, now: Timestamp) -> Result<Bytes, Failure> {
        match &self.http {
            Some(http) => http.post(url, headers, body, now).await,
            None => Err(Failure::lasting("it has no address")),
        }
    }
}

/// The same JSON object with more members.
fn with(form: &Value, members: &[(&str, &str)]) -> Value {
    let mut form = form.clone();
    if let Some(object) = form.as_object_mut() {
        object.extend(members.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    }
    form
}

/// Values of our own making, which always fit.
fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// Plain text; what comes later in a message answers its first mail.
fn mail(said: &Word, from: &str, to: &[String], subject: String, text: String) -> Result<Message, Failure> {
    let wrong = |_| Failure::lasting("its addresses are none");
    let from = Mailbox::from_str(from).map_err(wrong)?;
    let host = from.email.domain().to_owned();
    let id = |number: u64| format!("<{}.{number}@{host}>", said.message);
    let mut builder = Message::builder().from(from).subject(subject).message_id(Some(id(said.number)));
    for one in to {
        builder = builder.to(Mailbox::from_str(one).map_err(wrong)?);
    }
    if said.number > 1 {
        builder = builder.in_reply_to(id(1)).references(id(1));
    }
    let automatic = MailHeader::new_from_ascii_str("Auto-Submitted");
    builder
        .raw_header(MailValue::new(automatic, "auto-generated".to_owned()))
        .header(ContentType::TEXT_PLAIN)
        .body(text)
        .map_err(|_| Failure::lasting("the mail could not be written"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::approval::tests::held;
    use crate::secret::Secret;
    use crate::tell::plan::{Plan, Told, plan};
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    /// What a channel makes of a server that speaks no TLS, and the first byte that the server got.
    async fn said(means: impl FnOnce(u16) -> Means) -> (Failure, u8) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let channel = Channel {
            name: "a".into(),
            means: means(listener.local_addr().unwrap().port()),
            severity: Vec::new(),
            groups: Vec::new(),
        };
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap()
        });
        let ask = Ask::of(&held("1"), "write_file a".to_owned());
        let now = ask.created_at;
        let Plan::Say(word) = plan("a", &Told::default(), &[ask], Style::Updates, now) else {
            panic!("nothing to say")
        };
        let way = Way::new(channel).unwrap();
        let failure = way.say(&word, &[], "http://127.0.0.1:7071", now).await.unwrap_err();
        (failure, server.await.unwrap())
    }

    /// A TLS record that holds a handshake (RFC 8446, section 5.1).
    const HANDSHAKE: u8 = 22;

    #[tokio::test]
    async fn https_and_smtps_begin_with_tls_and_say_nothing_without() {
        let (failure, first) = said(|port| Means::Webhook {
            url: Secret::new(format!("https://127.0.0.1:{port}/the-secret-path")),
            template: Template::Slack,
        })
        .await;
        assert_eq!((failure.again, first), (true, HANDSHAKE));
        assert!(!failure.why.contains("the-secret-path"), "{}", failure.why);
        let (failure, first) = said(|port| Means::Mail {
            smtp: Secret::new(format!("smtps://user:password@127.0.0.1:{port}")),
            from: "gate@example.com".into(),
            to: vec!["ops@example.com".into()],
        })
        .await;
        assert_eq!((failure.why.as_str(), failure.again, first), ("the mail server did not take it", true, HANDSHAKE));
    }
}
