//! A session's way to its upstream: the link, opened (again) where that is needed, and the tools behind it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc;

use super::link::{Era, Fault, Opening, UpstreamError};
use super::route::{Flight, Forwarded, Route};
use super::session::{Handshake, Session};
use super::tools::{Definition, LEAST_AGE, Page, Reading};
use super::{CHANNEL, Permit, claim};
use crate::message::{Message, compose};

/// A list of more pages has no end.
const PAGES: usize = 100;

impl Session {
    /// The open link, opened (again) where that is needed.
    pub(super) async fn route(self: &Arc<Self>) -> Result<Arc<Route>, UpstreamError> {
        if let Some(route) = self.route.load_full() {
            return Ok(route);
        }
        let _one_at_a_time = self.opening.lock().await;
        if let Some(route) = self.route.load_full() {
            return Ok(route);
        }
        let route = self.open(self.resume()).await?;
        if let Some(handshake) = &self.handshake
            && handshake.version.get().is_some()
            && route.upstream_session().is_none()
        {
            self.shake_hands_again(&route, handshake).await?;
        }
        // Not before the handshake: nothing may overtake it.
        self.route.store(Some(Arc::clone(&route)));
        Ok(route)
    }

    /// The client's own handshake, as it came.
    pub(super) fn initialize(&self) -> &str {
        self.handshake.as_ref().map(|h| h.initialize.as_str()).unwrap_or_default()
    }

    /// The upstream's own session id, while a link is open.
    pub(super) fn upstream_session(&self) -> Option<String> {
        self.route.load().as_ref().and_then(|route| route.upstream_session())
    }

    fn resume(&self) -> Option<String> {
        self.handshake.as_ref().and_then(|h| h.resume.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// The upstream forgot the session of that link: the next use makes another.
    pub(super) fn lost(&self, route: &Arc<Route>) {
        self.route.compare_and_swap(route, None);
    }

    async fn open(self: &Arc<Self>, resume: Option<String>) -> Result<Arc<Route>, UpstreamError> {
        let (inbound, events) = mpsc::channel(CHANNEL);
        let opening = Opening {
            agent: self.agent.clone(),
            era: self.era,
            resume,
            version: self.version().map(str::to_owned),
            inbound,
        };
        let opened = self.executor.upstream.open(opening).await;
        self.gate.metrics.upstream_up(self.executor.id(), opened.is_ok());
        Ok(Route::start(opened?, events, Arc::downgrade(self)))
    }

    /// The first handshake: the client's own, answered by the upstream.
    pub(super) async fn shake_hands(self: &Arc<Self>, message: &Message) -> Result<Message, UpstreamError> {
        let route = self.route().await?;
        let flight = route.request(Permit::mint(), message, Vec::new(), Forwarded::default(), None).await?;
        let answer = self.settle(&route, flight, self.executor.config.timeout).await?;
        if let Some(result) = answer.result()
            && let Ok(result) = serde_json::from_str::<serde_json::Value>(result)
            && let Some(version) = result.get("protocolVersion").and_then(|v| v.as_str())
            && let Some(handshake) = &self.handshake
        {
            self.heard_hello(&result);
            // The first handshake is the only one that sets it.
            let _ = handshake.version.set(version.to_owned());
        }
        Ok(answer)
    }

    async fn shake_hands_again(
        self: &Arc<Self>,
        route: &Arc<Route>,
        handshake: &Handshake,
    ) -> Result<(), UpstreamError> {
        let broken = |what: String| UpstreamError { fault: Fault::Garbage, what, may_have_run: false };
        let message = Message::again(&handshake.initialize)
            .map_err(|e| broken(format!("the stored handshake cannot be read: {e}")))?;
        let flight = route.request(Permit::mint(), &message, Vec::new(), Forwarded::default(), None).await?;
        let answer = self.settle(route, flight, self.executor.config.timeout).await?;
        let agreed = answer.result().and_then(|r| serde_json::from_str::<serde_json::Value>(r).ok());
        let version = agreed.as_ref().and_then(|r| r.get("protocolVersion")).and_then(|v| v.as_str());
        if version != self.version() {
            return Err(broken(format!("it now speaks version {version:?}; the session must be begun again")));
        }
        agreed.as_ref().inspect(|result| self.heard_hello(result));
        let initialized = compose::notification("notifications/initialized", None);
        route.tell(Permit::mint(), "notifications/initialized", initialized).await
    }

    fn heard_hello(&self, result: &serde_json::Value) {
        let tells = result.pointer("/capabilities/tools/listChanged").and_then(serde_json::Value::as_bool);
        self.tells_of_lists.store(tells.unwrap_or_default(), Ordering::Relaxed);
    }

    async fn settle(&self, route: &Route, flight: Flight, within: Duration) -> Result<Message, UpstreamError> {
        let Flight { id, answer } = flight;
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(UpstreamError {
                fault: Fault::Died,
                what: "the connection ended before the answer".to_owned(),
                may_have_run: true,
            }),
            Err(_) => {
                route.stop(id, "timed out").await;
                Err(UpstreamError {
                    fault: Fault::Timeout,
                    what: format!("no answer within {} s", within.as_secs()),
                    may_have_run: true,
                })
            }
        }
    }

    /// The open link and the definition of a tool there: as listed on that very link, after one look of our own where
    /// it is not known or may have changed.
    pub(super) async fn find_tool(
        self: &Arc<Self>,
        name: &str,
        request: &Message,
    ) -> Result<(Arc<Route>, Option<Arc<Definition>>), UpstreamError> {
        let mut route = self.route().await?;
        let definition = match self.look_on(&route, name, request).await {
            Err(error) if error.fault == Fault::SessionGone => {
                self.lost(&route);
                route = self.route().await?;
                self.look_on(&route, name, request).await?
            }
            looked => looked?,
        };
        Ok((route, definition))
    }

    /// The definition of a tool, as [`Session::look`].
    pub(super) async fn definition(
        self: &Arc<Self>,
        name: &str,
        request: &Message,
    ) -> Result<Option<Arc<Definition>>, UpstreamError> {
        Ok(self.find_tool(name, request).await?.1)
    }

    async fn look_on(
        self: &Arc<Self>,
        route: &Arc<Route>,
        name: &str,
        request: &Message,
    ) -> Result<Option<Arc<Definition>>, UpstreamError> {
        let tools = &self.tools;
        if tools.is_fresh(route)
            && let Some(known) = tools.get(name)
        {
            return Ok(Some(known));
        }
        // Many calls that find the list missing wait for one look.
        let mut listed = self.listing.lock().await;
        let fresh = tools.is_fresh(route);
        let known = tools.get(name).filter(|_| fresh);
        let just_listed = fresh && listed.is_some_and(|at| at.elapsed() < LEAST_AGE);
        if known.is_some() || just_listed {
            return Ok(known);
        }
        self.list_tools(route, request).await?;
        *listed = Some(Instant::now());
        Ok(tools.get(name))
    }

    /// Reads all pages of `tools/list` on a link by ourselves.
    pub(super) async fn list_tools(
        self: &Arc<Self>,
        route: &Arc<Route>,
        request: &Message,
    ) -> Result<(), UpstreamError> {
        let meta = match self.era {
            Era::Modern => request.at(&["params", "_meta"]).and_then(|(_, raw)| serde_json::from_str(raw).ok()).map(
                |mut meta: serde_json::Map<String, serde_json::Value>| {
                    meta.remove("progressToken");
                    meta.retain(|key, _| !claim::is_own(key));
                    meta
                },
            ),
            Era::Legacy => None,
        };
        let headers = Forwarded { version: request.meta_version(), ..Forwarded::default() };
        let garbage = |what: String| UpstreamError { fault: Fault::Garbage, what, may_have_run: false };
        let (mut cursor, mut reading) = (None::<String>, Reading::default());
        let mut sightings = Vec::new();
        for _ in 0..PAGES {
            let mut params = serde_json::Map::new();
            params.extend(meta.as_ref().map(|meta| ("_meta".to_owned(), json!(meta))));
            params.extend(cursor.as_ref().map(|cursor| ("cursor".to_owned(), json!(cursor))));
            let params = json!(params);
            let asked = self.tools.asked(route);
            let flight = route.own_request(Permit::mint(), "tools/list", &params, headers.clone()).await?;
            let answer = self.settle(route, flight, self.executor.config.timeout).await?;
            let result = answer.result().ok_or_else(|| garbage("it does not list its tools".to_owned()))?;
            let page =
                Page::read(result).map_err(|what| garbage(format!("its list of tools cannot be read: {what}")))?;
            let next = page.next.clone();
            let (pins, now) = (&self.executor.pins, self.gate.clock.now());
            let learned = self.tools.learn(pins, &mut reading, page, cursor.as_deref(), Some(asked), now);
            self.gate.tell_of_odd(&self.executor, &learned.odd);
            sightings.extend(learned.sightings);
            if next.is_none() {
                self.gate.saw(&self.executor, sightings, true).await;
                return Ok(());
            }
            cursor = next;
        }
        Err(garbage(format!("its list of tools has more than {PAGES} pages")))
    }

    /// Reads the whole list before anything of it is told, where the first one counts as accepted.
    pub(super) async fn read_first_list(self: &Arc<Self>, request: &Message) {
        if self.executor.pins.wants_first_list() {
            let _one_at_a_time = self.listing.lock().await;
            let listed = match self.route().await {
                Ok(route) => self.list_tools(&route, request).await,
                Err(error) => Err(error),
            };
            if let Err(error) = listed {
                tracing::warn!(upstream = self.executor.id(), %error, "the upstream's tools cannot be listed");
            }
        }
    }
}
