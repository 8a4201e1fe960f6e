//! White-label configurations: the brand that a consultant uses for a tenant.

use authority_api::error::ApiError;
use authority_model::{
    colour::{Colour, LEAST_CONTRAST},
    proto::programme::*,
    schema::{consultant_links, domains, white_label_configs},
    service::WhiteLabelConfigService,
    state::{ConsultantTenantLinkStatus, WhiteLabelConfigStatus as Status},
    wire::Time,
};

use super::standing::referred;
use crate::flow::{prelude::*, tenant};
use authority_ids::RecordId;

/// The name of the kind in IDs.
const ID_KIND: &str = "brand";

impl RecordRow for WhiteLabelConfig {
    type List = ListWhiteLabelConfigsRequest;

    fn filtered(by: &ListWhiteLabelConfigsRequest) -> white_label_configs::BoxedQuery<'_, Pg> {
        let mut query = white_label_configs::table.into_boxed();
        if let Some(id) = &by.consultant_id {
            query = query.filter(white_label_configs::consultant_id.eq(id));
        }
        if let Some(status) = &by.status {
            query = query.filter(white_label_configs::status.eq(status));
        }
        if !by.deleted {
            query = query.filter(white_label_configs::deleted_at.is_null());
        }
        query
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn defaults(&mut self) {
        names::or(&mut self.status, Status::Draft.as_str());
    }

    fn validate_record(&self, found: &mut Violations) {
        contrast(self, found);
        let texts =
            [("brand_name", Some(&self.brand_name)), ("legal_footer", self.legal_footer.as_ref())];
        for (member, text) in texts {
            if text.is_some_and(|text| text.contains(is_unseen)) {
                found.add(member, "may not contain control or bidirectional characters");
            }
        }
        if self.domain.is_some() && self.tenant_id.is_none() {
            found.add("domain", "needs `tenant_id`: it is a domain of the tenant");
        }
        if let Some(url) = &self.logo_url
            && self.domain.as_deref() != Some(host(url).as_str())
        {
            found.add("logo_url", "must be on `domain`");
        }
    }

    async fn tenant_slug(&self, db: &mut Db, within: Option<&TenantId>) -> Result<String, Error> {
        match &self.tenant_id {
            Some(id) => tenant::slug(db, within, id).await,
            None => Ok(String::new()),
        }
    }

    fn may_begin_final() -> bool {
        true
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(ID_KIND, new_id()).into())
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        if was.is_none() {
            referred(tx.db, "white_label_config.consultant_id", &self.consultant_id).await?;
        }
        let is_active = self.known_state() == Some(Status::Active);
        let was_active = was.is_some_and(|was| was.known_state() == Some(Status::Active));
        let same_domain = was.is_some_and(|was| was.domain == self.domain);
        if is_active && !was_active {
            unless_linked(tx.db, self).await?;
        }
        if !same_domain || is_active && !was_active {
            check_domain(tx.db, self, is_active).await?;
        }
        if is_active && !was_active {
            unless_another(tx.db, self).await?;
        }
        Ok(())
    }
}

impl_queries!(WhiteLabelConfig, white_label_configs);

impl Save for WhiteLabelConfig {
    /// Does not filter by tenant, because a configuration may have none.
    fn save<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, Self> {
        diesel::update(white_label_configs::table.find(&row.id))
            .set((row, white_label_configs::updated_at.eq(clock_timestamp())))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

impl_soft_delete!(WhiteLabelConfig, white_label_configs);

/// Refuses a brand without an active link between its consultant and its tenant.
async fn unless_linked(db: &mut Db, brand: &WhiteLabelConfig) -> Result<(), Error> {
    let link: Option<String> = consultant_links::table
        .filter(consultant_links::tenant_id.eq(brand.tenant_id()))
        .filter(consultant_links::consultant_id.eq(&brand.consultant_id))
        .filter(consultant_links::status.eq(ConsultantTenantLinkStatus::Active))
        .filter(consultant_links::deleted_at.is_null())
        .for_share()
        .select(consultant_links::id)
        .first(db)
        .await
        .optional()?;
    link.map(drop).ok_or(Error::Refused(ErrorCode::NotLinked))
}

/// Refuses a domain that is neither a domain of the tenant nor below such a domain. With
/// `verified`, also refuses an unverified domain.
async fn check_domain(db: &mut Db, brand: &WhiteLabelConfig, verified: bool) -> Result<(), Error> {
    let Some(domain) = &brand.domain else { return Ok(()) };
    let above: Vec<&str> = names_above(domain).collect();
    let found: Vec<Option<Time>> = domains::table
        .filter(domains::tenant_id.eq(brand.tenant_id()))
        .filter(domains::fqdn.eq_any(above))
        .for_share()
        .select(domains::verified_at)
        .load(db)
        .await?;
    if found.is_empty() {
        let problem = format!("`{domain}` is neither a domain of the tenant nor below one");
        return Err(Error::field("white_label_config.domain", problem));
    }
    if verified && found.iter().all(Option::is_none) {
        let text = format!(
            "neither `{domain}` nor one above it is verified: call `POST /domains/{{id}}/verify`"
        );
        return Err(ApiError::new(ErrorCode::DomainNotVerified, text).into());
    }
    Ok(())
}

/// Returns the name and the names above it: `a.b.c`, `b.c`, `c`.
pub(crate) fn names_above(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, above)| above))
}

/// Refuses a second active brand. The table's unique index covers concurrent transactions.
async fn unless_another(db: &mut Db, brand: &WhiteLabelConfig) -> Result<(), Error> {
    let other: Option<String> = white_label_configs::table
        .filter(white_label_configs::tenant_id.eq(brand.tenant_id()))
        .filter(white_label_configs::status.eq(Status::Active))
        .filter(white_label_configs::deleted_at.is_null())
        .filter(white_label_configs::id.ne(&brand.id))
        .select(white_label_configs::id)
        .first(db)
        .await
        .optional()?;
    other.map_or(Ok(()), |_| Err(Error::Refused(ErrorCode::BrandActiveExists)))
}

/// Refuses to remove a domain name that an active brand uses.
pub(crate) async fn unless_branded(db: &mut Db, fqdn: &str) -> Result<(), Error> {
    let domains: Vec<Option<String>> = white_label_configs::table
        .filter(white_label_configs::status.eq(Status::Active))
        .filter(white_label_configs::deleted_at.is_null())
        .filter(white_label_configs::domain.is_not_null())
        .filter(
            white_label_configs::domain
                .eq(fqdn)
                .or(white_label_configs::domain.like(format!("%.{fqdn}"))),
        )
        .select(white_label_configs::domain)
        .load(db)
        .await?;
    if domains.is_empty() {
        return Ok(());
    }
    Err(Error::InUse { by: "active brands" })
}

/// Reports colours with too little contrast.
fn contrast(brand: &WhiteLabelConfig, found: &mut Violations) {
    let colour = |text: &Option<String>| text.as_deref().and_then(Colour::parse);
    let (Some(ground), Some(text)) =
        (colour(&brand.primary_colour_hex), colour(&brand.secondary_colour_hex))
    else {
        return;
    };
    let ratio = ground.contrast(text);
    if ratio < LEAST_CONTRAST {
        // Rounded down. An insufficient value is then never displayed as sufficient.
        let shown = (ratio * 100.0).floor() / 100.0;
        let problem = format!(
            "has a contrast of {shown:.2} with `primary_colour_hex`; at least {LEAST_CONTRAST} is required (WCAG 2.2)"
        );
        found.add("secondary_colour_hex", problem);
    }
}

/// Whether this is a control character or changes the direction of text.
fn is_unseen(letter: char) -> bool {
    let turns = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{2028}' | '\u{2029}'
    );
    turns || letter.is_control()
}

/// Returns the host of an `https` URL in lower case. The proto's rules have checked the URL's form.
fn host(url: &str) -> String {
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.to_ascii_lowercase()
}

#[tonic::async_trait]
impl WhiteLabelConfigService for Registry {
    async fn list_white_label_configs(
        &self,
        call: Request<ListWhiteLabelConfigsRequest>,
    ) -> Reply<ListWhiteLabelConfigsResponse> {
        self.list(call).await
    }

    async fn create_white_label_config(
        &self,
        call: Request<CreateWhiteLabelConfigRequest>,
    ) -> Reply<WhiteLabelConfig> {
        self.create(call).await
    }

    async fn get_white_label_config(
        &self,
        call: Request<GetWhiteLabelConfigRequest>,
    ) -> Reply<WhiteLabelConfig> {
        self.get(call).await
    }

    async fn update_white_label_config(
        &self,
        call: Request<UpdateWhiteLabelConfigRequest>,
    ) -> Reply<WhiteLabelConfig> {
        self.update(call).await
    }

    async fn delete_white_label_config(
        &self,
        call: Request<DeleteWhiteLabelConfigRequest>,
    ) -> Reply<DeleteWhiteLabelConfigResponse> {
        self.soft_delete(call).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_below_its_parents() {
        assert_eq!(names_above("a.b.c").collect::<Vec<_>>(), ["a.b.c", "b.c", "c"]);
    }

    #[test]
    fn a_logo_is_on_the_host_of_its_url() {
        assert_eq!(host("https://Brand.example.com/l.png"), "brand.example.com");
        assert_eq!(host("https://brand.example.com?x=https://other"), "brand.example.com");
    }
}
