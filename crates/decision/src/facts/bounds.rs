//! The bounds of an authority: amounts, counts, places, resources, hours, purposes, risk.
//!
//! A delegation has the bounds as fields. A `uses` row has some of them in `constraints_json`.

use authority_ids::EntityRef;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::hours::Hours;
use crate::{levels::RiskTier, request::amount::Amount};

/// A limit of `count` uses in each fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaxUses {
    pub count: u32,
    pub window_seconds: u32,
}

/// A limit on the total `amount` in each fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaxTotalAmount {
    pub amount: Amount,
    pub window_seconds: u32,
}

/// The bounds of one authority. An absent or empty field sets no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_amount: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<MaxUses>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_amount: Option<MaxTotalAmount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jurisdictions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<Hours>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_ids: Vec<EntityRef>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workspace_ids: Vec<EntityRef>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub purposes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_risk_tier: Option<RiskTier>,
}

impl Bounds {
    /// Parses `constraints_json`. Refuses empty lists.
    ///
    /// The author of an empty list may have meant to forbid everything. But an empty list removes
    /// the bound.
    ///
    /// # Errors
    /// The error in the JSON.
    pub fn read(json: &str) -> Result<Self, String> {
        let why = |why: serde_json::Error| why.to_string();
        let bounds: Self = serde_json::from_str(json).map_err(why)?;
        let members: Map<String, Value> = serde_json::from_str(json).map_err(why)?;
        match members.iter().find(|(_, value)| value.as_array().is_some_and(Vec::is_empty)) {
            Some((name, _)) => Err(format!("`{name}` is an empty list; leave it out for no bound")),
            None => Ok(bounds),
        }
    }
}
