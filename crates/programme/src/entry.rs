//! Consultants as shown to tenants and to the public.

use authority_ids::{ConsultantRef, TenantId};
use authority_model::{
    proto::programme::{DirectoryConsultant, HeldCertification, TenantConsultant},
    wire::Time,
};
use authority_store::{Db, RunQueryDsl};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text, Timestamptz},
};

/// SQL condition: the consultant `c` has a valid certification at the time `$1` and is not deleted,
/// suspended or retired.
macro_rules! certified {
    () => {
        "c.deleted_at IS NULL AND c.status NOT IN ('suspended', 'retired') AND EXISTS ( \
            SELECT FROM certifications AS t WHERE t.consultant_id = c.id \
              AND certification_holds(t.revoked_at, t.deleted_at, t.not_before, t.not_after, $1))"
    };
}

/// The columns of a consultant that are public.
macro_rules! shown {
    () => {
        "c.id, c.display_name, c.certification_level, c.sectors, c.languages, c.country, c.bio, \
         c.website"
    };
}

#[derive(QueryableByName)]
struct Entry {
    #[diesel(sql_type = Text, deserialize_as = String)]
    id: ConsultantRef,
    #[diesel(sql_type = Text)]
    display_name: String,
    #[diesel(sql_type = Nullable<Text>)]
    certification_level: Option<String>,
    #[diesel(sql_type = Array<Text>)]
    sectors: Vec<String>,
    #[diesel(sql_type = Array<Text>)]
    languages: Vec<String>,
    #[diesel(sql_type = Nullable<Text>)]
    country: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    bio: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    website: Option<String>,
}

/// A consultant of a tenant, with their position in the list.
#[derive(QueryableByName)]
struct OfTenant {
    #[diesel(embed)]
    entry: Entry,
    #[diesel(sql_type = Text)]
    email: String,
    #[diesel(sql_type = Text)]
    scope: String,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct CertificationRow {
    #[diesel(sql_type = Text, deserialize_as = String)]
    consultant_id: ConsultantRef,
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    level: String,
    #[diesel(sql_type = Nullable<Text>)]
    program: Option<String>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    not_before: Option<Time>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    not_after: Option<Time>,
    #[diesel(sql_type = Text)]
    signed: String,
    #[diesel(sql_type = Text)]
    signature_kid: String,
    #[diesel(sql_type = Text)]
    signature_value_b64: String,
}

/// The filters and the page of a list of a tenant's consultants.
pub(crate) struct Wanted {
    pub(crate) tenant_id: TenantId,
    pub(crate) id: Option<ConsultantRef>,
    pub(crate) level: Option<String>,
    pub(crate) sector: Option<String>,
    /// The last consultant of the previous page.
    pub(crate) after: Option<(DateTime<Utc>, String)>,
    pub(crate) limit: i64,
}

const DIRECTORY: &str = concat!(
    "SELECT ",
    shown!(),
    " FROM consultants AS c WHERE c.id = $2 AND c.status = 'certified' AND c.listed AND ",
    certified!()
);

const OF_TENANT: &str = concat!(
    "SELECT ",
    shown!(),
    ", c.email, l.scope, c.created_at FROM consultants AS c \
     JOIN consultant_links AS l ON l.consultant_id = c.id AND l.tenant_id = $2 \
      AND l.status = 'active' AND l.deleted_at IS NULL \
     WHERE ($3 IS NULL OR c.id = $3) AND ($4 IS NULL OR c.certification_level = $4) \
       AND ($5 IS NULL OR $5 = ANY (c.sectors)) \
       AND ($6 IS NULL OR (c.created_at, c.id) > ($6, $7)) AND ",
    certified!(),
    " ORDER BY c.created_at, c.id LIMIT $8"
);

const HELD: &str = "
    SELECT consultant_id, id, level, program, not_before, not_after, signed, signature_kid,
           signature_value_b64
    FROM certifications
    WHERE consultant_id = ANY ($1)
      AND certification_holds(revoked_at, deleted_at, not_before, not_after, $2)
    ORDER BY created_at, id";

/// Returns the public entry of a consultant who may be shown publicly.
pub(crate) async fn public(
    db: &mut Db,
    id: &ConsultantRef,
    now: DateTime<Utc>,
) -> QueryResult<Option<DirectoryConsultant>> {
    let found: Vec<Entry> = diesel::sql_query(DIRECTORY)
        .bind::<Timestamptz, _>(now)
        .bind::<Text, _>(id.as_str())
        .load(db)
        .await?;
    let Some(entry) = found.into_iter().next() else { return Ok(None) };
    let certifications = held(db, vec![String::from(&entry.id)], now).await?;
    let certifications = certifications.into_iter().map(shown).collect();
    Ok(Some(DirectoryConsultant {
        id: entry.id.into(),
        display_name: entry.display_name,
        level: entry.certification_level,
        sectors: entry.sectors,
        languages: entry.languages,
        country: entry.country,
        bio: entry.bio,
        website: entry.website,
        certifications,
    }))
}

/// Returns a tenant's consultants, each with the time that the list is ordered by.
pub(crate) async fn of_tenant(
    db: &mut Db,
    wanted: Wanted,
    now: DateTime<Utc>,
) -> QueryResult<Vec<(DateTime<Utc>, TenantConsultant)>> {
    let (at, last) = wanted.after.unzip();
    let found: Vec<OfTenant> = diesel::sql_query(OF_TENANT)
        .bind::<Timestamptz, _>(now)
        .bind::<Text, _>(String::from(wanted.tenant_id))
        .bind::<Nullable<Text>, _>(wanted.id.as_deref())
        .bind::<Nullable<Text>, _>(wanted.level)
        .bind::<Nullable<Text>, _>(wanted.sector)
        .bind::<Nullable<Timestamptz>, _>(at)
        .bind::<Nullable<Text>, _>(last)
        .bind::<BigInt, _>(wanted.limit)
        .load(db)
        .await?;
    let ids = found.iter().map(|one| String::from(&one.entry.id)).collect();
    let held = held(db, ids, now).await?;
    let mut all: Vec<_> = found.into_iter().map(consultant).collect();
    for certification in held {
        let of =
            |(_, one): &&mut (_, TenantConsultant)| certification.consultant_id == one.id.as_str();
        if let Some((_, owner)) = all.iter_mut().find(of) {
            owner.certifications.push(shown(certification));
        }
    }
    Ok(all)
}

async fn held(
    db: &mut Db,
    ids: Vec<String>,
    now: DateTime<Utc>,
) -> QueryResult<Vec<CertificationRow>> {
    let held = diesel::sql_query(HELD).bind::<Array<Text>, _>(ids).bind::<Timestamptz, _>(now);
    held.load(db).await
}

fn consultant(row: OfTenant) -> (DateTime<Utc>, TenantConsultant) {
    let OfTenant { entry, email, scope, created_at } = row;
    let consultant = TenantConsultant {
        id: entry.id.into(),
        display_name: entry.display_name,
        level: entry.certification_level,
        sectors: entry.sectors,
        languages: entry.languages,
        country: entry.country,
        bio: entry.bio,
        website: entry.website,
        certifications: Vec::new(),
        email,
        scope,
    };
    (created_at, consultant)
}

fn shown(row: CertificationRow) -> HeldCertification {
    HeldCertification {
        id: row.id,
        level: row.level,
        program: row.program,
        not_before: row.not_before,
        not_after: row.not_after,
        signed: row.signed,
        signature_kid: row.signature_kid,
        signature_value_b64: row.signature_value_b64,
    }
}
