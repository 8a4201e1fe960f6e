//! Brands in use. A brand is in use if the brand, its tenant and the consultant's link to the
//! tenant are active, and the consultant is neither suspended nor retired.

use authority_ids::{BrandRef, ConsultantRef, TenantId, TenantRef};
use authority_model::proto::programme::TenantBrand;
use authority_store::{Db, RunQueryDsl};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Nullable, Text},
};

/// `$1` is the tenant and `$2` the brand. Either may be null.
const BRAND: &str = "
    SELECT w.id, w.tenant_id, w.consultant_id, w.status, w.brand_name, w.primary_colour_hex,
           w.secondary_colour_hex, w.logo_url, w.domain, w.support_email, w.legal_footer
    FROM white_label_configs AS w
    JOIN consultants AS c ON c.id = w.consultant_id AND c.deleted_at IS NULL
     AND c.status NOT IN ('suspended', 'retired')
    JOIN consultant_links AS l ON l.consultant_id = w.consultant_id AND l.tenant_id = w.tenant_id
     AND l.status = 'active' AND l.deleted_at IS NULL
    JOIN tenants AS t ON t.id = w.tenant_id AND t.state = 'active' AND t.deleted_at IS NULL
    WHERE w.status = 'active' AND w.deleted_at IS NULL
      AND ($1 IS NULL OR w.tenant_id = $1) AND ($2 IS NULL OR w.id = $2)";

/// A brand that may be shown.
#[derive(QueryableByName)]
pub struct Brand {
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub id: BrandRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub tenant_id: TenantRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub consultant_id: ConsultantRef,
    #[diesel(sql_type = Text)]
    pub status: String,
    #[diesel(sql_type = Text)]
    pub brand_name: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub primary_colour_hex: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub secondary_colour_hex: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub logo_url: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub domain: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub support_email: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub legal_footer: Option<String>,
}

impl Brand {
    pub(crate) async fn of_tenant(db: &mut Db, tenant_id: &TenantId) -> QueryResult<Option<Self>> {
        find(db, Some(tenant_id), None).await
    }

    pub(crate) async fn by_id(db: &mut Db, id: &BrandRef) -> QueryResult<Option<Self>> {
        find(db, None, Some(id)).await
    }
}

async fn find(
    db: &mut Db,
    tenant_id: Option<&TenantId>,
    id: Option<&BrandRef>,
) -> QueryResult<Option<Brand>> {
    let found: Vec<Brand> = diesel::sql_query(BRAND)
        .bind::<Nullable<Text>, _>(tenant_id.map(TenantId::as_str))
        .bind::<Nullable<Text>, _>(id.map(BrandRef::as_str))
        .load(db)
        .await?;
    Ok(found.into_iter().next())
}

impl From<Brand> for TenantBrand {
    fn from(brand: Brand) -> Self {
        Self {
            id: brand.id.into(),
            tenant_id: brand.tenant_id.into(),
            consultant_id: brand.consultant_id.into(),
            status: brand.status,
            brand_name: brand.brand_name,
            primary_colour_hex: brand.primary_colour_hex,
            secondary_colour_hex: brand.secondary_colour_hex,
            logo_url: brand.logo_url,
            domain: brand.domain,
            support_email: brand.support_email,
            legal_footer: brand.legal_footer,
        }
    }
}
