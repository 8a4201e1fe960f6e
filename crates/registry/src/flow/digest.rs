//! The digest of a record: SHA-256 of its JSON in RFC 8785 form.

use serde::Serialize;
use serde_json::{Map, Value};

use super::error::Error;
use authority_crypto::sha256;
use authority_store as store;

/// Returns the digest of the record's stored form, without the fields in `without`.
pub(crate) fn digest(record: &impl Serialize, without: &[&str]) -> Result<[u8; 32], Error> {
    let broken = |error: serde_json::Error| Error::Store(store::Error::Internal(error.to_string()));
    let members = serde_json::to_value(record).and_then(serde_json::from_value);
    let mut members: Map<String, Value> = members.map_err(broken)?;
    members.retain(|member, _| !without.contains(&member.as_str()));
    Ok(sha256(&serde_json_canonicalizer::to_vec(&members).map_err(broken)?))
}

#[cfg(test)]
mod tests {
    use authority_model::proto::{delegation::Delegation, states::StateEvent};
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::delegations::moves::UNSIGNED;

    /// Returns the digests of a full and of an empty record, in hex.
    fn digests<M: Serialize + DeserializeOwned>(name: &str, without: &[&str]) -> [String; 2] {
        let rows = include_str!("../../../model/tests/stored.json");
        let rows: Value = serde_json::from_str(rows).unwrap();
        [0, 1].map(|row| {
            let record: M = serde_json::from_value(rows[name][row].clone()).unwrap();
            hex::encode(digest(&record, without).unwrap())
        })
    }

    #[test]
    fn digests_stay_what_they_were() {
        assert_eq!(
            digests::<Delegation>("authority.delegation.v1.Delegation", &UNSIGNED),
            [
                "4404c61d3255e92dd244a86095f21e8da2086f493a9287ecf0ac0a58cad8086f",
                "4a574be354a580729825cd609d51511d472d0d5080b8195598d3efbb7716092c",
            ]
        );
        assert_eq!(
            digests::<StateEvent>("authority.states.v1.StateEvent", &["digest"]),
            [
                "0a44b3ecbb9c4bfe16be072b62043c07605836912d0610b2737bf9bf9dbe7318",
                "e10c4eb82b65fdea43bebfe8de417dfcc2b7b6d672a80f4d6f5eed3f8f8dfee2",
            ]
        );
    }
}
