//! The naive evaluator's reading of the gate.

use super::*;

/// What is declared, as numbers that rise with the risk.
#[derive(Default)]
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

impl<'a> World<'a> {
    pub(super) fn declared(&self, way: &Way<'a>) -> Declared {
        let tool = self.tool(way);
        let mut all = Declared::default();
        let declarations = [self.ask.action_declaration, tool.and_then(|t| t.action_declaration)];
        for declaration in declarations.into_iter().flatten() {
            let effect = declaration.effect_class.map(|v| effect_number(v.word()));
            let words = ["reversible", "compensatable", "irreversible"];
            let reversibility = declaration.reversibility;
            let reversibility =
                reversibility.map(|v| words.iter().position(|w| *w == v.word()).unwrap());
            all.effect = all.effect.max(effect);
            all.reversibility = all.reversibility.max(reversibility);
            if let Some(rollback) = declaration.rollback_available {
                all.rollback = Some(rollback && all.rollback != Some(false));
            }
        }
        let classified =
            [self.ask.action_risk_classification, tool.and_then(|t| t.action_risk_classification)];
        for classification in classified.into_iter().flatten() {
            let tier = classification.risk_tier.map(|v| tier_number(v.word()));
            all.tier = all.tier.max(tier);
            if let Some(mode) = classification.required_oversight_mode.map(OversightMode::word) {
                let above = all.mode.is_none_or(|known| mode_number(mode) > mode_number(known));
                all.mode = if above { Some(mode) } else { all.mode };
            }
        }
        let mut models: Vec<&Model> = self.graph.model.iter().map(|model| &**model).collect();
        if let Some(Used::Model(model)) = way.uses.map(|uses| &uses.used) {
            models.push(model);
        }
        for tier in models.iter().filter_map(|model| model.risk_tier) {
            all.tier = all.tier.max(Some(tier_number(tier.word())));
        }
        all.any = all.effect.is_some()
            || all.reversibility.is_some()
            || all.rollback.is_some()
            || all.tier.is_some()
            || all.mode.is_some();
        all
    }

    pub(super) fn least_oversight(&self, way: &Way<'a>) -> usize {
        let declared = self.declared(way);
        let mut least = 0;
        if declared.any {
            let tier = declared.tier.unwrap_or(1);
            let effect = declared.effect.unwrap_or(1);
            let column = match (declared.rollback, declared.reversibility) {
                (Some(true), _) | (_, Some(0)) => 0,
                (_, Some(1)) => 1,
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
            least = least.max(declared.mode.map_or(0, mode_number));
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
