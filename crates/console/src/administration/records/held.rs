//! The delegations that a person received and may pass on.

use authority_api::identity::CallerKind;
use authority_model::proto::{
    delegation::{Delegation, ListDelegationsRequest},
    registry::ListPrincipalsRequest,
};

use crate::kit::prelude::*;

/// The maximum number of principals and of delegations on a page.
const LIMIT: i32 = 500;

/// Returns the ids of the delegations, each with its actions and its limit.
pub(crate) async fn held(view: &View) -> Vec<(String, String)> {
    let CallerKind::Member { subject, .. } = &view.caller.kind else { return Vec::new() };
    let request = ListPrincipalsRequest {
        principal_class: Some("human".to_owned()),
        state: Some("active".to_owned()),
        limit: Some(LIMIT),
        ..ListPrincipalsRequest::default()
    };
    let listed = view.calls.call(&request).await;
    let people = listed.map(|listed| listed.principals).unwrap_or_default().into_iter();
    let own = people.filter(|person| person.external_subject.as_ref() == Some(subject));
    let read = own.map(|person| async move {
        let request = ListDelegationsRequest {
            delegate_id: Some(person.id),
            state: Some("active".to_owned()),
            limit: Some(LIMIT),
            ..ListDelegationsRequest::default()
        };
        let listed = view.calls.call(&request).await;
        listed.map(|listed| listed.delegations).unwrap_or_default()
    });
    let delegations = some_at_once(read).await.into_iter().flatten();
    let can_be_passed_on = |one: &Delegation| {
        one.can_delegate && one.expires_at.is_none_or(|end| end > view.now.into())
    };
    delegations.filter(can_be_passed_on).map(|one| (one.id.clone(), label(&one))).collect()
}

/// `payment.*, up to 500 EUR (01a2…)`
fn label(one: &Delegation) -> String {
    let limit = one.max_amount.as_ref().zip(one.currency.as_ref());
    let limit = limit.map(|(amount, currency)| t::records::held_up_to(amount, currency));
    t::records::held(one.actions.join(", "), limit.unwrap_or_default(), short(&one.id))
}
