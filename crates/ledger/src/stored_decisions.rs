//! Stored decisions, with their facts and policies.
//!
//! A decision's row refers to its gathered facts by SHA-256, and the facts refer to their policies'
//! texts. Both are looked up here, for one decision or for a page of decisions. authority-evidence
//! parses them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use authority_ids::{DecisionId, DecisionRef, TenantId};
use authority_model::schema::{decisions, fact_blobs, policy_versions};
use diesel::{QueryResult, prelude::*};

use authority_crypto::sha256;
use authority_evidence::{Salts, Sealed, sealed};
use authority_store::{Db, RunQueryDsl, row_id};

/// Policies' texts by the lower-case hex of their SHA-256.
type Texts = HashMap<String, String>;

/// A decision as stored.
pub struct Stored {
    pub id: DecisionRef,
    pub tenant_id: TenantId,
    pub kid: String,
    pub signature: Vec<u8>,
    pub sealed: Sealed,
}

/// The row of a decision.
#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(diesel::pg::Pg))]
pub struct DecisionRow {
    pub id: String,
    tenant_id: String,
    record: Vec<u8>,
    kid: String,
    signature: Vec<u8>,
    context: Vec<u8>,
    context_salt: Vec<u8>,
    facts: Vec<u8>,
    facts_salt: Vec<u8>,
}

/// Reads a decision. If a tenant is given, only its decisions are found.
pub async fn one(
    db: &mut Db,
    within: Option<&TenantId>,
    id: &DecisionId,
) -> QueryResult<Option<Stored>> {
    let mut query =
        decisions::table.find(id.as_str()).select(DecisionRow::as_select()).into_boxed();
    if let Some(tenant) = within {
        query = query.filter(decisions::tenant_id.eq(tenant.as_str()));
    }
    let row: Option<DecisionRow> = query.first(db).await.optional()?;
    Ok(complete(db, row.into_iter().collect()).await?.pop())
}

/// Adds facts and texts to the rows, in the same order. Shared facts and texts are read once.
pub async fn complete(db: &mut Db, rows: Vec<DecisionRow>) -> QueryResult<Vec<Stored>> {
    let blobs = blobs(db, &rows).await?;
    let mut texts = texts(db, &blobs).await?;
    texts.extend(schemas(db, &blobs).await?);
    let texts = Arc::new(texts);
    let with_facts = |row: DecisionRow| {
        let digests = sealed::digests(&row.facts).ok();
        let blob = |digest: [u8; 32]| blobs.get(&(row.tenant_id.clone(), digest.to_vec())).cloned();
        let gathered = digests.as_ref().and_then(|digests| blob(digests.gathered));
        let reality = digests.as_ref().and_then(|digests| blob(digests.reality?));
        // A salt of another length cannot match: the digests will differ from the record's digests.
        let salt = |salt: Vec<u8>| salt.try_into().unwrap_or_default();
        Ok(Stored {
            id: row.id.into(),
            tenant_id: row_id(&row.tenant_id)?,
            kid: row.kid,
            signature: row.signature,
            sealed: Sealed {
                record: row.record,
                context: row.context,
                facts: row.facts,
                salts: Salts { context: salt(row.context_salt), facts: salt(row.facts_salt) },
                gathered,
                reality,
                texts: Arc::clone(&texts),
            },
        })
    };
    rows.into_iter().map(with_facts).collect()
}

/// Facts by tenant and SHA-256.
type Blobs = HashMap<(String, Vec<u8>), Arc<Vec<u8>>>;

async fn blobs(db: &mut Db, rows: &[DecisionRow]) -> QueryResult<Blobs> {
    let tenants: HashSet<&str> = rows.iter().map(|row| row.tenant_id.as_str()).collect();
    let digests = rows.iter().filter_map(|row| sealed::digests(&row.facts).ok());
    let digests = digests.flat_map(|named| [Some(named.gathered), named.reality]);
    let digests: HashSet<Vec<u8>> = digests.flatten().map(|digest| digest.to_vec()).collect();
    if digests.is_empty() {
        return Ok(Blobs::new());
    }
    let found: Vec<(String, Vec<u8>, Vec<u8>)> = fact_blobs::table
        .filter(fact_blobs::tenant_id.eq_any(tenants))
        .filter(fact_blobs::sha256.eq_any(digests))
        .load(db)
        .await?;
    Ok(found.into_iter().map(|(tenant, sha, body)| ((tenant, sha), Arc::new(body))).collect())
}

/// Reads the texts of the input schemas in the facts.
async fn schemas(db: &mut Db, blobs: &Blobs) -> QueryResult<Texts> {
    let named = blobs.iter().flat_map(|((tenant, _), body)| {
        let digests = sealed::schemas(body).unwrap_or_default();
        digests.into_iter().map(move |sha256| (tenant.as_str(), sha256))
    });
    let (tenants, digests): (HashSet<&str>, HashSet<String>) = named.unzip();
    let digests: Vec<Vec<u8>> = digests.iter().filter_map(|one| hex::decode(one).ok()).collect();
    if digests.is_empty() {
        return Ok(Texts::new());
    }
    let found: Vec<(Vec<u8>, Vec<u8>)> = fact_blobs::table
        .filter(fact_blobs::tenant_id.eq_any(tenants))
        .filter(fact_blobs::sha256.eq_any(digests))
        .select((fact_blobs::sha256, fact_blobs::body))
        .load(db)
        .await?;
    let read =
        |(sha256, body)| Some((hex::encode::<Vec<u8>>(sha256), String::from_utf8(body).ok()?));
    Ok(found.into_iter().filter_map(read).collect())
}

/// Reads the texts of the policies in the facts, each under its own digest.
///
/// A text is found by its content, not by its version.
async fn texts(db: &mut Db, blobs: &Blobs) -> QueryResult<Texts> {
    let mut wanted: HashSet<(String, String, i32)> = HashSet::new();
    for ((tenant, _), body) in blobs {
        // Facts about reality are stored separately and do not refer to policies.
        for policy in sealed::policies(body).unwrap_or_default() {
            let version = i32::try_from(policy.version).unwrap_or_default();
            wanted.insert((tenant.clone(), policy.id.into(), version));
        }
    }
    if wanted.is_empty() {
        return Ok(Texts::new());
    }
    let tenants: HashSet<&str> = wanted.iter().map(|(tenant, ..)| tenant.as_str()).collect();
    let ids: HashSet<&str> = wanted.iter().map(|(_, id, _)| id.as_str()).collect();
    let numbers: HashSet<i32> = wanted.iter().map(|(.., version)| *version).collect();
    let found: Vec<(String, String, i32, String)> = policy_versions::table
        .filter(policy_versions::tenant_id.eq_any(tenants))
        .filter(policy_versions::policy_id.eq_any(ids))
        .filter(policy_versions::version.eq_any(numbers))
        .select((
            policy_versions::tenant_id,
            policy_versions::policy_id,
            policy_versions::version,
            policy_versions::cedar,
        ))
        .load(db)
        .await?;
    let mut texts = Texts::new();
    for (tenant, id, version, cedar) in found {
        if wanted.contains(&(tenant, id, version)) {
            texts.insert(hex::encode(sha256(cedar.as_bytes())), cedar);
        }
    }
    Ok(texts)
}
