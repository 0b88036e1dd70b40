//! What an operator has accepted of one upstream's tools, and what becomes of calls of the others.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::Value;

use super::super::{Gate, GateEvent};
use super::{Definition, announce, compare};
use crate::catalog::Catalogue;
use crate::clock::Timestamp;
use crate::config::{NewTools, Transport, UpstreamConfig};
use crate::facet::{Floor, FloorWhy};
use crate::policy::{self, Judgement};
use crate::record::{AcceptedRecord, ToolState, Verdict};
use crate::store::{Accepting, StoreError, StoredTool};

/// How many definitions are shared between sessions; beyond that they are read anew.
const SHARED: usize = 5_000;

/// How long after it was last written down a tool that is still offered is written down again.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// How many definitions are told of in the log: a list that is another each time must not fill it.
const TOLD: usize = 1_000;

/// The pins of one upstream: by the tool's name the accepted definition.
#[derive(Debug)]
pub struct Pins {
    upstream: String,
    mode: NewTools,
    /// The gateway's own tools, which come with the program.
    own: bool,
    first_list: bool,
    catalogue: Catalogue,
    known: ArcSwap<HashMap<String, StoredTool>>,
    shared: Mutex<HashMap<String, Arc<Definition>>>,
    told: Mutex<HashSet<String>>,
    /// Held while the gateway itself asks for the list.
    pub(super) asking: tokio::sync::Mutex<()>,
}

impl Pins {
    /// Of a configured upstream; nothing is known of it yet.
    pub fn new(config: &UpstreamConfig) -> Self {
        Self {
            upstream: config.id.clone(),
            mode: config.new_tools,
            own: matches!(config.transport, Transport::Workspace | Transport::Own),
            first_list: config.accept_first_list,
            catalogue: config.catalogue.clone(),
            known: ArcSwap::default(),
            shared: Mutex::default(),
            told: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Whether a definition is the accepted one.
    pub fn state(&self, name: &str, digest: &str) -> ToolState {
        if self.own || self.mode == NewTools::Accept {
            return ToolState::Accepted;
        }
        match self.known.load().get(name).and_then(|pin| pin.accepted.as_ref()) {
            Some(accepted) if accepted.digest == digest => ToolState::Accepted,
            Some(_) => ToolState::Changed,
            None => ToolState::New,
        }
    }

    /// The floor under calls of a tool that is not accepted as it is defined now; none too where no list was seen.
    pub fn floor(&self, name: &str, digest: &str) -> Option<Floor> {
        if digest.is_empty() {
            return None;
        }
        let upstream = &self.upstream;
        let what = match self.state(name, digest) {
            ToolState::Accepted => return None,
            ToolState::New => format!("no operator has accepted the tool `{name}` of `{upstream}` yet"),
            ToolState::Changed => {
                let known = self.known.load();
                let accepted = known.get(name).and_then(|pin| pin.accepted.as_ref());
                let since = accepted.map(|AcceptedRecord { by, at, .. }| format!(" that {by} accepted at {at}"));
                format!(
                    "the definition of the tool `{name}` of `{upstream}` is not the one{}",
                    since.unwrap_or_default()
                )
            }
        };
        Some(Floor::because(FloorWhy::NewTool, what))
    }

    /// Makes a refusal of a judgement where new tools are refused and this one is; a refusal for other reasons stays.
    pub fn refuse(&self, floor: &Floor, judgement: &mut Judgement) {
        if self.mode == NewTools::Deny && judgement.verdict != Verdict::Deny {
            let why = floor.detail.as_deref().unwrap_or_default();
            let reason =
                format!("{why}; an operator must accept it (`portcullis tools list`, `portcullis tools accept`)");
            judgement.refuse(&format!("floor:{}", FloorWhy::NewTool.as_str()), reason);
        }
    }

    /// Whether every call of a tool with that definition is refused for being new or changed.
    pub fn refuses(&self, name: &str, digest: &str) -> bool {
        self.mode == NewTools::Deny && self.state(name, digest) != ToolState::Accepted
    }

    /// Whether the store knows this as the last definition, has heard of it of late, and has nothing to accept.
    pub fn is_known(&self, name: &str, digest: &str, now: Timestamp) -> bool {
        let accepts = self.own || self.mode == NewTools::Accept || self.wants_first_list();
        self.known.load().get(name).is_some_and(|pin| {
            let accepted = pin.accepted.as_ref().is_some_and(|accepted| accepted.digest == digest);
            let as_it_should_be = accepted || !accepts;
            pin.offered == digest && as_it_should_be && now.since(pin.last_offered) < REMEMBERED
        })
    }

    /// Whether this is to be told: once for each definition.
    pub fn tells(&self, name: &str, digest: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.len() < TOLD && told.insert(format!("{name}\n{digest}"))
    }

    /// Whether the whole first list is to be read and accepted before anything else.
    pub fn wants_first_list(&self) -> bool {
        self.first_list && self.none_accepted()
    }

    /// Whether nothing of the upstream was ever accepted, although somebody has to.
    pub fn awaits_acceptance(&self) -> bool {
        !self.own && self.mode != NewTools::Accept && self.none_accepted()
    }

    /// Whether no tool of the upstream was ever seen.
    pub fn none_seen(&self) -> bool {
        self.known.load().is_empty()
    }

    /// In whose name what is seen is accepted.
    pub fn accepting(&self, whole_list: bool) -> Accepting {
        match self.mode {
            _ if self.own => Accepting::Always("portcullis".to_owned()),
            NewTools::Accept => Accepting::Always("new_tools: accept".to_owned()),
            NewTools::Ask | NewTools::Deny if whole_list && self.first_list => Accepting::FirstList("wrap".to_owned()),
            NewTools::Ask | NewTools::Deny => Accepting::Nothing,
        }
    }

    /// A definition, read once for all sessions that are offered the same.
    pub fn definition(&self, name: &str, tool: &Value, digest: String) -> Arc<Definition> {
        let key = format!("{name}\n{digest}");
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = shared.get(&key) {
            return Arc::clone(same);
        }
        if shared.len() >= SHARED {
            shared.clear();
        }
        let definition = Arc::new(Definition::read(&self.catalogue, name, tool, digest));
        shared.insert(key, Arc::clone(&definition));
        definition
    }

    fn none_accepted(&self) -> bool {
        self.known.load().values().all(|pin| pin.accepted.is_none())
    }

    fn take(&self, tools: &[StoredTool]) {
        self.known.rcu(|known| {
            let mut next = HashMap::clone(known);
            next.extend(tools.iter().map(|tool| (tool.name.clone(), tool.clone())));
            next
        });
    }
}

/// As the tools were last offered; what never was is new whenever it comes.
impl policy::Accepted for Pins {
    fn state(&self, tool: &str) -> Option<ToolState> {
        let known = self.known.load();
        match known.get(tool) {
            Some(pin) => Some(Self::state(self, tool, &pin.offered)),
            None => self.own.then_some(ToolState::Accepted),
        }
    }

    fn floor(&self, tool: &str) -> Option<Floor> {
        let known = self.known.load();
        let offered = known.get(tool).map_or("never offered", |pin| &pin.offered);
        Self::floor(self, tool, offered)
    }

    fn refuse(&self, floor: &Floor, judgement: &mut Judgement) {
        Self::refuse(self, floor, judgement);
    }
}

/// Reads what is accepted, and follows what this and other processes accept and see.
///
/// # Errors
/// The store does not work.
pub async fn follow(gate: &Arc<Gate>) -> Result<(), StoreError> {
    let mut changes = gate.store.tool_changes();
    gate.refresh_pins().await?;
    let follower = Arc::clone(gate);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            if let Err(error) = follower.refresh_pins().await {
                follower.store_failed(&error);
            }
        }
    });
    Ok(())
}

impl Gate {
    /// Brings all pins up to date with the store.
    ///
    /// # Errors
    /// The store does not work.
    pub(in crate::gate) async fn refresh_pins(&self) -> Result<(), StoreError> {
        let mut seen = self.pins_seen.lock().await;
        let news = self.store.tools_since(seen.unwrap_or_default()).await?;
        let is_first = seen.is_none();
        *seen = Some(news.last().map_or(seen.unwrap_or_default(), |last| last.rev));
        if news.is_empty() {
            return Ok(());
        }
        for (id, executor) in &self.executors {
            let own: Vec<StoredTool> = news.iter().filter(|tool| tool.upstream == *id).cloned().collect();
            if !own.is_empty() {
                executor.pins.take(&own);
                compare(self, id, &own);
            }
        }
        if !is_first {
            for tool in &news {
                // Without a reader there is nobody to miss it.
                let _ = self.events.send(GateEvent::Tool(tool.upstream.clone(), tool.name.clone()));
            }
            announce(self);
        }
        Ok(())
    }
}
