//! Changes an endpoint's fields.

use authority_keys::EndpointColumn;
use authority_model::{
    proto::events::*, record::RecordRequest, schema::webhook_endpoints, validate::Validate,
};
use authority_webhook::destination::EndpointUrl;

use super::{WebhookEndpoints, demand, headers, rules};
use crate::flow::{
    operations::{admit, or_not_found},
    patch::named_faults,
    prelude::*,
    version::{IfMatch, tagged},
};

impl WebhookEndpoints {
    /// Updates the endpoint like any record, and seals the headers of the patch, if any.
    pub(super) async fn update(
        &self,
        call: Request<UpdateWebhookEndpointRequest>,
    ) -> Reply<WebhookEndpoint> {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, request, mut faults) = admit(call)?;
        let id = request.id.clone();
        let (mut patch, mask) = request.open();
        let names = |member: &str| mask.paths.iter().any(|path| path == member);
        named_faults::<UpdateWebhookEndpointRequest>(&patch, &mask, &mut faults);
        let mut given = None;
        faults.within(WebhookEndpoint::KIND, |faults| {
            WebhookEndpoint::reject_immutable(&mask, faults);
            rules::url(&mut patch, &self.0.destinations.urls, faults);
            if names("headers") {
                given = Some(headers::take(&mut patch, faults));
            }
        });
        Error::unless_clean(faults)?;
        let seal = |given: Vec<u8>| self.0.keys.seal_endpoint(&id, EndpointColumn::Headers, &given);
        let sealed = given.map(|given| given.map(seal).transpose()).transpose();
        let sealed = sealed.map_err(Error::from)?;
        let by = caller.clone();
        let changed = self.0.idempotent(&caller, key, async move |db| {
            let was = or_not_found(WebhookEndpoint::lock(db, by.tenant(), &id).await, &id)?;
            if_match.check(&was)?;
            if mask.paths.is_empty() {
                return Ok::<_, Error>(was);
            }
            let mut row = was.clone();
            row.merge(patch, &mask);
            row.defaults();
            let mut faults = Violations::default();
            faults.within(WebhookEndpoint::KIND, |faults| {
                row.validate(faults);
                row.validate_record(faults);
                same_origin(&was, &row, faults);
            });
            Error::unless_clean(faults)?;
            if let Some(sealed) = sealed {
                diesel::update(webhook_endpoints::table.find(&was.id))
                    .set(webhook_endpoints::sealed_headers.eq(sealed))
                    .execute(db)
                    .await?;
            }
            let saved = WebhookEndpoint::save(db, &row).await?;
            demand::keep(db, &saved).await?;
            Ok(saved)
        });
        let changed = changed.await?;
        self.0.wait_for_graph::<WebhookEndpoint>().await;
        Ok(tagged(changed.reply()))
    }
}

fn same_origin(was: &WebhookEndpoint, now: &WebhookEndpoint, found: &mut Violations) {
    let [was, now] = [was, now].map(|endpoint| EndpointUrl::of_record(&endpoint.url));
    let is_same = was.zip(now).is_some_and(|(was, now)| now.has_origin_of(&was));
    if !is_same {
        found.add(
            "url",
            "must keep its scheme, host and port, so that no secret or header follows to another host; \
             create another endpoint for another origin",
        );
    }
}
