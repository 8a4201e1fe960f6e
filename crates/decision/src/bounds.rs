//! The bounds of an authority: amounts, counts, places, things, hours, purposes, risk.
//!
//! Delegations have these as fields; a `uses` row has some of them as `constraints_json`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{amount::Amount, hours::Hours, levels::RiskTier};

/// At most `count` uses in each fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaxUses {
    pub count: u32,
    pub window_seconds: u32,
}

/// At most `amount` in all in each fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaxTotalAmount {
    pub amount: Amount,
    pub window_seconds: u32,
}

/// The bounds of one authority; absent or empty is unbounded.
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
    pub resource_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workspace_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub purposes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_risk_tier: Option<RiskTier>,
}

impl Bounds {
    /// Reads `constraints_json`, and refuses empty lists.
    ///
    /// The author of an empty list may have meant to forbid everything; here it would remove the bound.
    ///
    /// # Errors
    /// The fault in the JSON.
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
