//! Tokens of a person's sign-in that are not credentials of this API: ID tokens (OIDC Core 1.0) and
//! logout tokens (OIDC Back-Channel Logout 1.0). They are verified with the issuer's keys, like
//! access tokens.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{authenticate::Identity, error::Error, jwt::Timed, numeric_date::NumericDate};

/// The claims of a verified ID token. `iss` and `sub` identify the person as in [`Caller`].
///
/// [`Caller`]: super::Caller
#[derive(Clone, Debug, Deserialize)]
pub struct IdClaims {
    pub iss: String,
    pub sub: String,
    pub nonce: Option<String>,
    auth_time: Option<NumericDate>,
    /// The session at the provider.
    pub sid: Option<String>,
    aud: Audience,
    azp: Option<String>,
    exp: NumericDate,
    iat: NumericDate,
}

impl IdClaims {
    /// When the person authenticated at the provider, in seconds since 1970.
    pub fn authenticated_at(&self) -> Option<i64> {
        self.auth_time.map(NumericDate::floor)
    }
}

/// The audience of a token: one client, or several (RFC 7519, section 4.1.3).
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

/// The claims of a verified logout token: a session, or all sessions of a person. `iss` and `sub`
/// identify the person as in [`Caller`](super::Caller).
#[derive(Clone, Debug, Deserialize)]
pub struct LogoutClaims {
    pub iss: String,
    pub sub: Option<String>,
    pub sid: Option<String>,
    iat: NumericDate,
    events: HashMap<String, Map<String, Value>>,
    nonce: Option<Value>,
    exp: NumericDate,
}

impl Timed for IdClaims {
    fn issued(&self) -> i64 {
        self.iat.floor()
    }

    fn expires(&self) -> i64 {
        self.exp.floor()
    }
}

impl Timed for LogoutClaims {
    fn issued(&self) -> i64 {
        self.iat.floor()
    }

    fn expires(&self) -> i64 {
        self.exp.floor()
    }
}

/// The error for an ID token without the `nonce` of the sign-in: the browser may have sent the code
/// of another sign-in.
pub const OTHER_SIGN_IN: Error = Error::Token("it belongs to another sign-in");

impl LogoutClaims {
    /// When the token was issued, in seconds since 1970.
    pub fn issued_at(&self) -> i64 {
        self.iat.floor()
    }
}

/// The member of `events` that makes a token a logout token.
const LOGOUT: &str = "http://schemas.openid.net/event/backchannel-logout";

impl Identity {
    /// Returns the claims of an ID token that this issuer issued to `client_id` for the sign-in with
    /// this `nonce`.
    ///
    /// # Errors
    /// The token is not such a token, or the issuer's keys cannot be fetched now.
    pub async fn id_token(
        &self,
        token: &str,
        issuer: &str,
        client_id: &str,
        nonce: &str,
    ) -> Result<IdClaims, Error> {
        let issued = (issuer, client_id);
        let mut claims: IdClaims = self.verifier().verify_for(token, issued, &["JWT"]).await?;
        // For a token with several clients, only `azp` identifies the requesting client (section
        // 3.1.3.7).
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
        (claims.iss, claims.sub) = self.verifier().person(&claims.iss, &claims.sub);
        Ok(claims)
    }

    /// Returns the claims of a logout token of this issuer for `client_id`.
    ///
    /// # Errors
    /// The token is not such a token, or the issuer's keys cannot be fetched now.
    pub async fn logout_token(
        &self,
        token: &str,
        issuer: &str,
        client_id: &str,
    ) -> Result<LogoutClaims, Error> {
        let types = ["JWT", "logout+jwt", "application/logout+jwt"];
        let issued = (issuer, client_id);
        let mut claims: LogoutClaims = self.verifier().verify_for(token, issued, &types).await?;
        if !claims.events.contains_key(LOGOUT) {
            return Err(Error::Token("its `events` lack the logout event"));
        }
        // An ID token must not pass for a logout token.
        if claims.nonce.is_some() {
            return Err(Error::Token("a logout token has no `nonce`"));
        }
        if claims.sub.is_none() && claims.sid.is_none() {
            return Err(Error::Token("it names neither `sub` nor `sid`"));
        }
        let (person_issuer, subject) =
            self.verifier().person(&claims.iss, claims.sub.as_deref().unwrap_or_default());
        claims.iss = person_issuer;
        claims.sub = claims.sub.map(|_| subject);
        Ok(claims)
    }
}
