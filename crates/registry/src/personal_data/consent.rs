//! Withdraws a person's consent to marketing, in all of their leads.

use authority_model::{
    proto::programme::{WithdrawConsentRequest, WithdrawConsentResponse},
    schema::leads,
};

use diesel::sql_types::Text;

use super::person::Person;
use crate::flow::prelude::*;

diesel::define_sql_function! { fn lower(text: Text) -> Text; }
diesel::define_sql_function! { fn btrim(text: Text) -> Text; }

pub(super) async fn withdraw(
    registry: &Registry,
    call: Request<WithdrawConsentRequest>,
) -> Reply<WithdrawConsentResponse> {
    let key = IdempotencyKey::of(&call)?;
    let (caller, asked) = admitted(call)?;
    let now = registry.clock.now();
    let withdrawn = registry.idempotent(&caller, key, async move |db| {
        let person = Person::find(db, (&asked).into()).await?;
        let emails: Vec<String> = person.emails.into_iter().collect();
        let agreed = leads::table
            .filter(lower(btrim(leads::submitter_email)).eq_any(emails))
            .filter(leads::consent_marketing);
        let withdrawn = diesel::update(agreed)
            .set((
                leads::consent_marketing.eq(false),
                leads::consent_withdrawn_at.eq(now),
                leads::updated_at.eq(clock_timestamp()),
            ))
            .execute(db)
            .await?;
        let withdrawn = i32::try_from(withdrawn).unwrap_or(i32::MAX);
        Ok::<_, Error>(WithdrawConsentResponse { withdrawn })
    });
    Ok(withdrawn.await?.reply())
}
