//! The order of pending requests by amount.
//!
//! The amount is in the context of the held decision. No index covers it, since erasing the context
//! must be enough. The contexts of all matching requests are therefore read, some at a time.

use std::{cmp::Reverse, collections::HashMap};

use authority_decision::Amount;
use authority_model::schema::decisions;
use serde_json::Value;

use crate::flow::prelude::*;
use authority_api::{error::ApiError, page_token::PageTokens};

/// The number of contexts in memory.
const READ: usize = 100;

/// The place of a request. Places are ordered by their fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Requests without an amount come last.
    has_no_amount: bool,
    currency: String,
    /// Ten-thousandths, the largest first.
    amount: Reverse<i64>,
    pub(super) id: String,
}

impl Place {
    fn of(id: String, context: &[u8]) -> Self {
        let context: Value = serde_json::from_slice(context).unwrap_or_default();
        let amount = context["amount"].as_number().map(Amount::from_number);
        let amount = amount.and_then(Result::ok);
        Self {
            has_no_amount: amount.is_none(),
            currency: context["currency"].as_str().unwrap_or_default().to_owned(),
            amount: Reverse(amount.unwrap_or_default().ten_thousandths()),
            id,
        }
    }

    /// Reads the place in a token; `None` for the first page.
    ///
    /// # Errors
    /// The token is not of this list.
    pub(super) fn read(token: &str, tokens: &PageTokens) -> Result<Option<Self>, ApiError> {
        let Some(place) = tokens.read(token)? else { return Ok(None) };
        // An authentic token has a place: `token` wrote it.
        let read: Option<(bool, String, i64, String)> = serde_json::from_slice(&place).ok();
        Ok(read.map(|(has_no_amount, currency, amount, id)| Self {
            has_no_amount,
            currency,
            amount: Reverse(amount),
            id,
        }))
    }

    /// Returns the token to continue after this place.
    pub(super) fn token(&self, tokens: &PageTokens) -> Option<String> {
        let place = (self.has_no_amount, &self.currency, self.amount.0, &self.id);
        Some(tokens.write(&serde_json::to_vec(&place).ok()?))
    }
}

/// Returns the places of requests in order. Each request is given with its held decision.
pub(super) async fn places(
    db: &mut Db,
    requests: Vec<(String, String)>,
) -> QueryResult<Vec<Place>> {
    let mut places = Vec::with_capacity(requests.len());
    for some in requests.chunks(READ) {
        let held: Vec<&str> = some.iter().map(|(_, decision)| decision.as_str()).collect();
        let contexts: Vec<(String, Vec<u8>)> = decisions::table
            .filter(decisions::id.eq_any(held))
            .select((decisions::id, decisions::context))
            .load(db)
            .await?;
        let contexts: HashMap<_, _> = contexts.into_iter().collect();
        let place = |(id, decision): &(String, String)| {
            let context = contexts.get(decision).map(Vec::as_slice).unwrap_or_default();
            Place::of(id.clone(), context)
        };
        places.extend(some.iter().map(place));
    }
    places.sort_unstable();
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_amount_of_a_currency_is_first() {
        let contexts = [
            ("none", "{}"),
            ("small", r#"{"amount":900,"currency":"EUR"}"#),
            ("dollars", r#"{"amount":5000,"currency":"USD"}"#),
            ("large", r#"{"amount":12400.5,"currency":"EUR"}"#),
            ("erased", ""),
            ("alike", r#"{"amount":900,"currency":"EUR"}"#),
        ];
        let places = contexts.map(|(id, context)| Place::of(id.to_owned(), context.as_bytes()));
        let mut sorted = places.to_vec();
        sorted.sort_unstable();
        let ids: Vec<&str> = sorted.iter().map(|place| place.id.as_str()).collect();
        assert_eq!(ids, ["large", "alike", "small", "dollars", "erased", "none"]);
    }
}
