//! Tokens of a person's sign-in that are not credentials of this API: ID tokens (OIDC Core 1.0) and
//! logout tokens (OIDC Back-Channel Logout 1.0). Verified with the issuer's keys, like access tokens.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Error, Identity, jwt::Timed};

/// The claims of a verified ID token.
#[derive(Clone, Debug, Deserialize)]
pub struct IdClaims {
    pub iss: String,
    pub sub: String,
    pub nonce: Option<String>,
    /// When the person proved who they are, in seconds since 1970.
    pub auth_time: Option<i64>,
    /// The session at the provider.
    pub sid: Option<String>,
    aud: Audience,
    azp: Option<String>,
    exp: i64,
    iat: i64,
}

/// Whom a token is for: one client, or several (RFC 7519, section 4.1.3).
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(#[expect(dead_code, reason = "the verifier has compared it")] String),
    Several(Vec<String>),
}

impl Audience {
    fn is_one(&self) -> bool {
        match self {
            Self::One(_) => true,
            Self::Several(clients) => clients.len() == 1,
        }
    }
}

/// The claims of a verified logout token: a session, or everything of a person.
#[derive(Clone, Debug, Deserialize)]
pub struct LogoutClaims {
    pub iss: String,
    pub sub: Option<String>,
    pub sid: Option<String>,
    /// When it was issued, in seconds since 1970.
    pub iat: i64,
    events: HashMap<String, Map<String, Value>>,
    nonce: Option<Value>,
    exp: i64,
}

impl Timed for IdClaims {
    fn issued(&self) -> i64 {
        self.iat
    }

    fn expires(&self) -> i64 {
        self.exp
    }
}

impl Timed for LogoutClaims {
    fn issued(&self) -> i64 {
        self.iat
    }

    fn expires(&self) -> i64 {
        self.exp
    }
}

/// An ID token has another `nonce` than the sign-in, or none: the browser may have brought another sign-in's code.
pub const OTHER_SIGN_IN: Error = Error::Token("it belongs to another sign-in");

/// What makes a token a logout token, as a member of its `events`.
const LOGOUT: &str = "http://schemas.openid.net/event/backchannel-logout";

impl Identity {
    /// The claims of an ID token that was issued to `client_id` for the sign-in with this `nonce`.
    ///
    /// # Errors
    /// It is not such a token, or keys cannot be fetched now.
    pub async fn id_token(
        &self,
        token: &str,
        client_id: &str,
        nonce: &str,
    ) -> Result<IdClaims, Error> {
        let claims: IdClaims = self.verifier().verify_for(token, client_id, &["JWT"]).await?;
        // Of a token for several clients only `azp` says which one asked for it (section 3.1.3.7).
        let is_ours = match claims.azp.as_deref() {
            Some(azp) => azp == client_id,
            None => claims.aud.is_one(),
        };
        if !is_ours {
            return Err(Error::Token("it was issued to another client, or its `azp` is missing"));
        }
        if claims.nonce.as_deref() != Some(nonce) {
            return Err(OTHER_SIGN_IN);
        }
        Ok(claims)
    }

    /// The claims of a logout token for `client_id`.
    ///
    /// # Errors
    /// It is not such a token, or keys cannot be fetched now.
    pub async fn logout_token(&self, token: &str, client_id: &str) -> Result<LogoutClaims, Error> {
        let types = ["JWT", "logout+jwt", "application/logout+jwt"];
        let claims: LogoutClaims = self.verifier().verify_for(token, client_id, &types).await?;
        if !claims.events.contains_key(LOGOUT) {
            return Err(Error::Token("its `events` lack the logout event"));
        }
        // An ID token must not pass for one.
        if claims.nonce.is_some() {
            return Err(Error::Token("a logout token has no `nonce`"));
        }
        if claims.sub.is_none() && claims.sid.is_none() {
            return Err(Error::Token("it names neither `sub` nor `sid`"));
        }
        Ok(claims)
    }
}
