//! Idempotency keys of decisions: the first answer again, byte for byte, for 24 hours.

use authority_model::{
    proto::runtime::{AuthorizeResponse, Decision, EvaluateDecisionResponse, EvaluateResponse},
    schema::decision_keys,
};
use chrono::TimeDelta;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use prost::Message;
use tonic::{Response, metadata::MetadataMap};

use super::{
    Runtime,
    ask::{self, Ask},
    decide::{Decided, Reached},
};
use crate::{
    decision::{self, Facts, Reason, Request},
    error::{ErrorCode, Refusal},
    identity::Caller,
    keys, store,
};

/// How long an answer is kept.
const KEPT: TimeDelta = TimeDelta::hours(24);
const LONGEST_KEY: usize = 255;

/// An idempotency key as it was given, and what it was given with.
pub(super) struct KeyGiven {
    /// The door: the same key at another door is another key.
    pub(super) scope: &'static str,
    pub(super) key: String,
    pub(super) request_sha256: [u8; 32],
    /// Writes the door's answer.
    pub(super) answer: fn(&Decided) -> Vec<u8>,
}

/// A door's answer: made of a decision, kept as protobuf.
pub(super) trait Reply: Message + Default + for<'d> From<&'d Decided> {
    fn decision(&self) -> Decision;
}

macro_rules! replies {
    ($($reply:ty),*) => { $(
        impl Reply for $reply {
            fn decision(&self) -> Decision {
                self.decision()
            }
        }
    )* };
}
replies!(EvaluateResponse, AuthorizeResponse, EvaluateDecisionResponse);

impl Runtime {
    /// Decides once for an idempotency key, and every time without one.
    pub(super) async fn answer<A: Ask, R: Reply>(
        &self,
        door: &'static str,
        caller: &Caller,
        metadata: &MetadataMap,
        asked: A,
    ) -> Result<Response<R>, Refusal> {
        let request = ask::normal(caller, asked)?;
        let Some(key) = given::<R>(door, metadata, &request)? else {
            return match self.decide(door, &request, None).await? {
                Reached::Decided(decided) => Ok(Response::new(R::from(&decided))),
                Reached::KeyTaken => Err(Refusal::plain(ErrorCode::Internal)),
            };
        };
        if let Some(first) = self.first_answer(&request, &key).await? {
            return Ok(first);
        }
        match self.decide(door, &request, Some(&key)).await? {
            Reached::Decided(decided) => Ok(Response::new(R::from(&decided))),
            Reached::KeyTaken => self
                .first_answer(&request, &key)
                .await?
                .ok_or_else(|| Refusal::plain(ErrorCode::IdempotencyInProgress)),
        }
    }

    async fn first_answer<R: Reply>(
        &self,
        request: &Request,
        key: &KeyGiven,
    ) -> Result<Option<Response<R>>, Refusal> {
        let since = self.0.clock.now() - KEPT;
        let mut db = self.0.store.system().await?;
        let place = decision_keys::table.find((&request.tenant_id, key.scope, &key.key));
        let found: Option<(Vec<u8>, Vec<u8>, chrono::DateTime<chrono::Utc>)> = place
            .select((
                decision_keys::request_sha256,
                decision_keys::answer,
                decision_keys::created_at,
            ))
            .first(&mut db)
            .await
            .optional()
            .map_err(store::Error::from)?;
        let Some((request_sha256, answer, created_at)) = found else { return Ok(None) };
        if created_at <= since {
            let old = place.filter(decision_keys::created_at.le(since));
            diesel::delete(old).execute(&mut db).await.map_err(store::Error::from)?;
            return Ok(None);
        }
        drop(db);
        if request_sha256 != key.request_sha256 {
            return Err(Refusal::plain(ErrorCode::IdempotencyKeyReused));
        }
        let answer = R::decode(answer.as_slice()).map_err(|error| {
            tracing::error!(%error, "a kept answer cannot be read");
            Refusal::plain(ErrorCode::Internal)
        })?;
        if matches!(answer.decision(), Decision::Allow | Decision::AllowWithConstraints) {
            self.still_stands(request).await?;
        }
        let mut response = Response::new(answer);
        response
            .metadata_mut()
            .insert("idempotency-replayed", tonic::metadata::MetadataValue::from_static("true"));
        Ok(Some(response))
    }

    /// Before an answer is repeated: has a stop condition fired since?
    async fn still_stands(&self, request: &Request) -> Result<(), Refusal> {
        let cell = self.0.graph.tenant_at(&request.tenant_id, 0).await?;
        let (facts, _) = self.gather(cell.as_ref(), request)?;
        let facts = Facts::new(std::sync::Arc::clone(&facts.gathered));
        let now = decision::decide(request, &facts, self.0.clock.now());
        let stopped = matches!(
            now.reason_code,
            Reason::ActorStopped
                | Reason::CapabilityQuarantined
                | Reason::DelegationExpired
                | Reason::DelegationRevoked
                | Reason::DelegationSuspended
                | Reason::DelegatorInactive
                | Reason::SubjectSuspended
                | Reason::SubjectUnknown
                | Reason::TenantInactive
        );
        if stopped {
            let reason = now.reason_code;
            let message = format!("`{reason}` ended what this key was answered; ask anew");
            return Err(Refusal::new(ErrorCode::DecisionStopped, message)
                .with("stop_condition", reason.word()));
        }
        Ok(())
    }
}

fn given<R: Reply>(
    door: &'static str,
    metadata: &MetadataMap,
    request: &Request,
) -> Result<Option<KeyGiven>, Refusal> {
    let Some(value) = metadata.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    if text.is_empty() || text.len() > LONGEST_KEY {
        let problem = "must be 1 to 255 visible ASCII characters";
        return Err(Refusal::field("idempotency-key", problem));
    }
    let asked = serde_json_canonicalizer::to_vec(&**request).map_err(super::decide::fault)?;
    Ok(Some(KeyGiven {
        scope: door,
        key: text.to_owned(),
        request_sha256: keys::sha256(&asked),
        answer: |decided| R::from(decided).encode_to_vec(),
    }))
}
