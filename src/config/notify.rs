//! Who is told of held calls, and by which means.

use url::Url;

use crate::record::Severity;
use crate::secret::Secret;

/// A place where people are told.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name, once among all.
    pub name: String,
    /// How it is reached.
    pub means: Means,
    /// Only of calls of these severities; empty: of all.
    pub severity: Vec<Severity>,
    /// Only of calls of these groups; empty: of all.
    pub groups: Vec<String>,
}

/// How people are reached.
#[derive(Clone, Debug)]
pub enum Means {
    /// A request to a URL that somebody gave for this.
    Webhook {
        /// Where; it is a credential, too.
        url: Secret,
        /// What is sent.
        template: Template,
    },
    /// A bot that can change what it has said.
    Slack(Chat),
    /// E-mail.
    Mail {
        /// `smtps://user:password@host:465`, or `smtp://…?tls=required` (STARTTLS).
        smtp: Secret,
        /// Who it comes from.
        from: String,
        /// Who it goes to.
        to: Vec<String>,
    },
}

/// What a webhook is sent.
#[derive(Clone, Debug)]
pub enum Template {
    /// Our own JSON, signed.
    Generic {
        /// With what it is signed.
        secret: Secret,
    },
    /// A message of Slack's incoming webhooks.
    Slack,
    /// An adaptive card for a workflow of Microsoft Teams.
    Teams,
    /// An event of PagerDuty's Events API, version 2.
    PagerDuty {
        /// The integration's key.
        routing_key: Secret,
    },
}

/// A conversation that a bot takes part in.
#[derive(Clone, Debug)]
pub struct Chat {
    /// The bot's token.
    pub token: Secret,
    /// The channel's id, or its name.
    pub channel: String,
    /// Where the Web API is.
    pub api: Url,
}

impl Channel {
    /// Whether people are told there of such calls.
    pub fn wants(&self, severity: Severity, group: &str) -> bool {
        (self.severity.is_empty() || self.severity.contains(&severity))
            && (self.groups.is_empty() || self.groups.iter().any(|wanted| wanted == group || wanted == "*"))
    }

    /// As it is called on approvals and in metrics: `slack:ops`.
    pub fn label(&self) -> String {
        let kind = match &self.means {
            Means::Webhook { template: Template::Generic { .. }, .. } => "webhook",
            Means::Webhook { template: Template::Slack, .. } | Means::Slack(_) => "slack",
            Means::Webhook { template: Template::Teams, .. } => "teams",
            Means::Webhook { template: Template::PagerDuty { .. }, .. } => "pagerduty",
            Means::Mail { .. } => "mail",
        };
        format!("{kind}:{}", self.name)
    }

    /// What of it must never be shown.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        match &self.means {
            Means::Webhook { url, template } => {
                let more = match template {
                    Template::Generic { secret } => Some(secret),
                    Template::PagerDuty { routing_key } => Some(routing_key),
                    Template::Slack | Template::Teams => None,
                };
                std::iter::once(url).chain(more).cloned().collect()
            }
            Means::Slack(chat) => vec![chat.token.clone()],
            Means::Mail { smtp, .. } => {
                let url = Url::parse(smtp.expose()).ok();
                let encoded = url.as_ref().and_then(Url::password);
                let password = encoded.map(|text| percent_encoding::percent_decode_str(text).decode_utf8_lossy());
                let words = encoded.map(str::to_owned).into_iter().chain(password.map(Into::into));
                std::iter::once(smtp.clone()).chain(words.map(Secret::new)).collect()
            }
        }
    }
}
