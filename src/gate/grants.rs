//! "Approve and remember": grants as this process knows them, made by votes, used by calls, ended by people or by what they
//! are bound to. The store has the last word on each use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;

use super::call::Call;
use super::judged::{Judged, Target};
use super::{Gate, GateEvent, Session, asked, shown};
use crate::approval::Held;
use crate::clock::Timestamp;
use crate::config::Role;
use crate::policy::{Granted, Judgement, Lift, Offer, Policy, fingerprint};
use crate::record::{
    ApprovalState, CallRecord, Decision, GrantBound, GrantOption, GrantRecord, GrantScope, GrantState, Remember, Vote,
};
use crate::secret::TokenHash;
use crate::store::{StoreError, StoredGrant};

/// How many calls a grant lets pass, unless another number is asked for, and at most.
const USES: (u32, u32) = (10, 1_000);

/// The grants that are known here.
#[derive(Default)]
pub struct Grants {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The last change that was taken in.
    rev: i64,
    /// Those that may still let a call pass, by agent.
    active: HashMap<String, Vec<Arc<Active>>>,
}

/// A grant that may let calls pass.
pub struct Active {
    grant: StoredGrant,
    /// None for one of a very call.
    lift: Option<Lift>,
}

impl Active {
    fn new(grant: StoredGrant) -> Option<Self> {
        let record = &grant.record;
        let lift = match (record.scope, grant.askers.as_slice()) {
            (GrantScope::Exact, _) => None,
            (_, [(asker, _)]) => {
                let label = label(&record.id);
                Some(Lift::new(asker, label, &record.upstream, record.tool.as_deref()?, &grant.granted)?)
            }
            _ => return None,
        };
        Some(Self { grant, lift })
    }

    /// How it lifts an ask; none for a grant of a very call.
    pub fn lift(&self) -> Option<&Lift> {
        self.lift.as_ref()
    }

    /// Whether all who asked still say what they said when it was made.
    pub fn is_bound(&self, policy: &Policy, group: &str) -> bool {
        let same = |(asker, said): &(String, String)| fingerprint(policy, group, asker).as_ref() == Some(said);
        self.grant.record.group == group && !self.grant.askers.is_empty() && self.grant.askers.iter().all(same)
    }
}

fn label(id: &str) -> String {
    format!("grant:{id}")
}

impl Grants {
    /// Those of an agent that may let a call of a tool pass in a session, if policy asks about it.
    pub fn of(
        &self,
        session: &Session,
        target: &Target,
        credential: Option<&TokenHash>,
        now: Timestamp,
    ) -> Vec<Arc<Active>> {
        let known = self.known();
        let Some(own) = known.active.get(&session.agent) else { return Vec::new() };
        let credential = credential.map(TokenHash::to_hex);
        let fits = |active: &&Arc<Active>| {
            let StoredGrant { record, definition, .. } = &active.grant;
            record.expires_at > now
                && record.upstream == session.executor.id()
                && record.tool.as_deref() == target.tool()
                && target.definition().map(|now| &now.digest) == definition.as_ref()
                && active.grant.credential == credential
                && (record.bound == GrantBound::Agent || record.session.as_deref() == session.key())
        };
        own.iter().filter(fits).cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn takes(&self, grant: StoredGrant) {
        let mut known = self.known();
        known.rev = known.rev.max(grant.rev);
        let own = known.active.entry(grant.record.agent.clone()).or_default();
        own.retain(|active| active.grant.record.id != grant.record.id);
        if grant.record.state == GrantState::Active {
            own.extend(Active::new(grant).map(Arc::new));
        }
        known.active.retain(|_, own| !own.is_empty());
    }

    fn all(&self) -> Vec<Arc<Active>> {
        self.known().active.values().flatten().cloned().collect()
    }
}

/// Begins to follow the grants of all processes.
pub async fn follow(gate: &Arc<Gate>) -> Result<(), StoreError> {
    let mut changes = gate.store.grant_changes();
    for grant in gate.store.grants_since(0).await? {
        gate.grants.takes(grant);
    }
    let follower = Arc::clone(gate);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            if let Err(error) = follower.catch_up_grants().await {
                follower.store_failed(&error);
            }
        }
    });
    Ok(())
}

impl Gate {
    /// The grant that lets a call pass that policy asks about: one use of it is taken. None where there is none.
    ///
    /// # Errors
    /// The store does not work.
    pub(super) async fn granted(
        &self,
        grants: &[Arc<Active>],
        judged: &Judged,
        call: &Call,
    ) -> Result<Option<(String, Judgement)>, StoreError> {
        if grants.is_empty() {
            return Ok(None);
        }
        let narrow = judged.lifted.iter().map(|(active, judgement)| (active, judgement.clone()));
        let very_call = very_call(call, judged);
        let exact = grants.iter().filter(|active| {
            let StoredGrant { digest, record, .. } = &active.grant;
            record.scope == GrantScope::Exact && digest.is_some() && *digest == very_call
        });
        let policy = self.policy().policy;
        let exact = exact.filter(|active| active.is_bound(&policy, &call.record.group));
        let exact = exact.map(|active| (active, judged.judgement.clone().granted(label(&active.grant.record.id))));
        for (active, judgement) in narrow.chain(exact) {
            let id = &active.grant.record.id;
            if let Err(why) = self.may_still_grant(&active.grant) {
                self.end_grant(id, &why, false).await?;
                continue;
            }
            if self.store.take_grant(id).await?.is_some() {
                return Ok(Some((id.clone(), judgement)));
            }
        }
        Ok(None)
    }

    /// Whether those who made a grant may still decide such calls.
    fn may_still_grant(&self, grant: &StoredGrant) -> Result<(), String> {
        let directory = self.directory();
        for (name, teams) in &grant.voters {
            let voter = directory.approvers().iter().find(|approver| approver.config.name == *name);
            let may = voter.is_some_and(|voter| {
                voter.has(Role::Approver)
                    && voter.covers(&grant.record.group)
                    && teams.iter().all(|team| voter.config.teams.contains(team))
            });
            if !may {
                return Err(format!("{name} may not decide such calls any more"));
            }
        }
        Ok(())
    }

    /// Gives back what was taken for a call that did not run.
    pub(super) async fn give_grant_back(&self, grant: Option<&str>) {
        if let Some(id) = grant
            && let Err(error) = self.store.give_grant_back(id).await
        {
            self.store_failed(&error);
        }
    }

    /// What an approver asks to be remembered, whole: one of the options, within its bounds.
    ///
    /// # Errors
    /// Why it cannot be remembered, and what can.
    pub fn remembers(&self, held: &Held, asked: Remember) -> Result<Remember, String> {
        let options = &held.approval.grant_options;
        let is_it = |option: &&GrantOption| {
            option.scope == asked.scope && option.path == asked.path && option.command == asked.command
        };
        let Some(option) = options.iter().find(is_it) else {
            let offered: Vec<&str> = options.iter().map(|option| option.sentence.as_str()).collect();
            return Err(match offered.as_slice() {
                [] => "nothing of this call may be remembered; leave `remember` out".to_owned(),
                offered => format!("that is none of this call's `grant_options`: {}", offered.join("; ")),
            });
        };
        let ttl_ms = asked.ttl_ms.unwrap_or(option.ttl_ms);
        if ttl_ms == 0 || ttl_ms > option.max_ttl_ms {
            return Err(format!("`ttl_ms` is from 1 to {}", option.max_ttl_ms));
        }
        let uses = asked.uses.unwrap_or(option.uses);
        if uses == 0 || uses > USES.1 {
            return Err(format!("`uses` is from 1 to {}", USES.1));
        }
        let bound = asked.bound.or(option.bound.first().copied()).unwrap_or(GrantBound::Agent);
        if !option.bound.contains(&bound) {
            return Err("`bound` is none of the option's `bound`".to_owned());
        }
        Ok(Remember { ttl_ms: Some(ttl_ms), uses: Some(uses), bound: Some(bound), ..asked })
    }

    /// Makes the grant that the last vote on an approval asks for, where enough of those who approved ask for the same.
    pub(super) async fn remember(&self, held: &Held, last: &Vote) -> Result<(), StoreError> {
        let Some(asked) = last.remember.as_deref().filter(|_| held.approval.state == ApprovalState::Approved) else {
            return Ok(());
        };
        let same = |other: &Remember| {
            (other.scope, &other.path, &other.command, other.bound)
                == (asked.scope, &asked.path, &asked.command, asked.bound)
        };
        let call = held.call();
        let votes: Vec<(&Vote, &Remember)> = held
            .approval
            .votes
            .iter()
            .filter(|vote| vote.decision == Decision::Approve && vote.digest == call.digest)
            .filter_map(|vote| Some((vote, vote.remember.as_deref()?)))
            .filter(|(_, other)| same(other))
            .collect();
        let meets = held.approval.requirements.iter().all(|needed| {
            let count = votes.iter().filter(|(vote, _)| needed.counts(&vote.by, &vote.teams)).count();
            u32::try_from(count).unwrap_or(u32::MAX) >= needed.quorum
        });
        let option =
            held.approval.grant_options.iter().find(|option| {
                option.scope == asked.scope && option.path == asked.path && option.command == asked.command
            });
        let policy = self.policy().policy;
        let askers: Option<Vec<(String, String)>> = call
            .decided_by
            .iter()
            .map(|asker| Some((asker.clone(), fingerprint(&policy, &call.group, asker)?)))
            .collect();
        // Judged by another policy than the one that asked, nobody knows what was approved.
        let current = call.policy.as_ref() == Some(&policy.version);
        let (true, true, Some(option), Some(askers)) = (meets, current, option, askers) else {
            let what = json!({"approval": held.approval.id, "call": call.id, "by": last.by, "remember": asked});
            self.note("grant.not_made", &what);
            return Ok(());
        };
        let now = self.clock.now();
        let ttl = votes.iter().filter_map(|(_, other)| other.ttl_ms).min().unwrap_or(option.ttl_ms);
        let uses = votes.iter().filter_map(|(_, other)| other.uses).min().unwrap_or(option.uses);
        let bound = asked.bound.unwrap_or(GrantBound::Agent);
        let record = GrantRecord {
            id: crate::secret::random_id("gr_", 12),
            state: GrantState::Active,
            scope: option.scope,
            sentence: option.sentence.clone(),
            rule: call.decided_by.join(", "),
            agent: call.agent.clone(),
            group: call.group.clone(),
            session: call.session.clone().filter(|_| bound == GrantBound::Session),
            bound,
            upstream: call.upstream.clone(),
            tool: call.tool.clone(),
            path: option.path.clone(),
            command: option.command.clone(),
            uses_left: uses,
            used: 0,
            created_at: now,
            expires_at: now.after(Duration::from_millis(ttl)),
            by: votes.iter().map(|(vote, _)| vote.by.clone()).collect(),
            from: held.approval.id.clone(),
            ended_at: None,
            ended_by: None,
        };
        let grant = StoredGrant {
            rev: 0,
            granted: Granted {
                path: option.path.clone(),
                access: option.access.clone(),
                command: option.command.clone(),
                options: option.options.clone(),
            },
            askers,
            definition: held.intent.definition.clone(),
            digest: held.intent.very_call.clone().filter(|_| option.scope == GrantScope::Exact),
            credential: held.intent.credential.clone(),
            voters: votes.iter().map(|(vote, _)| (vote.by.clone(), vote.teams.clone())).collect(),
            record: record.clone(),
        };
        self.store.put_grant(grant).await?;
        self.catch_up_grants().await?;
        self.note("grant.created", &serde_json::to_value(&record).unwrap_or_default());
        tracing::info!(grant = record.id, agent = record.agent, "{}", record.sentence);
        Ok(())
    }

    /// The grants that are remembered, newest first.
    ///
    /// # Errors
    /// The store does not work.
    pub async fn grants(&self) -> Result<Vec<GrantRecord>, StoreError> {
        let mut grants: Vec<GrantRecord> =
            self.store.grants_since(0).await?.into_iter().map(|grant| grant.record).collect();
        grants.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| b.id.cmp(&a.id)));
        Ok(grants)
    }

    /// One grant.
    ///
    /// # Errors
    /// Not found, or the store does not work.
    pub async fn grant(&self, id: &str) -> Result<GrantRecord, StoreError> {
        Ok(self.store.grant(id).await?.record)
    }

    /// Ends a grant on behalf of a person: no call uses it after this is answered, in any process.
    ///
    /// # Errors
    /// Not found, or the store does not work.
    pub async fn revoke(&self, id: &str, by: &str) -> Result<GrantRecord, StoreError> {
        self.end_grant(id, by, true).await?;
        self.grant(id).await
    }

    async fn end_grant(&self, id: &str, by: &str, revoked: bool) -> Result<(), StoreError> {
        if let Some(ended) = self.store.end_grant(id, by, revoked).await? {
            let event = if revoked { "grant.revoked" } else { "grant.ended" };
            self.note(event, &json!({"grant": id, "agent": ended.record.agent, "by": by, "used": ended.record.used}));
            tracing::info!(grant = id, by, "a grant has ended");
            self.catch_up_grants().await?;
        }
        Ok(())
    }

    /// Ends the grants whose rules the policy in force does not have as they were.
    pub(super) async fn end_unbound_grants(&self) {
        let policy = self.policy().policy;
        for active in self.grants.all() {
            let record = &active.grant.record;
            if !active.is_bound(&policy, &record.group)
                && let Err(error) = self.end_grant(&record.id, "the rule that it lifts was changed", false).await
            {
                self.store_failed(&error);
            }
        }
    }

    async fn catch_up_grants(&self) -> Result<(), StoreError> {
        let rev = self.grants.known().rev;
        for grant in self.store.grants_since(rev).await? {
            let id = grant.record.id.clone();
            self.grants.takes(grant);
            // Without a reader there is nobody to miss it.
            let _ = self.events.send(GateEvent::Grant(id));
        }
        Ok(())
    }
}

/// The digest of a call that is asked about, as a grant for that very call is bound to it.
pub fn very_call(call: &Call, judged: &Judged) -> Option<String> {
    let key = call.record.attach_key.as_deref()?;
    let terms = asked::terms(judged, &call.session.gate.config().approvals)?;
    let definition = call.target.definition().map(|definition| definition.digest.as_str());
    Some(shown::very_call(key, definition, judged, Some(&terms)))
}

/// What an approver may choose to be remembered, each said in a sentence.
pub fn options(offers: &[Offer], record: &CallRecord, longest: Duration) -> Vec<GrantOption> {
    let max_ttl_ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
    let tool = record.tool.as_deref().unwrap_or(&record.method);
    let bound = match &record.session {
        Some(_) => vec![GrantBound::Session, GrantBound::Agent],
        None => vec![GrantBound::Agent],
    };
    offers
        .iter()
        .map(|Offer { scope, granted }| {
            let what = match (scope, &granted.path, &granted.command) {
                (GrantScope::Path, Some(path), _) => format!("{tool} below {path}"),
                (GrantScope::Command, _, Some(command)) if granted.options.is_empty() => {
                    format!("commands that start with `{command}` and have no options")
                }
                (GrantScope::Command, _, Some(command)) => {
                    format!(
                        "commands that start with `{command}` and have no options but {}",
                        granted.options.join(", ")
                    )
                }
                (GrantScope::Tool, ..) => format!("every call of {tool}"),
                _ => "this very call".to_owned(),
            };
            GrantOption {
                scope: *scope,
                path: granted.path.clone(),
                command: granted.command.clone(),
                access: granted.access.clone(),
                options: granted.options.clone(),
                sentence: format!(
                    "Let {what} of agent {} at {} pass without a question",
                    record.agent, record.upstream
                ),
                ttl_ms: max_ttl_ms,
                max_ttl_ms,
                uses: USES.0,
                bound: bound.clone(),
            }
        })
        .collect()
}
