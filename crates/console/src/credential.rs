//! The credential of a session: whose it is, and its successor before it ends.
//!
//! A provider or a database that is away for a moment ends no session: only a token that the API refuses ends it, and
//! a provider that gives no other one (`invalid_grant`).

use std::time::Duration;

use authority_api::identity::{Caller, CallerKind, Error as IdentityError};
use axum::http::request::Parts;
use chrono::{DateTime, TimeDelta, Utc};
use http::{HeaderMap, HeaderValue, header};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    Console,
    session::{LONGEST_TURN, Stored, Tokens, Turn},
    sign_in::provider::{Error, TokenResponse},
};

/// A token that ends sooner is refreshed before it is used.
const SHORTEST: TimeDelta = TimeDelta::minutes(1);
/// How long a page waits for new tokens. The provider may take longer: the next page then has them.
const PATIENCE: Duration = Duration::from_secs(6);
/// How often it is looked whether another request has new tokens.
const LOOKED: Duration = Duration::from_millis(200);
/// How often refreshed tokens are stored again while the database does not take them.
const STORED_AGAIN: Duration = Duration::from_secs(1);

/// Whether the session holds cannot be known now.
pub(crate) struct Unavailable;

impl Console {
    /// The caller that the API would see with this token.
    pub(crate) async fn identify(
        &self,
        token: &str,
        parts: &Parts,
    ) -> Result<Caller, IdentityError> {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        headers.insert(header::AUTHORIZATION, value.map_err(|_| IdentityError::Unreadable)?);
        self.0.identity.identify(&headers, (self.0.client)(&parts.extensions)).await
    }

    /// Who the session's token says they are, with new tokens where it ends; `None` if the session is over.
    pub(crate) async fn holder(
        &self,
        session: &mut Stored,
        parts: &Parts,
        now: DateTime<Utc>,
    ) -> Result<Option<Caller>, Unavailable> {
        let lasts = |caller: &Caller| caller.until.is_none_or(|until| until - now > SHORTEST);
        let present = match self.identify(&session.tokens.api, parts).await {
            Ok(caller) if !is_person(&caller) => return Ok(None),
            Ok(caller) if lasts(&caller) => return Ok(Some(caller)),
            Ok(caller) => Some(caller),
            Err(IdentityError::Token(_)) => None,
            Err(IdentityError::Unavailable) => return Err(Unavailable),
            // Refused for who they are: a new token changes nothing.
            Err(_) => return Ok(None),
        };
        if session.tokens.refresh.is_none() {
            return Ok(present);
        }
        match self.refreshed(session, present.is_none()).await {
            Ok(Some(tokens)) => session.tokens = tokens,
            // What they have counts for another moment.
            _ if present.is_some() => return Ok(present),
            ended_or_unknown => return ended_or_unknown.map(|_| None),
        }
        match self.identify(&session.tokens.api, parts).await {
            // A refresh changes neither the person nor what they are at the service.
            Ok(caller) if is_person(&caller) && is_same(&caller, session) => Ok(Some(caller)),
            Err(IdentityError::Unavailable) => Err(Unavailable),
            _ => Ok(None),
        }
    }

    /// The tokens that follow the session's; `None` if there are none any more. They are asked for in a task of its own:
    /// a person who leaves the page must not take the answer with them.
    async fn refreshed(&self, session: &Stored, wait: bool) -> Result<Option<Tokens>, Unavailable> {
        let (console, session) = (self.clone(), session.clone());
        let asked = tokio::spawn(async move { console.successors(&session, wait).await });
        let asked = timeout(PATIENCE, asked).await;
        asked.ok().and_then(Result::ok).unwrap_or(Err(Unavailable))
    }

    /// One request of all nodes asks the provider; the others wait for what it gets, or do not `wait`.
    async fn successors(
        &self,
        session: &Stored,
        wait: bool,
    ) -> Result<Option<Tokens>, Unavailable> {
        let until = Instant::now() + PATIENCE;
        loop {
            let turn = self.0.sessions.take_turn(session).await.map_err(|error| {
                tracing::warn!(%error, "tokens of a console session cannot be refreshed");
                Unavailable
            })?;
            match turn {
                Turn::Own => return self.ask_for_successors(session.digest, &session.tokens).await,
                Turn::Done(tokens) => return Ok(Some(tokens)),
                Turn::Ended => return Ok(None),
                Turn::Others if wait && Instant::now() < until => sleep(LOOKED).await,
                Turn::Others => return Err(Unavailable),
            }
        }
    }

    async fn ask_for_successors(
        &self,
        digest: [u8; 32],
        tokens: &Tokens,
    ) -> Result<Option<Tokens>, Unavailable> {
        let refresh = tokens.refresh.as_deref().unwrap_or_default();
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
        let begun = Instant::now();
        let error = match self.0.provider.tokens(&grant).await {
            Ok(given) => {
                let tokens = followed(tokens, given);
                self.store_refreshed(digest, &tokens, begun + LONGEST_TURN).await;
                return Ok(Some(tokens));
            }
            Err(error) => error,
        };
        tracing::warn!(%error, "tokens of a console session are not refreshed");
        if let Err(error) = self.0.sessions.leave_turn(digest).await {
            tracing::warn!(%error, "the turn to refresh a console session ends late");
        }
        match error {
            Error::InvalidGrant(_) => Ok(None),
            Error::Away(_) | Error::Answer(_) | Error::Refused(_) => Err(Unavailable),
        }
    }

    /// The provider may have spent the ones before, so the database is asked until the turn ends.
    async fn store_refreshed(&self, digest: [u8; 32], tokens: &Tokens, until: Instant) {
        while let Err(error) = self.0.sessions.renew(digest, tokens).await {
            tracing::error!(%error, "refreshed tokens of a console session are not stored");
            if Instant::now() + STORED_AGAIN >= until {
                return;
            }
            sleep(STORED_AGAIN).await;
        }
    }
}

/// Whether a refreshed token is of the session's person, in the tenant and the role of its sign-in: a session's cookie
/// is new with each of them.
fn is_same(caller: &Caller, session: &Stored) -> bool {
    let role = session.tokens.role.as_ref();
    caller.identity() == session.person && role.is_none_or(|role| *role == role_of(caller))
}

/// What a person is at the service: their tenant and their role in it, or its owner.
pub(crate) fn role_of(caller: &Caller) -> String {
    match &caller.kind {
        CallerKind::Member { tenant_id, role, .. } => format!("{tenant_id} {role}"),
        CallerKind::Owner { .. } => "owner".to_owned(),
        CallerKind::Key { .. } | CallerKind::Anonymous => String::new(),
    }
}

/// Whether it is a person: nobody else signs in.
pub(crate) fn is_person(caller: &Caller) -> bool {
    matches!(caller.kind, CallerKind::Owner { .. } | CallerKind::Member { .. })
}

/// What the provider gives takes the place of what there is; what it does not give stays.
fn followed(tokens: &Tokens, given: TokenResponse) -> Tokens {
    let TokenResponse { access_token, id_token, refresh_token } = given;
    let api = if tokens.is_id_token {
        id_token.unwrap_or_else(|| tokens.api.clone())
    } else {
        access_token
    };
    let refresh = refresh_token.or_else(|| tokens.refresh.clone());
    Tokens { api, refresh, is_id_token: tokens.is_id_token, role: tokens.role.clone() }
}
