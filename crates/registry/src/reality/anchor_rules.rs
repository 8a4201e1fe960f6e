//! The rules for an anchor's free-form objects and their references.

use authority_decision::{jurisdiction, levels::RuntimeEffect};
use authority_model::{proto::reality::RealityAnchor, schema::api_keys};

use super::{jwks, objects::check, refers};
use crate::flow::prelude::*;

/// One year, in seconds.
const LONGEST_STALENESS: i64 = 31_536_000;
const MOST_KEYS: usize = 4;
const MOST_FEEDERS: usize = 64;
const FEEDERS: &str = "must be a list of at most 64 ids of API keys";
const NAME: usize = 300;
const ADDRESS: usize = 2048;

/// Checks the nested objects.
pub(super) fn objects(anchor: &RealityAnchor, found: &mut Violations) {
    check("authority", anchor.authority.as_ref(), found, |object| {
        if object.text("owner_entity_id", NAME).is_none()
            && object.members.get("owner_entity_id").is_none_or(serde_json::Value::is_null)
        {
            object.found.add("owner_entity_id", "is required");
        }
        object.text("regulator_id", NAME);
        if let Some(fault) = object.text("jurisdiction", NAME).and_then(jurisdiction::fault) {
            object.found.add("jurisdiction", fault);
        }
    });
    check("freshness_contract", anchor.freshness_contract.as_ref(), found, |object| {
        let most = object.integer("max_staleness_seconds", 1, LONGEST_STALENESS);
        if object.members.get("max_staleness_seconds").is_none_or(serde_json::Value::is_null) {
            object.found.add("max_staleness_seconds", "is required");
        }
        object.integer("expected_refresh_seconds", 1, most.unwrap_or(LONGEST_STALENESS));
        let effects: Vec<_> = RuntimeEffect::ALL.iter().map(|effect| effect.word()).collect();
        object.word("stale_runtime_effect", &effects);
        object.word("missing_runtime_effect", &effects);
    });
    check("source", anchor.source.as_ref(), found, |object| {
        object.text("kind", NAME);
        object.text("uri", ADDRESS);
        object.text("system", NAME);
        for (index, id) in object.list("feeder_key_ids", MOST_FEEDERS, FEEDERS).iter().enumerate() {
            if !id.is_string() {
                object.found.add(&format!("feeder_key_ids[{index}]"), "must be an API key's id");
            }
        }
        let mut prints = Vec::new();
        for (index, jwk) in object.list("jwks", MOST_KEYS, jwks::EXAMPLE_LIST).iter().enumerate() {
            match jwks::checked(jwk) {
                Err(problem) => object.found.add(&format!("jwks[{index}]"), problem),
                Ok(print) if prints.contains(&print) => {
                    object.found.add(&format!("jwks[{index}]"), "is a duplicate");
                }
                Ok(print) => prints.push(print),
            }
        }
    });
}

/// Refuses references to unknown records and to records of other tenants.
pub(super) async fn references(
    db: &mut Db,
    anchor: &RealityAnchor,
    was: Option<&RealityAnchor>,
) -> Result<(), Error> {
    let mut known = Known::of(row_id(&anchor.tenant_id)?, RealityAnchor::KIND);
    if was.is_none() {
        let owner = anchor.authority.as_ref().and_then(|object| object.0.get("owner_entity_id"));
        let owner = owner.and_then(|id| id.as_str());
        refers::party(&mut known, db, "authority.owner_entity_id", owner).await?;
    }
    if was.is_none_or(|was| was.source != anchor.source) {
        let feeders = feeders(anchor);
        let present: Vec<String> = api_keys::table
            .filter(api_keys::tenant_id.eq(&anchor.tenant_id))
            .filter(api_keys::id.eq_any(&feeders))
            .for_key_share()
            .select(api_keys::id)
            .load(db)
            .await?;
        known.compare_each("source.feeder_key_ids", &feeders, &present);
    }
    known.all()
}

/// Returns the API keys that may feed the anchor's snapshots.
pub(super) fn feeders(anchor: &RealityAnchor) -> Vec<String> {
    let list = anchor.source.as_ref().and_then(|source| source.0.get("feeder_key_ids"));
    let list = list.and_then(|list| list.as_array()).into_iter().flatten();
    list.filter_map(|id| id.as_str()).map(str::to_owned).collect()
}
