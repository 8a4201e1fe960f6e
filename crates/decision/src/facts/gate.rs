//! The dynamic authority gate: the oversight that an action's effect and risk require.
//!
//! The table is data. It is total (every cell has a value) and monotone (a riskier field never
//! lowers the oversight). The tests prove both for every tightening that a tenant can write.

use serde::{Deserialize, Serialize};

use crate::{
    levels::{EffectClass, Oversight, OversightMode, Reversibility, RiskTier},
    request::draft::{ActionDeclaration, ActionRiskClassification},
};

/// The extent to which an action can be undone: the columns of the table, rising.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undoing {
    /// Reversible, or a rollback is available.
    Undone,
    Compensated,
    /// Irreversible, without a rollback.
    Final,
}

impl Undoing {
    /// Parses a word.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "undone" => Some(Self::Undone),
            "compensated" => Some(Self::Compensated),
            "final" => Some(Self::Final),
            _ => None,
        }
    }
}

/// A tenant's rule in addition to the table: the minimum oversight from these values up.
///
/// It also applies to all riskier values. A tightening can therefore never lower the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tightening {
    #[serde(default = "lowest_tier")]
    pub risk_tier: RiskTier,
    #[serde(default = "lowest_class")]
    pub effect_class: EffectClass,
    #[serde(default = "lowest_undoing")]
    pub undoing: Undoing,
    pub oversight: Oversight,
}

const fn lowest_tier() -> RiskTier {
    RiskTier::Minimal
}

const fn lowest_class() -> EffectClass {
    EffectClass::Informational
}

const fn lowest_undoing() -> Undoing {
    Undoing::Undone
}

/// One cell: the oversight from each effect class up.
type Cell = &'static [(EffectClass, Oversight)];

const ANY: EffectClass = EffectClass::Informational;
const ABOVE_INFORMATIONAL: EffectClass = EffectClass::DigitalStateChange;
const FINANCIAL: EffectClass = EffectClass::Financial;
const NONE: Cell = &[];
const SINGLE_IF_FINANCIAL: Cell = &[(FINANCIAL, Oversight::SingleApprover)];
const SINGLE: Cell = &[(ANY, Oversight::SingleApprover)];
const PROHIBITED: Cell = &[(ANY, Oversight::Prohibited)];

/// The rows are risk tiers, rising. The columns are [`Undoing`], rising.
const TABLE: [[Cell; 3]; 5] = [
    // minimal
    [NONE, NONE, SINGLE_IF_FINANCIAL],
    // limited: an informational effect needs no approval
    [NONE, SINGLE_IF_FINANCIAL, &[(ABOVE_INFORMATIONAL, Oversight::SingleApprover)]],
    // high
    [
        SINGLE,
        &[(ANY, Oversight::SingleApprover), (FINANCIAL, Oversight::TwoPerson)],
        &[
            (ANY, Oversight::TwoPerson),
            (EffectClass::SafetyCritical, Oversight::TwoPersonWithLegal),
        ],
    ],
    // unacceptable
    [PROHIBITED; 3],
    // prohibited
    [PROHIBITED; 3],
];

/// The joint declaration of the request, tool and model.
///
/// Each field has the riskiest value that any of them declares. `Ord` is only for sorting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Effective {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_class: Option<EffectClass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reversibility: Option<Reversibility>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_available: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk_tier: Option<RiskTier>,
    /// The minimum oversight requested; `auto` does not request any.
    #[serde(rename = "required_oversight_mode", skip_serializing_if = "Option::is_none")]
    pub required: Option<OversightMode>,
}

impl Effective {
    /// Adds another party's declaration, which can only make the result riskier.
    pub fn take(
        &mut self,
        declaration: Option<ActionDeclaration>,
        classification: Option<ActionRiskClassification>,
    ) {
        let declared = declaration.unwrap_or_default();
        let classified = classification.unwrap_or_default();
        self.join(Self {
            effect_class: declared.effect_class,
            reversibility: declared.reversibility,
            rollback_available: declared.rollback_available,
            risk_tier: classified.risk_tier,
            required: classified.required_oversight_mode,
        });
    }

    /// Sets each field to the riskier of both values.
    pub fn join(&mut self, other: Self) {
        self.effect_class = self.effect_class.max(other.effect_class);
        self.reversibility = self.reversibility.max(other.reversibility);
        self.rollback_available = match (self.rollback_available, other.rollback_available) {
            (Some(one), Some(other)) => Some(one && other),
            (one, other) => one.or(other),
        };
        self.risk_tier = self.risk_tier.max(other.risk_tier);
        self.required = self.required.max(other.required);
    }

    /// Returns this declaration, with the other's value in each field that it lacks.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            effect_class: self.effect_class.or(other.effect_class),
            reversibility: self.reversibility.or(other.reversibility),
            rollback_available: self.rollback_available.or(other.rollback_available),
            risk_tier: self.risk_tier.or(other.risk_tier),
            required: self.required.or(other.required),
        }
    }

    /// Whether any field is declared.
    pub fn is_declared(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the extent to which the action can be undone. A missing value counts as the worst.
    pub fn undoing(&self) -> Undoing {
        if self.rollback_available == Some(true) {
            return Undoing::Undone;
        }
        match self.reversibility {
            Some(Reversibility::Reversible) => Undoing::Undone,
            Some(Reversibility::Compensatable) => Undoing::Compensated,
            Some(Reversibility::Irreversible) | None => Undoing::Final,
        }
    }

    /// Returns the minimum oversight by the table, the tenant's tightening and the requested mode.
    pub fn oversight(&self, tightening: &[Tightening]) -> Oversight {
        if !self.is_declared() {
            return Oversight::None;
        }
        let tier = self.risk_tier.unwrap_or(RiskTier::Limited);
        let class = self.effect_class.unwrap_or(EffectClass::DigitalStateChange);
        let undoing = self.undoing();
        let asked = self.required.map_or(Oversight::None, oversight_of);
        let tightened = tightening
            .iter()
            .filter(|t| t.risk_tier <= tier && t.effect_class <= class && t.undoing <= undoing)
            .map(|t| t.oversight);
        tightened.fold(table(tier, undoing, class).max(asked), Ord::max)
    }
}

/// Returns the oversight in the default table.
pub fn table(tier: RiskTier, undoing: Undoing, class: EffectClass) -> Oversight {
    let cell = TABLE.get(tier as usize).and_then(|row| row.get(undoing as usize));
    let held = |cell: &&Cell| {
        cell.iter().filter(|(from, _)| *from <= class).map(|(_, oversight)| *oversight).max()
    };
    // A missing cell prohibits. A test proves that the table has no gaps.
    cell.map_or(Oversight::Prohibited, |cell| held(&cell).unwrap_or(Oversight::None))
}

/// Converts a mode.
///
/// `delegated` requires a standing approval, signed by at least one person. `auto` requires no more
/// than the gate.
const fn oversight_of(mode: OversightMode) -> Oversight {
    match mode {
        OversightMode::Auto | OversightMode::None => Oversight::None,
        OversightMode::Delegated | OversightMode::SingleApprover => Oversight::SingleApprover,
        OversightMode::TwoPerson => Oversight::TwoPerson,
        OversightMode::TwoPersonWithLegal => Oversight::TwoPersonWithLegal,
    }
}
