//! Page tokens: the place where a page of a list ended, with an authentication code.
//!
//! The format is `base64url(code, place)`. The code is specific to this installation and covers the
//! place and the list: the operation, the tenant, the caller and the filters. A client can neither
//! forge a token nor use it with another list. All nodes compute the same codes.

use authority_ids::TenantId;
use authority_model::record::{Listing, RpcRequest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use authority_crypto::equal;
use authority_keys::Keys;

use super::{error::ApiError, identity::Caller};

/// The length of the truncated authentication code, in bytes.
const CODE: usize = 16;

/// The page tokens of one list for one caller.
pub struct PageTokens {
    keys: Keys,
    /// Distinguishes the list from every other list.
    list: Vec<u8>,
}

impl PageTokens {
    /// Returns the tokens of the list that the caller requests.
    ///
    /// Rotating an API key or signing in again does not change the caller.
    pub fn of<Q: RpcRequest + Listing>(keys: &Keys, caller: &Caller, request: &Q) -> Self {
        Self::of_method(keys, caller, Q::METHOD, request)
    }

    /// Returns the tokens of an export of the list that `request` describes. They do not continue
    /// the list, and the list's tokens do not continue the export.
    pub fn of_export<E: RpcRequest>(keys: &Keys, caller: &Caller, request: &impl Listing) -> Self {
        Self::of_method(keys, caller, E::METHOD, request)
    }

    fn of_method(keys: &Keys, caller: &Caller, method: &str, request: &impl Listing) -> Self {
        let tenant = caller.tenant().map_or("", TenantId::as_str);
        let mut list = Vec::new();
        for part in [method.as_bytes(), tenant.as_bytes(), caller.identity().as_bytes()] {
            add(&mut list, part);
        }
        add(&mut list, &request.filters());
        Self { keys: keys.clone(), list }
    }

    /// Returns the token for a place in the list.
    pub fn write(&self, place: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode([&self.code(place), place].concat())
    }

    /// Returns the place in a token; `None` for the first page, which has no token.
    ///
    /// # Errors
    /// The token was not returned by this list.
    pub fn read(&self, token: &str) -> Result<Option<Vec<u8>>, ApiError> {
        if token.is_empty() {
            return Ok(None);
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
        let parts = bytes.split_at_checked(CODE);
        let genuine = parts.filter(|(given, place)| equal(given, &self.code(place)));
        let problem = "was not returned by this list for these filters and this caller; leave it \
                       out to start again";
        let refused = || ApiError::field("page_token", problem);
        genuine.map(|(_, place)| Some(place.to_vec())).ok_or_else(refused)
    }

    fn code(&self, place: &[u8]) -> [u8; CODE] {
        let full = self.keys.mac("page-token", &[&self.list[..], place].concat());
        let mut code = [0; CODE];
        code.copy_from_slice(&full[..CODE]);
        code
    }
}

/// Appends a part after its length. Different parts therefore never give the same bytes.
fn add(list: &mut Vec<u8>, part: &[u8]) {
    list.extend(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
    list.extend(part);
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority_ids::ApiKeyId;
    use authority_model::{
        proto::{
            registry::{ExportToolsRequest, ListTeamsRequest, ListToolsRequest},
            runtime::ListDecisionsRequest,
        },
        wire::Time,
    };
    use authority_process::clock::Clock;

    use crate::identity::{CallerKind, Role, SecretCode};

    fn keys() -> Keys {
        Keys::ephemeral(Clock::default()).unwrap()
    }

    fn member(tenant: &str, issuer: &str, subject: &str) -> Caller {
        let kind = CallerKind::Member {
            tenant_id: TenantId::parse(tenant).unwrap(),
            role: Role::Admin,
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            email: None,
        };
        Caller { kind, ..Caller::anonymous() }
    }

    fn of<Q: RpcRequest + Listing>(keys: &Keys, request: &Q) -> PageTokens {
        PageTokens::of(keys, &member("svc:tenant:a", "idp", "ann"), request)
    }

    #[test]
    fn a_token_reads_back_only_as_it_was_given() {
        let keys = keys();
        let tokens = of(&keys, &ListToolsRequest::default());
        let given = tokens.write(b"a place");
        assert_eq!(tokens.read(&given).unwrap().as_deref(), Some(&b"a place"[..]));
        assert_eq!(tokens.read("").unwrap(), None);
        for broken in ["!", "AAAA", &given[1..]] {
            assert!(tokens.read(broken).is_err(), "{broken}");
        }
        let bytes = URL_SAFE_NO_PAD.decode(&given).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut forged = bytes.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(tokens.read(&URL_SAFE_NO_PAD.encode(forged)).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_token_is_of_one_list_and_its_filters() {
        let keys = keys();
        let page = |request: ListToolsRequest| of(&keys, &request).write(b"a place");
        let given = page(ListToolsRequest::default());
        let tenant_id = Some("svc:tenant:a".to_owned());
        let filtered = || ListToolsRequest { tenant_id: tenant_id.clone(), ..<_>::default() };
        assert_ne!(page(filtered()), given);
        assert_ne!(of(&keys, &ListTeamsRequest::default()).write(b"a place"), given);
        let ann = member("svc:tenant:a", "idp", "ann");
        let list = ListToolsRequest::default();
        let export = PageTokens::of_export::<ExportToolsRequest>(&keys, &ann, &list);
        assert!(export.read(&given).is_err());
        assert!(of(&keys, &list).read(&export.write(b"a place")).is_err());
        // These fields may differ from page to page.
        let next = ListToolsRequest {
            limit: Some(7),
            page_token: given.clone(),
            count: true,
            ..<_>::default()
        };
        assert_eq!(page(next), given);
        // The same value in another filter gives another token.
        let by = |subject: Option<&str>, action: Option<&str>| {
            let (subject, action) = (subject.map(str::to_owned), action.map(str::to_owned));
            let request = ListDecisionsRequest { subject, action, ..<_>::default() };
            of(&keys, &request).write(b"a place")
        };
        assert_ne!(by(Some("x"), None), by(None, Some("x")));
    }

    #[test]
    fn a_span_of_time_may_move_with_the_clock() {
        let keys = keys();
        let since = |micros: Option<i64>| {
            let since = micros.map(Time::from_micros);
            of(&keys, &ListDecisionsRequest { since, ..<_>::default() }).write(b"a place")
        };
        assert_eq!(since(Some(1)), since(Some(2_000_000)));
        assert_ne!(since(Some(1)), since(None));
    }

    #[test]
    fn a_token_is_of_one_caller_in_one_tenant() {
        let keys = keys();
        let page = |caller: &Caller| {
            PageTokens::of(&keys, caller, &ListToolsRequest::default()).write(b"a place")
        };
        let given = page(&member("svc:tenant:a", "idp", "ann"));
        for (tenant, issuer, subject) in [
            ("svc:tenant:b", "idp", "ann"),
            ("svc:tenant:a", "other", "ann"),
            ("svc:tenant:a", "idp", "bob"),
        ] {
            assert_ne!(
                page(&member(tenant, issuer, subject)),
                given,
                "{tenant} {issuer} {subject}"
            );
        }
        let key = |id: u128, secret: u8| {
            let kind = CallerKind::Key {
                tenant_id: TenantId::parse("svc:tenant:a").unwrap(),
                key_id: ApiKeyId::parse(&format!("svc:api_key:{id:032x}")).unwrap(),
                scopes: [].into(),
                principal_ids: [].into(),
                secret: SecretCode([secret; 32]),
                peer: None,
            };
            page(&Caller { kind, ..Caller::anonymous() })
        };
        assert_eq!(key(1, 1), key(1, 2), "a rotated key is the same caller");
        assert_ne!(key(1, 1), key(2, 1));
        // Another installation has another key.
        let elsewhere = Keys::ephemeral(Clock::default()).unwrap();
        let caller = member("svc:tenant:a", "idp", "ann");
        let other = PageTokens::of(&elsewhere, &caller, &ListToolsRequest::default());
        assert!(other.read(&given).is_err());
    }
}
