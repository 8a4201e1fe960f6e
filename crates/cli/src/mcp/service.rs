//! Calls the service: decisions with their proof, the record of the server, reports.

use std::time::{Duration, Instant};

use authority_client::{Client, Error, Lines};
use authority_evidence::verify::KeySet;
use authority_ids::{PrincipalId, TenantId};
use serde_json::{Map, Value, json};
use tokio::{sync::Mutex, time::timeout};

use crate::mcp::{
    clock::Moment,
    decision::{Decision, Permit},
    event::{AskFailure, Grants, Outcome},
    json::object,
    permit::{self, Unverified, Verified},
    question::ResourceName,
    record::ServerRecord,
};

/// The shortest time between reads of the keys because of permissions with an unknown key.
const KEYS_INTERVAL: Duration = Duration::from_secs(60);
/// The first pause between two attempts; it doubles.
const PAUSE: Duration = Duration::from_millis(50);

/// How long the relay waits for the service, and uses its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For a decision, over all attempts.
    pub(crate) decision: Duration,
    /// For a stream to open, and for other requests.
    pub(crate) open: Duration,
    /// For a lost stream of stop conditions to come back.
    pub(crate) lost: Duration,
    /// For a report to arrive.
    pub(crate) report: Duration,
    /// For keys that were read, at most: a revoked key is not trusted longer.
    pub(crate) keys: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            decision: Duration::from_secs(2),
            open: Duration::from_secs(2),
            lost: Duration::from_secs(30),
            report: Duration::from_secs(30),
            keys: Duration::from_secs(600),
        }
    }
}

/// The service, for one server and one agent.
pub(crate) struct Service {
    client: Client,
    slug: String,
    agent: String,
    tenant_id: String,
    /// Pinned keys are not read again. Other keys are read from the service.
    pinned: bool,
    keys: Mutex<Keys>,
    pub(crate) patience: Patience,
}

struct Keys {
    known: KeySet,
    tried_at: Option<Moment>,
    read_at: Option<Moment>,
}

impl Service {
    /// A client for an agent, whose id has its tenant. Without `jwks`, the service's own keys are
    /// trusted as they are read over its address.
    ///
    /// # Errors
    /// The agent's id is invalid, or the keys are unreadable.
    pub(crate) fn new(
        client: Client,
        slug: &str,
        agent: &str,
        jwks: Option<&Value>,
    ) -> Result<Self, String> {
        let id = PrincipalId::parse(agent).map_err(|error| error.to_string())?;
        let known = jwks.map(permit::keys).transpose()?;
        Ok(Self {
            client,
            slug: slug.to_owned(),
            agent: agent.to_owned(),
            tenant_id: TenantId::of(&id).as_str().to_owned(),
            pinned: known.is_some(),
            keys: Mutex::new(Keys {
                known: known.unwrap_or_default(),
                tried_at: None,
                read_at: None,
            }),
            patience: Patience::default(),
        })
    }

    /// Asks for a decision. A permission is returned only if its record is signed, and of this very
    /// question.
    ///
    /// # Errors
    /// No usable answer came in time, or the service refuses the question.
    pub(crate) async fn decide(&self, question: &Value, key: &str) -> Result<Decision, AskFailure> {
        let limit = self.patience.decision;
        let answer = timeout(limit, self.attempts(question, key)).await;
        let (body, replayed) =
            answer.map_err(|_| unavailable(&format!("no answer in {limit:?}")))??;
        if replayed {
            return Err(unavailable("the answer is an older one"));
        }
        let mut decision = Decision::read(&body).map_err(|why| unavailable(&why))?;
        if let Decision::Permitted(permit) = &mut decision {
            let verified = self.verify(permit, question).await.map_err(|why| unavailable(&why))?;
            // Only the record is signed.
            permit.valid_for = permit.valid_for.min(verified.lifetime);
            permit.is_approved = verified.is_approved;
        }
        Ok(decision)
    }

    /// Returns the id of a permission that came too late, to report it as abandoned.
    pub(crate) async fn late_decision(&self, question: &Value, key: &str) -> Option<String> {
        let answer = timeout(self.patience.report, self.attempts(question, key)).await.ok()?;
        match Decision::read(&answer.ok()?.0).ok()? {
            Decision::Permitted(permit) => Some(permit.decision_id),
            _ => None,
        }
    }

    /// Sends a question until it has an answer. Returns the body, and whether it is a repetition of an
    /// answer that this caller had not asked for before.
    async fn attempts(&self, question: &Value, key: &str) -> Result<(String, bool), AskFailure> {
        let path = ["v1", "decisions", "evaluate"];
        let (mut pause, mut first) = (PAUSE, true);
        loop {
            match self.client.post_once(&path, question, key).await {
                Ok(answer) => return Ok((answer.body, answer.replayed && first)),
                Err(error) => match judged(&error) {
                    Some(failure) => return Err(failure),
                    None => tokio::time::sleep(pause).await,
                },
            }
            (pause, first) = (pause * 2, false);
        }
    }

    async fn verify(&self, permit: &Permit, question: &Value) -> Result<Verified, String> {
        let mut keys = self.keys.lock().await;
        if !self.pinned && is_over(keys.read_at, self.patience.keys) {
            self.read_keys(&mut keys).await?;
        }
        match permit::verify(permit, question, &self.tenant_id, &keys.known) {
            Ok(verified) => return Ok(verified),
            Err(Unverified::UnknownKey)
                if !self.pinned && is_over(keys.tried_at, KEYS_INTERVAL) => {}
            Err(Unverified::UnknownKey) => {
                return Err("no known key signed the permission".to_owned());
            }
            Err(Unverified::Invalid(why)) => return Err(why),
        }
        self.read_keys(&mut keys).await?;
        permit::verify(permit, question, &self.tenant_id, &keys.known).map_err(|why| match why {
            Unverified::UnknownKey => "no known key signed the permission".to_owned(),
            Unverified::Invalid(why) => why,
        })
    }

    /// # Errors
    /// The service's keys can't be read. The known ones get no younger.
    async fn read_keys(&self, keys: &mut Keys) -> Result<(), String> {
        let began = Moment::now();
        keys.tried_at = Some(began);
        let read = timeout(self.patience.open, self.client.get(&[".well-known", "jwks.json"], &()));
        let read = read.await.map_err(|_| "the keys can't be read in time")?;
        let jwks = serde_json::from_str(&read.map_err(|error| error.to_string())?);
        keys.known = permit::keys(&jwks.map_err(|error: serde_json::Error| error.to_string())?)?;
        keys.read_at = Some(began);
        Ok(())
    }

    /// Reads the service's record of the server.
    ///
    /// # Errors
    /// The service does not answer, or does not know the server.
    pub(crate) async fn record(&self) -> Result<ServerRecord, String> {
        let query = json!({"tenant_id": self.tenant_id});
        let body = self.get(&["v1", "mcp-servers", &self.slug], &query).await?;
        object(&body)
    }

    /// Returns the id of the resource that a call names; `None` if the service knows none.
    ///
    /// # Errors
    /// The service does not answer, or this credential may not look up resources.
    pub(crate) async fn resource(&self, named: &ResourceName) -> Result<Option<String>, String> {
        let path = format!("{}:resource", self.slug);
        let path = ["v1", "mcp-servers", &path];
        let query = json!({"tenant_id": self.tenant_id, "kind": named.kind,
            "external_id": named.external_id});
        let answer = timeout(self.patience.open, self.client.get(&path, &query)).await;
        match answer.map_err(|_| "no answer in time")? {
            Ok(body) => {
                let found: Value = object(&body)?;
                let id = found["resource_id"].as_str().filter(|id| !id.is_empty());
                Ok(Some(id.ok_or("the answer has no `resource_id`")?.to_owned()))
            }
            Err(Error::Refused(refusal)) if refusal.error.error == "not_found" => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads the action patterns of the agent's grants.
    ///
    /// # Errors
    /// The service does not answer.
    pub(crate) async fn grants(&self) -> Result<Grants, String> {
        let body = self.get(&["v1", "authority", &self.agent], &json!({})).await?;
        let authority: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
        let all = authority["grants"].as_array().ok_or("the answer has no grants")?;
        let mut grants = Grants::default();
        for grant in all {
            let actions = grant["actions"].as_array().into_iter().flatten();
            let actions = actions.filter_map(Value::as_str).map(str::to_owned);
            match grant["state"].as_str() {
                Some("active") => grants.permitted.extend(actions),
                Some("denied") => grants.denied.extend(actions),
                _ => {}
            }
        }
        Ok(grants)
    }

    /// Reports definitions as the server sends them.
    ///
    /// # Errors
    /// The service does not answer, or this credential may not report them.
    pub(crate) async fn observe(
        &self,
        definitions: &[Map<String, Value>],
    ) -> Result<Value, String> {
        let path = format!("{}:observe", self.slug);
        let path = ["v1", "mcp-servers", &path];
        let body = json!({"tenant_id": self.tenant_id, "definitions": definitions});
        let sent = timeout(self.patience.report, self.client.post(&path, &body)).await;
        let answer = sent.map_err(|_| "no answer in time")?.map_err(|error| error.to_string())?;
        serde_json::from_str(&answer).map_err(|error| error.to_string())
    }

    async fn get(&self, path: &[&str], query: &Value) -> Result<String, String> {
        let answer = timeout(self.patience.open, self.client.get(path, query)).await;
        answer.map_err(|_| "no answer in time")?.map_err(|error| error.to_string())
    }

    /// Opens a stream of a decision: `watch` or `watch-stop-conditions`.
    ///
    /// # Errors
    /// The stream is refused, or does not open in time.
    pub(crate) async fn stream(
        &self,
        decision_id: &str,
        verb: &str,
    ) -> Result<Lines, StreamFailure> {
        let path = format!("{decision_id}:{verb}");
        let path = ["v1", "decisions", &path];
        let opened = timeout(self.patience.open, self.client.lines(&path, &())).await;
        opened
            .map_err(|_| StreamFailure::Lost("no answer in time".to_owned()))?
            .map_err(|error| StreamFailure::of(&error))
    }

    /// Reports the outcome of a permitted action. It is sent again until it arrives or time is over.
    ///
    /// # Errors
    /// The reason why the outcome is not reported.
    pub(crate) async fn report(
        &self,
        decision_id: &str,
        outcome: Outcome,
        detail: &str,
    ) -> Result<(), String> {
        let detail: String = detail.chars().take(500).collect();
        let body = json!({"outcome": outcome.word(), "detail": detail});
        let path = format!("{decision_id}:report");
        let path = ["v1", "decisions", &path];
        let (began, mut pause) = (Instant::now(), PAUSE);
        loop {
            let sent = timeout(self.patience.open, self.client.post(&path, &body)).await;
            let why = match sent {
                Ok(Ok(_)) => return Ok(()),
                // An earlier attempt arrived.
                Ok(Err(Error::Refused(refusal))) if refusal.status == 409 => return Ok(()),
                Ok(Err(error)) if judged(&error).is_some() => return Err(error.to_string()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".to_owned(),
            };
            if began.elapsed() >= self.patience.report {
                return Err(why);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }
}

/// Why a stream does not open.
#[derive(Debug)]
pub(crate) enum StreamFailure {
    /// The service refuses it: what the stream is about has ended.
    Refused(String),
    Lost(String),
}

impl StreamFailure {
    fn of(error: &Error) -> Self {
        match error {
            Error::Refused(refusal) if refusal.status == 409 || refusal.status == 404 => {
                Self::Refused(error.to_string())
            }
            _ => Self::Lost(error.to_string()),
        }
    }
}

fn is_over(since: Option<Moment>, limit: Duration) -> bool {
    since.is_none_or(|since| since.elapsed() >= limit)
}

fn unavailable(why: &str) -> AskFailure {
    AskFailure::Unavailable(why.to_owned())
}

/// The final failure of a request; `None` if it may be sent again.
fn judged(error: &Error) -> Option<AskFailure> {
    let Error::Refused(refusal) = error else {
        return match error {
            Error::Unreached { .. } | Error::Unexpected { .. } | Error::Http(_) => None,
            other => Some(unavailable(&other.to_string())),
        };
    };
    let code = refusal.error.error.as_str();
    match refusal.status.as_u16() {
        429 | 500 | 502 | 503 | 504 => None,
        409 if code == "idempotency_in_progress" => None,
        401 | 403 => Some(unavailable(&format!("the service refuses the credential ({code})"))),
        _ => Some(AskFailure::Refused(format!(
            "the service refuses the question ({code}): {}",
            refusal.error.message
        ))),
    }
}
