//! The naive evaluator's gate.

use authority_decision::request::{ActionDeclaration, ActionRiskClassification};

use super::*;

/// Declared values as numbers: a higher number is a higher risk.
#[derive(Clone, Default)]
pub(super) struct Declared {
    pub(super) any: bool,
    pub(super) effect: Option<usize>,
    pub(super) reversibility: Option<usize>,
    pub(super) rollback: Option<bool>,
    pub(super) tier: Option<usize>,
    pub(super) mode: Option<&'static str>,
}

pub(super) fn tier_number(word: &str) -> usize {
    let words = ["minimal", "limited", "high", "unacceptable", "prohibited"];
    words.iter().position(|w| *w == word).unwrap()
}

pub(super) fn effect_number(word: &str) -> usize {
    let words = [
        "informational",
        "digital_state_change",
        "financial",
        "physical_actuation",
        "safety_critical",
    ];
    words.iter().position(|w| *w == word).unwrap()
}

pub(super) fn oversight_number(word: &str) -> usize {
    let words = ["none", "single_approver", "two_person", "two_person_with_legal", "prohibited"];
    words.iter().position(|w| *w == word).unwrap()
}

pub(super) fn mode_number(word: &str) -> usize {
    match word {
        "auto" | "none" => 0,
        "delegated" => 1,
        other => oversight_number(other),
    }
}

/// Returns the values of one declaration as numbers.
fn numbers(
    declaration: Option<ActionDeclaration>,
    classification: Option<ActionRiskClassification>,
) -> Declared {
    let declaration = declaration.unwrap_or_default();
    let classification = classification.unwrap_or_default();
    let words = ["reversible", "compensatable", "irreversible"];
    let place = |word: &str| words.iter().position(|own| *own == word).unwrap();
    let mut numbers = Declared {
        any: false,
        effect: declaration.effect_class.map(|v| effect_number(v.word())),
        reversibility: declaration.reversibility.map(|v| place(v.word())),
        rollback: declaration.rollback_available,
        tier: classification.risk_tier.map(|v| tier_number(v.word())),
        mode: classification.required_oversight_mode.map(OversightMode::word),
    };
    numbers.any = numbers.effect.is_some()
        || numbers.reversibility.is_some()
        || numbers.rollback.is_some()
        || numbers.tier.is_some()
        || numbers.mode.is_some();
    numbers
}

/// Returns the worse value of two declarations, field by field.
fn worse(one: &Declared, other: &Declared) -> Declared {
    let rollback = match (one.rollback, other.rollback) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), _) | (_, Some(true)) => Some(true),
        _ => None,
    };
    let rank = |mode: Option<&str>| {
        let words = ["auto", "none", "delegated", "single_approver", "two_person"];
        mode.map(|mode| words.iter().position(|word| *word == mode).unwrap_or(5))
    };
    Declared {
        any: one.any || other.any,
        effect: one.effect.max(other.effect),
        reversibility: one.reversibility.max(other.reversibility),
        rollback,
        tier: one.tier.max(other.tier),
        mode: if rank(other.mode) > rank(one.mode) { other.mode } else { one.mode },
    }
}

/// Fills in missing values if at least one is declared. Effect and tier get their defaults, and the
/// others the worst value.
fn completed(declared: &Declared) -> Declared {
    if !declared.any {
        return declared.clone();
    }
    Declared {
        any: true,
        effect: declared.effect.or(Some(1)),
        reversibility: declared.reversibility.or(Some(2)),
        rollback: declared.rollback.or(Some(false)),
        tier: declared.tier.or(Some(1)),
        mode: declared.mode,
    }
}

impl<'a> World<'a> {
    fn asked(&self) -> Declared {
        numbers(self.ask.action_declaration, self.ask.action_risk_classification)
    }

    /// Returns the records' declaration for each tool that could be used. The list is never empty.
    fn records(&self, way: &Way<'a>) -> Vec<Declared> {
        let mut models: Vec<&Model> = self.graph.model.iter().map(|model| &**model).collect();
        if let Some(Used::Model(model)) = way.uses.map(|uses| &uses.used) {
            models.push(model);
        }
        let mut by_models = Declared::default();
        for risk_tier in models.iter().map(|model| model.risk_tier) {
            let classification = ActionRiskClassification { risk_tier, ..<_>::default() };
            by_models = worse(&by_models, &numbers(None, Some(classification)));
        }
        let tools = self.binding(way);
        if tools.is_empty() {
            return vec![by_models];
        }
        let own = |tool: &&Tool| {
            let own = numbers(tool.action_declaration, tool.action_risk_classification);
            worse(&own, &by_models)
        };
        tools.iter().map(own).collect()
    }

    /// Returns the joint declaration of records and request for each tool that could be used.
    pub(super) fn each(&self, way: &Way<'a>) -> Vec<Declared> {
        let asked = self.asked();
        self.records(way).iter().map(|own| worse(own, &asked)).collect()
    }

    /// Returns every declaration that policies see: of the records for each tool, and of all records
    /// together. Policies see each twice: with the request's values where these are worse, and with
    /// the request's values only where the records have none.
    pub(super) fn seen_by_policies(&self, way: &Way<'a>) -> Vec<Declared> {
        let asked = self.asked();
        let mut all = self.records(way);
        all.push(all.iter().fold(Declared::default(), |worst, own| worse(&worst, own)));
        let raised: Vec<_> = all.iter().map(|own| worse(own, &asked)).collect();
        let kept = all.iter().map(|own| Declared {
            any: own.any || asked.any,
            effect: own.effect.or(asked.effect),
            reversibility: own.reversibility.or(asked.reversibility),
            rollback: own.rollback.or(asked.rollback),
            tier: own.tier.or(asked.tier),
            mode: own.mode.or(asked.mode),
        });
        kept.chain(raised).collect()
    }

    pub(super) fn least_oversight(&self, way: &Way<'a>) -> usize {
        let asked = self.asked();
        let mut all = Declared::default();
        for records in self.records(way) {
            // If records declare anything, the caller's declaration can make it worse but can't
            // fill its gaps.
            let counted =
                if records.any { worse(&completed(&records), &asked) } else { completed(&asked) };
            all = worse(&all, &counted);
        }
        let mut least = 0;
        if all.any {
            let (tier, effect) = (all.tier.unwrap(), all.effect.unwrap());
            let column = match (all.rollback, all.reversibility.unwrap()) {
                (Some(true), _) | (_, 0) => 0,
                (_, 1) => 1,
                _ => 2,
            };
            let money = effect >= 2;
            least = match (tier, column) {
                (3 | 4, _) => 4,
                (0, 0 | 1) | (1, 0) => 0,
                (0, _) | (1, 1) => usize::from(money),
                (1, _) => usize::from(effect >= 1),
                (_, 0) => 1,
                (_, 1) => 1 + usize::from(money),
                _ => 2 + usize::from(effect == 4),
            };
            least = least.max(all.mode.map_or(0, mode_number));
            let undoing = |json: Value| match json.as_str() {
                Some("undone") => 0,
                Some("compensated") => 1,
                _ => 2,
            };
            for rule in self.graph.tenant.iter().flat_map(|tenant| &tenant.gate) {
                if tier_number(rule.risk_tier.word()) <= tier
                    && effect_number(rule.effect_class.word()) <= effect
                    && undoing(serde_json::to_value(rule.undoing).unwrap()) <= column
                {
                    least = least.max(oversight_number(rule.oversight.word()));
                }
            }
        }
        let unsigned =
            |link: &&Delegation| link.needs_standing_approval && link.standing.is_empty();
        if way.links.iter().any(unsigned) {
            least = least.max(1);
        }
        least
    }
}
