//! The lists of all upstreams as one: all pages of each, in the order of their ids.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::super::link::Era;
use super::super::reply;
use super::super::session::{Reply, Session};
use super::{Aggregate, names, patience, relay};
use crate::message::{Message, compose, member};
use crate::secret::TokenHash;

/// A list of more pages has no end.
const PAGES: usize = 100;

/// Which key of the result the entries stand under, and which of an entry is named after its upstream.
fn keys(method: &str) -> Option<(&'static str, Option<&'static str>)> {
    match method {
        "tools/list" => Some(("tools", Some("name"))),
        "prompts/list" => Some(("prompts", Some("name"))),
        "resources/list" => Some(("resources", Some("uri"))),
        "resources/templates/list" => Some(("resourceTemplates", Some("uriTemplate"))),
        "tasks/list" => Some(("tasks", None)),
        _ => None,
    }
}

/// The list of one upstream.
#[derive(Default)]
struct Listed {
    entries: Vec<String>,
    ttl_ms: Option<u64>,
}

impl Aggregate {
    pub(super) async fn list(self: &Arc<Self>, message: &Message, credential: Option<TokenHash>) -> Reply {
        let id = message.id().unwrap_or("null");
        let Some((key, named)) = keys(message.method()) else {
            return reply::error(
                id,
                reply::METHOD_NOT_FOUND,
                "this list is served at the address of one upstream only",
                None,
            );
        };
        if message.at(&["params", "cursor"]).is_some() {
            return reply::error(id, reply::INVALID_PARAMS, "there is no such page: all stand on the first", None);
        }
        let up = self.all_up().await;
        let lists = up.iter().map(|(at, up)| {
            let (upstream, credential) = (self.upstream(*at), credential);
            async move {
                let listed = timeout(patience(&up.session), pages(&up.session, message, key, credential)).await;
                (upstream, listed.ok().flatten().unwrap_or_default())
            }
        });
        let lists = join_all(lists).await;
        let renamed = lists.iter().flat_map(|(upstream, listed)| {
            listed.entries.iter().filter_map(move |raw| match named {
                Some(name) => names::entry(upstream, name, raw),
                None => Some(raw.clone()),
            })
        });
        let entries: Vec<String> = renamed.collect();
        let mut result = format!("{{\"{key}\":[{}]", entries.join(","));
        if self.era == Era::Modern {
            let ttl = lists.iter().filter_map(|(_, listed)| listed.ttl_ms).min().unwrap_or_default();
            // One upstream more or less, and it is another list.
            let ttl = ttl.min(60_000);
            result.push_str(&format!(",\"resultType\":\"complete\",\"ttlMs\":{ttl},\"cacheScope\":\"private\""));
        }
        result.push('}');
        Reply { bytes: compose::result_raw(id, &result), status: 200 }
    }
}

/// All pages of one upstream's list; none where it has no such list.
async fn pages(session: &Arc<Session>, message: &Message, key: &str, credential: Option<TokenHash>) -> Option<Listed> {
    let (mut listed, mut cursor) = (Listed::default(), None::<String>);
    for _ in 0..PAGES {
        let reply = relay::ask(session, page(message, cursor.as_deref())?, credential).await?;
        let answer = Message::framed(reply.bytes).ok()?;
        let result: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(answer.result()?).ok()?;
        let entries: Vec<&RawValue> = serde_json::from_str(result.get(key)?.get()).ok()?;
        listed.entries.extend(entries.into_iter().map(|entry| entry.get().to_owned()));
        if let Some(ttl) = result.get("ttlMs").and_then(|raw| raw.get().parse().ok()) {
            listed.ttl_ms = Some(listed.ttl_ms.map_or(ttl, |least| least.min(ttl)));
        }
        match result.get("nextCursor").and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            Some(next) => cursor = Some(next),
            None => return Some(listed),
        }
    }
    None
}

/// The client's request for one page.
fn page(message: &Message, cursor: Option<&str>) -> Option<Message> {
    let Some(cursor) = cursor else { return Some(message.clone()) };
    let own = format!("\"cursor\":{}", Value::from(cursor));
    let params = match message.params() {
        None => format!("{{{own}}}"),
        Some(params) if member(params, "cursor").is_some() => return None,
        Some(params) => {
            let rest = params.strip_prefix('{')?;
            let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
            format!("{{{own}{comma}{rest}")
        }
    };
    let (id, method) = (message.id()?, Value::from(message.method()));
    Message::again(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)).ok()
}
