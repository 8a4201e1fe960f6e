//! Choices read from random bytes.

use super::*;

/// Reads choices from bytes. After the last byte, every choice is the harmless one.
pub(crate) struct Dice<'a> {
    bytes: std::slice::Iter<'a, u8>,
    /// Whether the world has few problems. Its request then reaches the later stages.
    mild: bool,
}

impl<'a> Dice<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut dice = Self { bytes: bytes.iter(), mild: false };
        dice.mild = dice.byte() < 180;
        dice
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    pub(super) fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// Returns true with a probability of about 1 in `rarity`.
    pub(super) fn rarely(&mut self, rarity: u8) -> bool {
        let rarity = if self.mild { rarity.saturating_mul(8) } else { rarity };
        self.byte() > 255 - 255 / rarity
    }

    pub(super) fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    pub(super) fn maybe<T>(&mut self, rarity: u8, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.byte() > 255 - 255 / rarity).then(|| make(self))
    }

    /// Returns a bound or none. A mild world has few bounds.
    pub(super) fn bound<T>(&mut self, rarity: u8, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.rarely(rarity).then(|| make(self))
    }

    pub(super) fn few<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|_| make(self)).collect()
    }

    pub(super) fn patterns(&mut self) -> Vec<Pattern> {
        let mut patterns = vec![if self.mild { "*" } else { self.of(&PATTERNS) }];
        patterns.extend(self.few(2, |dice| dice.of(&PATTERNS)));
        patterns.iter().map(|text| text.parse().unwrap()).collect()
    }

    pub(super) fn window(&mut self, at: DateTime<Utc>) -> Window {
        let hour = TimeDelta::hours(1);
        match self.below(16) {
            1 => Window { from: Some(at), until: None },
            2 => Window { from: Some(at - hour), until: Some(at + TimeDelta::seconds(20)) },
            3 if self.rarely(2) => Window { from: None, until: Some(at) },
            4 if self.rarely(2) => Window { from: Some(at + hour), until: None },
            5 => Window { from: None, until: Some(at + hour) },
            _ => Window::default(),
        }
    }

    pub(super) fn texts<T>(&mut self, rarity: u8, words: &[&str]) -> Vec<T>
    where
        T: for<'w> From<&'w str>,
    {
        let drawn = self.bound(rarity, |dice| {
            let mut list = vec![T::from(dice.of(words))];
            list.extend(dice.few(1, |dice| T::from(dice.of(words))));
            list
        });
        drawn.unwrap_or_default()
    }

    pub(super) fn bounds(&mut self, purposes: bool) -> Bounds {
        let amount =
            |dice: &mut Self| dice.of(&["5000", "600", "100.5"]).parse::<Amount>().unwrap();
        let hours = [
            json!({"from": "09:00", "to": "17:00"}),
            json!({"utc_offset": "+02:00", "days": ["mon"], "from": "12:30", "to": "12:31"}),
            json!({"days": ["tue", "sun"], "from": "00:00", "to": "24:00"}),
            json!({"time_zone": ZONE, "days": ["mon"], "from": "16:15", "to": "16:16"}),
        ];
        Bounds {
            max_amount: self.bound(4, amount),
            currency: self.bound(5, |dice| dice.of(&["EUR", "EUR", "USD"]).to_owned()),
            max_uses: self.bound(6, |dice| {
                let window_seconds = dice.of(&[3600, 60, 86400, 0]);
                MaxUses { count: dice.of(&[10, 3, 1]), window_seconds }
            }),
            max_total_amount: self.bound(6, |dice| {
                let window_seconds = dice.of(&[3600, 86400]);
                MaxTotalAmount { amount: amount(dice), window_seconds }
            }),
            jurisdictions: self.texts(6, &["DE", "FR", "DE-BY"]),
            hours: self.bound(8, |dice| {
                let index = dice.below(hours.len());
                serde_json::from_value(hours[index].clone()).unwrap()
            }),
            resource_ids: self.texts(10, &["res-1", "res-2", "proj-1"]),
            workspace_ids: self.texts(10, &["ws-1", "ws-2"]),
            purposes: if purposes { self.texts(5, &["payroll", "refunds"]) } else { Vec::new() },
            max_risk_tier: self
                .maybe(5, |dice| dice.of(&[RiskTier::High, RiskTier::Limited, RiskTier::Minimal])),
        }
    }

    pub(super) fn declaration(&mut self) -> ActionDeclaration {
        ActionDeclaration {
            effect_class: self.maybe(2, |dice| dice.of(EffectClass::ALL)),
            reversibility: self.maybe(2, |dice| dice.of(Reversibility::ALL)),
            rollback_available: self.maybe(2, |dice| dice.rarely(2)),
        }
    }

    pub(super) fn classification(&mut self) -> ActionRiskClassification {
        use RiskTier::{High, Limited, Minimal, Prohibited, Unacceptable};
        let tiers = [Minimal, Minimal, Limited, Limited, High, High, Unacceptable, Prohibited];
        ActionRiskClassification {
            risk_tier: self.maybe(2, |dice| dice.of(&tiers)),
            required_oversight_mode: self.maybe(5, |dice| dice.of(OversightMode::ALL)),
        }
    }

    pub(super) fn signatures(&mut self, at: DateTime<Utc>) -> Vec<Signature> {
        self.few(3, |dice| Signature {
            by: format!("https://id|{}", dice.of(&["ann", "bob", "cy"])),
            role: dice.of(&["approver", "legal", "admin"]).to_owned(),
            own_interest: dice.rarely(4),
            at: dice.maybe(2, |dice| at - TimeDelta::seconds(dice.of(&[1, 20, 60]))),
        })
    }
}
