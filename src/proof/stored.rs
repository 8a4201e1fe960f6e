//! Everything that is stored of a decision, read back from where it lies.

use std::collections::HashMap;

use authority_model::schema::{decisions, fact_blobs, policy_versions};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde::Deserialize;

use super::Error;
use crate::{
    evidence::{Salts, digest_text, sealed::Sealed},
    keys,
    store::Db,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(diesel::pg::Pg))]
struct Row {
    tenant_id: String,
    record: Vec<u8>,
    kid: String,
    signature: Vec<u8>,
    context: Vec<u8>,
    context_salt: Vec<u8>,
    facts: Vec<u8>,
    facts_salt: Vec<u8>,
}

/// A decision as it is stored.
pub(super) struct Stored {
    pub(super) tenant_id: String,
    pub(super) kid: String,
    pub(super) signature: Vec<u8>,
    pub(super) sealed: Sealed,
}

#[derive(Deserialize)]
struct Names {
    gathered: String,
}

#[derive(Deserialize)]
struct Policies {
    policies: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    sha256: String,
}

/// # Errors
/// When there is no such decision in the tenant, or what belongs to it is not there.
pub(super) async fn decision(db: &mut Db, within: Option<&str>, id: &str) -> Result<Stored, Error> {
    let mut query = decisions::table.find(id).select(Row::as_select()).into_boxed();
    if let Some(tenant) = within {
        query = query.filter(decisions::tenant_id.eq(tenant));
    }
    let row: Option<Row> = query.first(db).await.optional()?;
    let row = row.ok_or_else(|| Error::NotFound("decision", id.to_owned()))?;
    let gathered = gathered(db, &row).await?;
    let texts = texts(db, &row.tenant_id, &gathered).await?;
    let salt = |salt: Vec<u8>| {
        salt.try_into().map_err(|_| Error::Unreadable("a salt has no 16 bytes".to_owned()))
    };
    let salts = Salts { context: salt(row.context_salt)?, facts: salt(row.facts_salt)? };
    Ok(Stored {
        tenant_id: row.tenant_id,
        kid: row.kid,
        signature: row.signature,
        sealed: Sealed {
            record: row.record,
            context: row.context,
            facts: row.facts,
            salts,
            gathered,
            texts,
        },
    })
}

async fn gathered(db: &mut Db, row: &Row) -> Result<Vec<u8>, Error> {
    let names: Names = serde_json::from_slice(&row.facts)?;
    let sha256 = names.gathered.strip_prefix("sha256:").and_then(|text| hex::decode(text).ok());
    let sha256 = sha256.ok_or_else(|| Error::Unreadable(names.gathered.clone()))?;
    let body: Option<Vec<u8>> = fact_blobs::table
        .find((&row.tenant_id, sha256))
        .select(fact_blobs::body)
        .first(db)
        .await
        .optional()?;
    let body = body.ok_or_else(|| Error::Unreadable(format!("{} is gone", names.gathered)))?;
    if digest_text(&keys::sha256(&body)) != names.gathered {
        return Err(Error::Unreadable(format!("{} is not what is stored", names.gathered)));
    }
    Ok(body)
}

/// The texts of the policies that the facts name: whichever version has that digest.
async fn texts(
    db: &mut Db,
    tenant_id: &str,
    gathered: &[u8],
) -> Result<HashMap<String, String>, Error> {
    let Policies { policies } = serde_json::from_slice(gathered)?;
    if policies.is_empty() {
        return Ok(HashMap::new());
    }
    let ids = policies.iter().map(|policy| policy.id.as_str());
    let versions: Vec<String> = policy_versions::table
        .filter(policy_versions::tenant_id.eq(tenant_id))
        .filter(policy_versions::policy_id.eq_any(ids))
        .select(policy_versions::cedar)
        .load(db)
        .await?;
    let wanted = |sha256: &String| policies.iter().any(|policy| policy.sha256 == *sha256);
    let named = versions.into_iter().map(|text| (hex::encode(keys::sha256(text.as_bytes())), text));
    Ok(named.filter(|(sha256, _)| wanted(sha256)).collect())
}
