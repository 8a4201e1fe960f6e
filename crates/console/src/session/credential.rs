//! The credential of a session: the person who has it, and new tokens before it expires.
//!
//! A short outage of the provider or the database does not end a session. A session ends only if
//! the API refuses the token, if the provider refuses to issue another one (`invalid_grant`), or if
//! the settings now name another provider or other people.

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
/// The interval of checking whether another request has stored new tokens.
const LOOKED: Duration = Duration::from_millis(200);
/// The interval of attempts to store refreshed tokens while the database fails.
const STORED_AGAIN: Duration = Duration::from_secs(1);

/// It is unknown now whether the session is valid.
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

    /// Returns the person of the session's token, after a refresh if it ends soon. `None` if the
    /// session has ended.
    pub(crate) async fn holder(
        &self,
        session: &mut Stored,
        parts: &Parts,
        now: DateTime<Utc>,
    ) -> Result<Option<Caller>, Unavailable> {
        // A provider must not get the refresh token of another one.
        if self.provider(&session.tokens.issuer).is_none() {
            return Ok(None);
        }
        let lasts = |caller: &Caller| caller.until.is_none_or(|until| until - now > SHORTEST);
        let present = match self.identify(&session.tokens.api, parts).await {
            Ok(caller) if !is_person(&caller) || caller.identity() != session.person => {
                return Ok(None);
            }
            Ok(caller) if lasts(&caller) => return Ok(Some(caller)),
            Ok(caller) => Some(caller),
            Err(IdentityError::Token(_)) => None,
            Err(IdentityError::Unavailable) => return Err(Unavailable),
            // The person is refused. A new token would not change this.
            Err(_) => return Ok(None),
        };
        if session.tokens.refresh.is_none() {
            return Ok(present);
        }
        match self.refreshed(session, present.is_none()).await {
            Ok(Some(tokens)) => session.tokens = tokens,
            // The current token is still valid for a moment.
            _ if present.is_some() => return Ok(present),
            ended_or_unknown => return ended_or_unknown.map(|_| None),
        }
        match self.identify(&session.tokens.api, parts).await {
            // A refresh must not change the person or their role.
            Ok(caller) if is_person(&caller) && is_same(&caller, session) => Ok(Some(caller)),
            Err(IdentityError::Unavailable) => Err(Unavailable),
            _ => Ok(None),
        }
    }

    /// The new tokens of the session; `None` if it has ended. They are requested in a separate task:
    /// if the person leaves the page, the provider's answer must still be stored.
    async fn refreshed(&self, session: &Stored, wait: bool) -> Result<Option<Tokens>, Unavailable> {
        let (console, session) = (self.clone(), session.clone());
        let asked = tokio::spawn(async move { console.successors(&session, wait).await });
        let asked = timeout(PATIENCE, asked).await;
        asked.ok().and_then(Result::ok).unwrap_or(Err(Unavailable))
    }

    /// One request across all nodes calls the provider. The others wait for its result, unless
    /// `wait` is false.
    async fn successors(
        &self,
        session: &Stored,
        wait: bool,
    ) -> Result<Option<Tokens>, Unavailable> {
        let until = Instant::now() + PATIENCE;
        loop {
            let turn = self.0.sessions.take_turn(session).await.map_err(|error| {
                tracing::warn!(%error, "failed to lock a console session for its refresh");
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
        let Some(provider) = self.provider(&tokens.issuer) else { return Ok(None) };
        let refresh = tokens.refresh.as_deref().unwrap_or_default();
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
        let begun = Instant::now();
        let error = match provider.tokens(&grant).await {
            Ok(given) => {
                let tokens = followed(tokens, given);
                self.store_refreshed(digest, &tokens, begun + LONGEST_TURN).await;
                return Ok(Some(tokens));
            }
            Err(error) => error,
        };
        tracing::warn!(%error, "failed to refresh the tokens of a console session");
        if let Err(error) = self.0.sessions.leave_turn(digest).await {
            tracing::warn!(%error, "failed to unlock a console session after its refresh");
        }
        match error {
            Error::InvalidGrant(_) => Ok(None),
            Error::Away(_) | Error::Answer(_) | Error::Refused(_) => Err(Unavailable),
        }
    }

    /// Stores refreshed tokens. Retries until the turn ends, because the provider may already have
    /// invalidated the old tokens.
    async fn store_refreshed(&self, digest: [u8; 32], tokens: &Tokens, until: Instant) {
        while let Err(error) = self.0.sessions.renew(digest, tokens).await {
            tracing::warn!(%error, "failed to store the refreshed tokens of a console session");
            if Instant::now() + STORED_AGAIN >= until {
                return;
            }
            sleep(STORED_AGAIN).await;
        }
    }
}

/// Whether a refreshed token has the person, the tenant and the role of the session's sign-in. With another person,
/// tenant or role, a session needs a new cookie.
fn is_same(caller: &Caller, session: &Stored) -> bool {
    let role = session.tokens.role.as_ref();
    caller.identity() == session.person && role.is_none_or(|role| *role == role_of(caller))
}

/// A person's role at the service: their tenant and role, or owner.
pub(crate) fn role_of(caller: &Caller) -> String {
    match &caller.kind {
        CallerKind::Member { tenant_id, role, .. } => format!("{tenant_id} {role}"),
        CallerKind::Owner { .. } => "owner".to_owned(),
        CallerKind::Key { .. } | CallerKind::Anonymous => String::new(),
    }
}

/// Whether the caller is a person. Only people sign in.
pub(crate) fn is_person(caller: &Caller) -> bool {
    matches!(caller.kind, CallerKind::Owner { .. } | CallerKind::Member { .. })
}

/// Returns the tokens after a refresh. Tokens that the provider did not return stay.
fn followed(tokens: &Tokens, given: TokenResponse) -> Tokens {
    let TokenResponse { access_token, id_token, refresh_token } = given;
    let api = if tokens.is_id_token {
        id_token.unwrap_or_else(|| tokens.api.clone())
    } else {
        access_token
    };
    let refresh = refresh_token.or_else(|| tokens.refresh.clone());
    Tokens { api, refresh, ..tokens.clone() }
}
