//! Sessions in the database: by the digest of their cookie, with their tokens sealed.

use std::collections::HashMap;

use authority_ids::TenantId;
use authority_keys::{self as keys, Keys};
use authority_model::schema::console_sessions::{self, dsl};
use authority_store::{self as store, RunQueryDsl, Scope, Store, row_id};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    prelude::*,
    sql_types::{Nullable, Text, Timestamptz},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::row;

/// A session ends if it is not used for this time.
pub(crate) const IDLE: TimeDelta = TimeDelta::minutes(30);
/// Every session ends after this time.
pub(crate) const LONGEST: TimeDelta = TimeDelta::hours(8);
/// The interval of noting the use of a session.
const NOTED: TimeDelta = TimeDelta::minutes(1);

/// The tokens of a session.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Tokens {
    /// The credential at the API.
    pub(crate) api: String,
    pub(crate) refresh: Option<String>,
    /// Whether `api` is the provider's ID token. Its successor is then also an ID token.
    #[serde(default)]
    pub(crate) is_id_token: bool,
    /// Tenant and role at the sign-in (`credential::role_of`). `None` in sessions of older releases.
    #[serde(default)]
    pub(crate) role: Option<String>,
    /// The issuer of the sign-in, which gets `refresh`. Empty in sessions of older releases.
    #[serde(default)]
    pub(crate) issuer: String,
}

/// A session as stored.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) digest: [u8; 32],
    pub(crate) person: String,
    pub(crate) tokens: Tokens,
    /// The digest of each opened request for approval, by the approval's id.
    pub(crate) opened: HashMap<String, String>,
    pub(crate) shown_tenant_id: Option<TenantId>,
    /// When the person signed in, from the provider's ID token.
    pub(crate) authenticated_at: DateTime<Utc>,
    pub(crate) last_used_at: DateTime<Utc>,
    pub(crate) expires_at: DateTime<Utc>,
}

/// A session that begins.
pub(crate) struct NewSession {
    pub(crate) person: String,
    pub(crate) email: Option<String>,
    pub(crate) sid: Option<String>,
    pub(crate) tenant_id: Option<String>,
    pub(crate) tokens: Tokens,
    pub(crate) authenticated_at: DateTime<Utc>,
}

/// Why a session cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error("a session's tokens cannot be read")]
    Tokens(#[from] serde_json::Error),
}

/// The sessions of all nodes.
#[derive(Clone)]
pub(crate) struct Sessions {
    pub(crate) store: Store,
    pub(crate) keys: Keys,
}

/// The sessions that a provider ends.
pub(crate) enum EndedSessions<'a> {
    /// The console sessions of one session at this issuer. If a person is given, also this person's
    /// sessions without a `sid` that began before this time, because these may be part of it.
    Sid { issuer: &'a str, sid: &'a str, person: Option<&'a str>, before: DateTime<Utc> },
    /// The sessions of a person that began before this time.
    Person { person: &'a str, before: DateTime<Utc> },
}

type SessionRow =
    (String, Vec<u8>, Value, Option<String>, DateTime<Utc>, DateTime<Utc>, DateTime<Utc>);

impl Sessions {
    /// Stores a session under the digest of its cookie. It replaces the browser's earlier session.
    pub(crate) async fn begin(
        &self,
        digest: [u8; 32],
        before: Option<[u8; 32]>,
        session: NewSession,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let sealed = self.seal(&digest, &session.tokens)?;
        let written = self.store.write_tx(&Scope::service(), async move |db| {
            if let Some(before) = before {
                diesel::delete(dsl::console_sessions.find(before.to_vec())).execute(db).await?;
            }
            diesel::insert_into(dsl::console_sessions)
                .values((
                    dsl::digest.eq(digest.to_vec()),
                    dsl::person.eq(session.person),
                    dsl::email.eq(session.email),
                    dsl::sid.eq(session.sid),
                    dsl::tenant_id.eq(session.tenant_id),
                    dsl::sealed_tokens.eq(sealed),
                    dsl::authenticated_at.eq(session.authenticated_at),
                    dsl::created_at.eq(now),
                    dsl::last_used_at.eq(now),
                    dsl::expires_at.eq(now + LONGEST),
                ))
                .execute(db)
                .await?;
            Ok::<_, store::Error>(())
        });
        Ok(written.await?)
    }

    /// The session of a cookie, if it has not ended.
    pub(crate) async fn find(
        &self,
        digest: [u8; 32],
        now: DateTime<Utc>,
    ) -> Result<Option<Stored>, Error> {
        let read = self.store.read_tx(&Scope::service(), async move |db| {
            let row: Option<SessionRow> = console_sessions::table
                .find(digest.to_vec())
                .filter(dsl::expires_at.gt(now).and(dsl::last_used_at.gt(now - IDLE)))
                .select((
                    dsl::person,
                    dsl::sealed_tokens,
                    dsl::opened,
                    dsl::shown_tenant_id,
                    dsl::authenticated_at,
                    dsl::last_used_at,
                    dsl::expires_at,
                ))
                .first(db)
                .await
                .optional()?;
            Ok::<_, store::Error>(row)
        });
        let Some(row) = read.await? else { return Ok(None) };
        let (person, sealed, opened, shown, authenticated_at, last_used_at, expires_at) = row;
        let tokens = serde_json::from_slice(&self.keys.open_console_session(&digest, &sealed)?)?;
        let opened = row::opened(opened);
        Ok(Some(Stored {
            digest,
            person,
            tokens,
            opened,
            shown_tenant_id: shown
                .as_deref()
                .map(row_id)
                .transpose()
                .map_err(store::Error::from)?,
            authenticated_at,
            last_used_at,
            expires_at,
        }))
    }

    /// Notes that the session was used, unless that was noted just before.
    pub(crate) async fn note(&self, session: &mut Stored, now: DateTime<Utc>) -> Result<(), Error> {
        if now - session.last_used_at < NOTED {
            return Ok(());
        }
        session.last_used_at = now;
        let digest = session.digest.to_vec();
        let written = self.store.write_tx(&Scope::service(), async move |db| {
            let row = dsl::console_sessions.find(digest);
            diesel::update(row).set(dsl::last_used_at.eq(now)).execute(db).await?;
            Ok::<_, store::Error>(())
        });
        Ok(written.await?)
    }

    /// Moves a session to a new cookie, and to the tenant that an owner selects. Returns false and
    /// changes no session while its tokens are refreshed, since the new tokens would be lost.
    pub(crate) async fn show_tenant(
        &self,
        from: [u8; 32],
        to: [u8; 32],
        tenant_id: Option<TenantId>,
    ) -> Result<bool, Error> {
        let sessions = self.clone();
        let written = self.store.write_tx(&Scope::service(), async move |db| {
            let found = row::locked(db, &from).await?;
            let Some(found) = found.filter(|found| !found.is_refreshing) else { return Ok(false) };
            // The request's tokens may be outdated by now.
            let tokens = sessions.keys.open_console_session(&from, &found.sealed_tokens)?;
            let sealed = sessions.keys.seal_console_session(&to, &tokens)?;
            diesel::update(dsl::console_sessions.find(from.to_vec()))
                .set((
                    dsl::digest.eq(to.to_vec()),
                    dsl::sealed_tokens.eq(sealed),
                    dsl::shown_tenant_id.eq(tenant_id.as_ref().map(TenantId::as_str)),
                ))
                .execute(db)
                .await
                .map_err(store::Error::from)?;
            Ok::<_, Error>(true)
        });
        written.await
    }

    pub(crate) async fn end(&self, digest: [u8; 32]) -> Result<(), Error> {
        let written = self.store.write_tx(&Scope::service(), async move |db| {
            diesel::delete(dsl::console_sessions.find(digest.to_vec())).execute(db).await?;
            Ok::<_, store::Error>(())
        });
        Ok(written.await?)
    }

    /// Ends the sessions that the provider names; returns their number.
    pub(crate) async fn end_all(&self, ended: EndedSessions<'_>) -> Result<usize, Error> {
        // A `sid` is unique at its issuer only.
        let (sid, person, before) = match ended {
            EndedSessions::Sid { issuer, sid, person, before } => {
                (Some((sid, issuer)), person, before)
            }
            EndedSessions::Person { person, before } => (None, Some(person), before),
        };
        let (sid, issuer) = sid.map(|(sid, issuer)| (sid.to_owned(), issuer.to_owned())).unzip();
        let person = person.map(ToOwned::to_owned);
        let written = self.store.write_tx(&Scope::service(), async move |db| {
            let query = diesel::sql_query(
                "DELETE FROM console_sessions
                 WHERE sid = $1 AND starts_with(person, $2 || '|')
                    OR person = $3 AND created_at < $4 AND ($1 IS NULL OR sid IS NULL)",
            );
            let query = query
                .bind::<Nullable<Text>, _>(sid)
                .bind::<Nullable<Text>, _>(issuer)
                .bind::<Nullable<Text>, _>(person)
                .bind::<Timestamptz, _>(before);
            Ok::<_, store::Error>(query.execute(db).await?)
        });
        Ok(written.await?)
    }

    /// Deletes ended sessions.
    pub(crate) async fn sweep(&self, now: DateTime<Utc>) -> Result<(), Error> {
        let written = self.store.write_tx(&Scope::service(), async move |db| {
            let over = dsl::expires_at.le(now).or(dsl::last_used_at.le(now - IDLE));
            diesel::delete(dsl::console_sessions.filter(over)).execute(db).await?;
            Ok::<_, store::Error>(())
        });
        Ok(written.await?)
    }

    pub(super) fn seal(&self, digest: &[u8; 32], tokens: &Tokens) -> Result<Vec<u8>, Error> {
        Ok(self.keys.seal_console_session(digest, &serde_json::to_vec(tokens)?)?)
    }
}
