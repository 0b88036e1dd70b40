//! Tools as people see them, and an operator's word on them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{Executor, Gate};
use super::canonical::digest;
use super::difference::difference;
use super::{Definition, flags};
use crate::catalog::{Argument, Format, Pointer, Tool};
use crate::clock::Timestamp;
use crate::config::NewTools;
use crate::policy::{Policy, Prospect, outlook};
use crate::record::{Access, ToolDetail, ToolRecord, ToolState, ToolVerdict};
use crate::store::{Acceptance, Sighting, StoreError, StoredTool};

/// Which tools to list.
#[derive(Clone, Debug, Default)]
pub struct ToolFilter {
    /// Only of this upstream.
    pub upstream: Option<String>,
    /// Only in this state.
    pub state: Option<ToolState>,
    /// At most so many (0: 50).
    pub limit: usize,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

/// Why a tool was not accepted.
#[derive(Clone, PartialEq, Debug)]
pub enum NotAccepted {
    /// No such tool was ever offered.
    Unknown,
    /// Another definition is offered by now.
    AnotherDigest,
    /// What is offered cannot be read, and reaches no client.
    Unreadable,
    /// The store does not work.
    Store(StoreError),
}

impl Gate {
    /// A page of all tools that were ever offered, by upstream and name, and where the next one starts.
    ///
    /// # Errors
    /// The store does not work.
    pub async fn tools(&self, filter: ToolFilter) -> Result<(Vec<ToolRecord>, Option<String>), StoreError> {
        let limit = if filter.limit == 0 { 50 } else { filter.limit };
        let mut all = self.store.tools_since(0).await?;
        all.retain(|tool| {
            filter.upstream.as_ref().is_none_or(|upstream| tool.upstream == *upstream)
                && filter.state.is_none_or(|state| self.tool_state(tool) == state)
                && filter.cursor.as_ref().is_none_or(|cursor| cursor_of(tool) > *cursor)
        });
        all.sort_by_key(cursor_of);
        let more = all.len() > limit;
        all.truncate(limit);
        let next = all.last().filter(|_| more).map(cursor_of);
        let mut items = Vec::new();
        for tool in &all {
            items.push(self.tool_detail(tool, None).await?.tool);
        }
        Ok((items, next))
    }

    /// One tool with its definitions: as it was last offered, or as the definition of that digest, one of its last, says.
    ///
    /// # Errors
    /// Not found, or the store does not work.
    pub async fn tool(&self, upstream: &str, name: &str, digest: Option<&str>) -> Result<ToolDetail, StoreError> {
        let tool = self.store.tool(upstream, name).await?.ok_or(StoreError::NotFound)?;
        self.tool_detail(&tool, digest).await
    }

    /// Accepts the definition of a tool that was last offered, if it is the one of that digest.
    ///
    /// # Errors
    /// Why not.
    pub async fn accept_tool(
        &self,
        upstream: &str,
        name: &str,
        digest: &str,
        by: &str,
        channel: &str,
    ) -> Result<ToolDetail, NotAccepted> {
        let offered = self.store.tool_definitions(upstream, name).await.map_err(NotAccepted::Store)?;
        if offered.is_some_and(|(offered, _)| is_unread(&offered)) {
            return Err(NotAccepted::Unreadable);
        }
        match self.store.accept_tool(upstream, name, digest, by).await.map_err(NotAccepted::Store)? {
            Acceptance::Unknown => return Err(NotAccepted::Unknown),
            Acceptance::Another => return Err(NotAccepted::AnotherDigest),
            Acceptance::Already => {}
            Acceptance::Accepted => {
                let fields =
                    json!({"upstream": upstream, "tool": name, "definition": digest, "by": by, "channel": channel});
                self.note("tool.accepted", &fields);
                tracing::info!(upstream, tool = name, by, channel, "a tool was accepted");
            }
        }
        // Whoever is answered that it is accepted can call it.
        self.refresh_pins().await.map_err(NotAccepted::Store)?;
        self.tool(upstream, name, None).await.map_err(NotAccepted::Store)
    }

    /// The upstreams of which nothing is accepted yet, although somebody has to.
    pub fn unaccepted(&self) -> Vec<String> {
        let waiting = self.executors.values().filter(|executor| executor.pins.awaits_acceptance());
        waiting.map(|executor| executor.id().to_owned()).collect()
    }

    /// Remembers what an upstream offered that was not known so, and tells of it. `whole` for all pages of a list.
    pub(in crate::gate) async fn saw(&self, executor: &Executor, sightings: Vec<Sighting>, whole: bool) {
        if sightings.is_empty() {
            return;
        }
        let pins = &executor.pins;
        let was_new = pins.awaits_acceptance();
        let states: Vec<(String, String, ToolState)> =
            sightings.iter().map(|s| (s.name.clone(), s.digest.clone(), pins.state(&s.name, &s.digest))).collect();
        let news = match self.store.saw_tools(executor.id(), sightings, pins.accepting(whole)).await {
            Ok(news) => news,
            Err(error) => return self.store_failed(&error),
        };
        if let Err(error) = self.refresh_pins().await {
            return self.store_failed(&error);
        }
        let upstream = executor.id();
        if was_new && !pins.awaits_acceptance() {
            let (accepted, left): (Vec<_>, Vec<_>) =
                states.iter().partition(|(name, digest, _)| pins.state(name, digest) == ToolState::Accepted);
            self.note(
                "tool.first_list",
                &json!({"upstream": upstream, "tools": names(&accepted), "left": names(&left)}),
            );
            tracing::info!(
                "accepted the first list of `{upstream}`, {} tools: {}; what is new or changed after this waits for you",
                accepted.len(),
                names(&accepted).join(", ")
            );
            if !left.is_empty() {
                tracing::warn!(
                    "not accepted: {}; their texts hold what a person should see first (`portcullis tools list`)",
                    names(&left).join(", ")
                );
            }
            return;
        }
        if was_new && !news.is_empty() && pins.tells("", "") {
            tracing::warn!(
                "no tool of `{upstream}` is accepted yet, so each of its calls is held: look at them with \
                 `portcullis tools list --upstream {upstream}`, accept them with `portcullis tools accept {upstream} --all`"
            );
        }
        for (name, digest, state) in states.iter().filter(|(name, ..)| news.contains(name)) {
            self.tell_of(executor, name, digest, *state, was_new);
        }
    }

    /// Tells of what was left out of a list, each time that it is another.
    pub(in crate::gate) fn tell_of_odd(&self, executor: &Executor, odd: &[(&str, String)]) {
        for (raw, why) in odd {
            let digest = digest(raw);
            if executor.pins.tells("", &digest) {
                let upstream = executor.id();
                self.note("tool.left_out", &json!({"upstream": upstream, "definition": digest, "what": why}));
                tracing::warn!("left out of the list of `{upstream}`: {why}; {}", start(raw));
            }
        }
    }

    fn tell_of(&self, executor: &Executor, tool: &str, digest: &str, state: ToolState, quietly: bool) {
        let (pins, upstream) = (&executor.pins, executor.id());
        if !pins.tells(tool, digest) {
            return;
        }
        let word = match state {
            ToolState::Changed => "changed",
            // The first list of an upstream that takes everything, and the gateway's own tools, are no news.
            ToolState::Accepted if executor.config.new_tools != NewTools::Accept => return,
            ToolState::Accepted | ToolState::New => "new",
        };
        self.metrics.tool_seen(upstream, word);
        self.note("tool.offered", &json!({"upstream": upstream, "tool": tool, "definition": digest, "state": state}));
        if state != ToolState::Accepted && !quietly {
            tracing::warn!(
                "`{upstream}` offers a tool that is {word}: `{tool}`; look at it with `portcullis tools show {upstream} \
                 {tool}`, accept it with `portcullis tools accept {upstream} {tool}`"
            );
        }
    }

    fn tool_state(&self, tool: &StoredTool) -> ToolState {
        match (self.executors.get(&tool.upstream), &tool.accepted) {
            (Some(executor), _) => executor.pins.state(&tool.name, &tool.offered),
            (None, Some(accepted)) if accepted.digest == tool.offered => ToolState::Accepted,
            (None, Some(_)) => ToolState::Changed,
            (None, None) => ToolState::New,
        }
    }

    async fn tool_detail(&self, tool: &StoredTool, digest: Option<&str>) -> Result<ToolDetail, StoreError> {
        let texts = self.store.tool_definitions(&tool.upstream, &tool.name).await?;
        let (offered, accepted) = texts.ok_or(StoreError::NotFound)?;
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| Value::from(text));
        let earlier = digest.filter(|digest| **digest != *tool.offered);
        let (text, tool) = match earlier {
            None => (offered, tool.clone()),
            Some(digest) => {
                let text = self.store.tool_definition(&tool.upstream, &tool.name, digest).await?;
                (text.ok_or(StoreError::NotFound)?, StoredTool { offered: digest.to_owned(), ..tool.clone() })
            }
        };
        let (definition, accepted) = (read(&text), accepted.as_deref().map(read));
        let accepted_definition = accepted.filter(|accepted| *accepted != definition);
        let difference = accepted_definition.as_ref().map(|old| difference(old, &definition)).unwrap_or_default();
        let (tool, is_offered) = (self.tool_record(&tool, &definition), earlier.is_none());
        Ok(ToolDetail { tool, definition, is_offered, accepted_definition, difference })
    }

    fn tool_record(&self, tool: &StoredTool, definition: &Value) -> ToolRecord {
        let executor = self.executors.get(&tool.upstream);
        // Of two tools of one name in a list, the last.
        let one = definition.as_array().and_then(|both| both.last()).unwrap_or(definition);
        let catalogue = executor.map(|executor| executor.config.catalogue.clone()).unwrap_or_default();
        let read = Definition::read(&catalogue, &tool.name, one, tool.offered.clone());
        let verdicts =
            executor.map(|executor| verdicts(&self.policy().policy, self.clock.now(), executor, &tool.name, &read));
        ToolRecord {
            upstream: tool.upstream.clone(),
            name: tool.name.clone(),
            category: read.entry.category.clone(),
            definition_digest: tool.offered.clone(),
            state: self.tool_state(tool),
            first_seen: tool.first_seen,
            last_offered: tool.last_offered,
            arguments: arguments(&read.entry),
            verdicts: verdicts.unwrap_or_default(),
            flags: flags::flags(definition),
            accepted: tool.accepted.clone(),
        }
    }
}

/// What each group's policy says of a tool, and what its being new or changed adds.
fn verdicts(
    policy: &Policy,
    at: Timestamp,
    executor: &Executor,
    tool: &str,
    definition: &Definition,
) -> BTreeMap<String, ToolVerdict> {
    let (held, refused) =
        (executor.pins.floor(tool, &definition.digest).is_some(), executor.pins.refuses(tool, &definition.digest));
    let of = |group: &str| {
        let prospect = Prospect {
            group,
            agent: None,
            source: None,
            depth: None,
            at,
            upstream: executor.id(),
            tool,
            entry: &definition.entry,
            takes_text: definition.takes_text,
        };
        match outlook(policy, &prospect) {
            _ if refused => ToolVerdict::Deny,
            ToolVerdict::Deny => ToolVerdict::Deny,
            _ if held && !policy.is_in_shadow(group, at) => ToolVerdict::Ask,
            verdict => verdict,
        }
    };
    policy.groups().map(|group| (group.to_owned(), of(group))).collect()
}

/// Whether a stored definition is the text of something that cannot be read, which is no definition.
fn is_unread(definition: &str) -> bool {
    definition.starts_with('"')
}

/// Enough of a text to know it by.
fn start(raw: &str) -> String {
    let shown: String = raw.chars().take(120).collect();
    crate::pattern::visible(&shown)
}

fn names<'a>(tools: &[&'a (String, String, ToolState)]) -> Vec<&'a str> {
    tools.iter().map(|(name, ..)| name.as_str()).collect()
}

/// No id of an upstream has a slash.
fn cursor_of(tool: &StoredTool) -> String {
    format!("{}/{}", tool.upstream, tool.name)
}

/// By JSON pointer; one that is several things at once (the source of a move) has them all.
fn arguments(entry: &Tool) -> BTreeMap<String, String> {
    let mut words: BTreeMap<String, String> = BTreeMap::new();
    for (at, argument) in &entry.arguments {
        let word = word(argument);
        words
            .entry(pointer(at))
            .and_modify(|known| *known = format!("{known}, {word}"))
            .or_insert_with(|| word.to_owned());
    }
    words
}

fn pointer(pointer: &Pointer) -> String {
    pointer.0.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
}

/// An argument in a word, as the configuration writes it.
fn word(argument: &Argument) -> &'static str {
    match argument {
        Argument::Path { access: Some(Access::Read), .. } => "path:read",
        Argument::Path { access: Some(Access::Write), .. } => "path:write",
        Argument::Path { access: Some(Access::Delete), .. } => "path:delete",
        Argument::Path { access: None, .. } => "path:unknown",
        Argument::Glob => "glob",
        Argument::Command | Argument::Words => "command",
        Argument::Code => "code",
        Argument::Cwd => "cwd",
        Argument::Env => "env",
        Argument::Stdin => "stdin",
        Argument::Url => "url",
        Argument::Address => "address",
        Argument::Sql => "sql",
        Argument::Decode(Format::Json) => "decode:json",
        Argument::Decode(Format::Yaml) => "decode:yaml",
        Argument::Text => "text",
        Argument::Secret => "secret",
    }
}
