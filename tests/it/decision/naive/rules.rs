//! The naive evaluator's rules: policies, reality and approvals.

use super::{gate::*, *};

impl<'a> World<'a> {
    #[expect(clippy::too_many_lines, reason = "one list, as docs/reference/decision.md has it")]
    pub(super) fn rules(&self, way: &Way<'a>) -> Answer {
        // Collects refusals and holds. A hold is: reason code, people, legal, whether an approval
        // satisfies it.
        let mut obligations = vec!["audit.emit".to_owned()];
        let mut stops = vec!["actor.stop_signal".to_owned()];
        if !way.links.is_empty() {
            stops.push("delegation.revoked".to_owned());
        }
        let mut denials = vec![];
        let mut holds: Vec<(&'static str, u32, bool, bool)> = vec![];
        let mut heard = self.policies(way);
        heard.sort();
        for (_, _, _, number, outcome) in heard {
            match outcome {
                None => denials.push("rule_error".to_owned()),
                Some(false) => {}
                Some(true) => {
                    let said = says(number);
                    match said.effect {
                        "deny" => denials.push(said.code.to_owned()),
                        "hold" => holds.push((said.code, said.people, false, true)),
                        _ => {}
                    }
                    obligations.extend(said.obligations.iter().map(|text| (*text).to_owned()));
                    stops.extend(said.stops.iter().map(|text| (*text).to_owned()));
                }
            }
        }
        let world = self.reality(way);
        let mut reviewed_after = None;
        for found in &world.found {
            match found.effect {
                "require_revalidation" => {
                    holds.push(("reality_revalidation_required", 0, false, false));
                }
                "require_human_review" => {
                    holds.push(("reality_review_required", 1, false, true));
                    reviewed_after = reviewed_after.max(Some(found.since));
                }
                "quarantine" | "deny" => denials.push("reality_decoupled".to_owned()),
                _ => {}
            }
        }
        obligations.extend(world.obligations);
        if world.consulted {
            stops.push("reality.decoupled".to_owned());
        }
        // Among the holds by reality, the holds that people can approve come last.
        holds.sort_by_key(|(code, ..)| match *code {
            "reality_revalidation_required" => 1,
            "reality_review_required" => 2,
            _ => 0,
        });
        let least = self.least_oversight(way);
        let undeclared = self.each(way).iter().any(|declared| !declared.any);
        if least == 4 {
            denials.push("risk_prohibited".to_owned());
        } else if undeclared && self.graph.tenant.as_ref().unwrap().require_declaration {
            denials.push("declaration_required".to_owned());
        } else if least > 0 && !Self::standing(way, least) {
            let people = if least == 1 { 1 } else { 2 };
            holds.push(("oversight_required", people, least == 3, true));
        }
        if let Some(code) = denials.first() {
            return deny(code.clone());
        }
        let free = ["audit.emit", "reality.warn", "reality.overridden"];
        if let Some(supported) = &self.ask.supported_obligations
            && obligations.iter().any(|name| !free.contains(&&**name) && !supported.contains(name))
        {
            return deny("obligation_unsupported");
        }
        let people = holds.iter().map(|hold| hold.1).max().unwrap_or(0);
        let legal = holds.iter().any(|hold| hold.2);
        let counts = people > 0 && self.approved(people, legal, reviewed_after);
        if counts {
            holds.retain(|hold| !hold.3);
        }
        if let Some((code, ..)) = holds.first() {
            let unmet = holds.iter().any(|hold| hold.3);
            let asks = unmet && people > 0;
            // If no approval counts, a decline turns the hold into a denial. So does reaching the
            // limit of open requests.
            if self.facts.declined.is_some() && !counts {
                return deny("approval_declined");
            }
            if self.facts.open_requests.is_some_and(|open| open.pending >= open.limit) && asks {
                return deny("approval_limit_reached");
            }
            let approvals = asks.then_some((people, legal));
            return Answer { decision: "require_approval", approvals, ..deny(*code) };
        }
        Answer {
            decision: "allow_with_constraints",
            reason_code: "permission_granted".to_owned(),
            obligations: once(obligations),
            stop_conditions: once(stops),
            approvals: None,
        }
    }

    pub(super) fn enough(given: &[Signature], people: u32, legal: bool) -> bool {
        // An approval in the approver's own interest counts only if one approver is required.
        let given: Vec<_> = given.iter().filter(|s| people < 2 || !s.own_interest).collect();
        let mut names: Vec<_> = given.iter().map(|signature| &signature.by).collect();
        names.sort();
        names.dedup();
        names.len() >= people as usize && (!legal || given.iter().any(|s| s.role == "legal"))
    }

    pub(super) fn approved(
        &self,
        people: u32,
        legal: bool,
        reviewed_after: Option<DateTime<Utc>>,
    ) -> bool {
        let (Some(id), Some(approval)) = (&self.ask.approval_id, &self.facts.approval) else {
            return false;
        };
        approval.id == *id
            && approval.state.word() == "approved"
            && approval.same_question
            && approval.expires_at > self.at
            && Self::enough(&approval.given, people, legal)
            && reviewed_after.is_none_or(|began| {
                let mut counted = approval.given.iter().filter(|s| people < 2 || !s.own_interest);
                counted.any(|s| s.at.is_some_and(|at| at > began))
            })
    }

    pub(super) fn standing(way: &Way<'a>, least: usize) -> bool {
        let unsigned =
            way.links.iter().any(|link| link.needs_standing_approval && link.standing.is_empty());
        let people = if least == 1 { 1 } else { 2 };
        let own = way.links.first();
        !unsigned && own.is_some_and(|link| Self::enough(&link.standing, people, least == 3))
    }

    /// Returns every statement that applies: its order, its number and its result, which is `None`
    /// for an error.
    pub(super) fn policies(
        &self,
        way: &Way<'a>,
    ) -> Vec<(&'static str, String, usize, usize, Option<bool>)> {
        let mut heard = vec![];
        for policy in &self.graph.policies {
            let reference = &policy.reference;
            let targets: Vec<_> = reference.applies_to.iter().map(ToString::to_string).collect();
            let applies = targets.is_empty() || targets.iter().any(|t| self.target(t, way));
            if !applies || !in_window(reference.effective, self.at) {
                continue;
            }
            for (place, number) in reference.id.split('-').skip(1).enumerate() {
                let number: usize = number.parse().unwrap();
                let outcome = self.statement(number, way);
                heard.push((says(number).id, reference.id.to_string(), place, number, outcome));
            }
        }
        heard
    }

    pub(super) fn target(&self, target: &str, way: &Way<'a>) -> bool {
        let each = self.seen_by_policies(way);
        let Some((class, value)) = target.split_once(':') else { return true };
        let same = |own: Option<&str>| own.is_none_or(|own| own == value);
        match class {
            "action" => matches(&value.parse().unwrap(), &self.ask.action),
            "effect_class" => {
                each.iter().any(|d| d.effect.is_none_or(|own| own == effect_number(value)))
            }
            "risk_tier" => each.iter().any(|d| d.tier.is_none_or(|own| own == tier_number(value))),
            "principal_class" => same(self.graph.subject.as_ref().map(|s| s.class.word())),
            "resource_kind" => same(self.graph.resource.as_ref().map(|r| r.kind.as_str())),
            "purpose" => same(self.ask.purpose.as_deref()),
            // `DEU` is not a known code, and may stand for any jurisdiction.
            "jurisdiction" if value == "DEU" => true,
            "jurisdiction" => self.text("jurisdiction").is_none_or(|own| {
                own == value
                    || own.starts_with(&format!("{value}-"))
                    || value.starts_with(&format!("{own}-"))
            }),
            _ => unreachable!(),
        }
    }

    /// Evaluates the statement with each declaration that policies see. The strictest result
    /// counts: an error, then a match, then no match.
    pub(super) fn statement(&self, number: usize, way: &Way<'a>) -> Option<bool> {
        let mut speaks = false;
        for declared in self.seen_by_policies(way) {
            speaks |= self.statement_on(number, way, &declared)?;
        }
        Some(speaks)
    }

    fn statement_on(&self, number: usize, way: &Way<'a>, declared: &Declared) -> Option<bool> {
        let above = |limit: f64| self.amount().map(|amount| amount > limit);
        let action = self.ask.action.as_str();
        Some(match number {
            0 => above(1000.0) == Some(true),
            1 => above(500.0) == Some(true),
            2 => above(2000.0)?,
            3 => action.starts_with("payment.") && self.ask.purpose.as_deref() != Some("payroll"),
            4 => {
                let class = self.graph.subject.as_ref().unwrap().class.word();
                action == "payment.execute" && class == "agent"
            }
            5 => {
                let mut rows = self.graph.memberships.iter();
                rows.any(|row| row.team_id == "team-1" && in_window(row.window, self.at))
            }
            6 => {
                self.ask.resource_id.as_ref()?;
                self.graph.resource.as_ref()?.kind == "bank_account"
            }
            7 => match self.ask.context.get("flagged") {
                None => false,
                Some(Value::Bool(flagged)) => *flagged,
                Some(_) => return None,
            },
            8 => declared.tier == Some(2),
            9 => self.text("jurisdiction")?.starts_with("RU"),
            10 => way.links.is_empty(),
            11 => declared.rollback == Some(false) && declared.effect == Some(2),
            12 => true,
            13 => {
                let scoped = action.starts_with("report.") || action == "email.send";
                scoped && self.ask.resource_id.as_deref() == Some("res-1")
            }
            14 if action == "email.send" => return None,
            14 => false,
            15 => self.text("jurisdiction") == Some("DE-BY"),
            16 => declared.reversibility.is_none() && declared.rollback.is_none(),
            17 => declared.reversibility == Some(1),
            18 => declared.tier? == 0 && declared.effect.is_some(),
            19 => declared.effect == Some(0) && declared.mode != Some("single_approver"),
            20 => declared.rollback == Some(true),
            _ => unreachable!(),
        })
    }
}

pub(super) struct Said {
    id: &'static str,
    effect: &'static str,
    code: &'static str,
    people: u32,
    obligations: &'static [&'static str],
    stops: &'static [&'static str],
}

pub(super) fn says(number: usize) -> Said {
    let plain = Said {
        id: "",
        effect: "deny",
        code: "policy_denied",
        people: 0,
        obligations: &[],
        stops: &[],
    };
    let hold = "approval_threshold_breach";
    match number {
        0 => Said { id: "m-0", ..plain },
        1 => Said {
            id: "c-1",
            effect: "hold",
            code: hold,
            people: 2,
            obligations: &["review.after"],
            ..plain
        },
        2 => Said { id: "z-2", code: "constraint_exceeded", ..plain },
        3 => Said { id: "b-3", ..plain },
        4 => Said {
            id: "k-4",
            effect: "permit",
            obligations: &["notify.owner", "log.full"],
            ..plain
        },
        5 => Said { id: "d-5", code: "capability_denied", ..plain },
        6 => Said { id: "y-6", ..plain },
        7 => Said { id: "a-7", effect: "hold", code: hold, people: 1, ..plain },
        8 => {
            let stops = &["budget.exhausted", "actor.stop_signal"];
            Said { id: "h-8", effect: "hold", code: hold, people: 1, stops, ..plain }
        }
        9 => Said { id: "x-9", ..plain },
        10 => Said { id: "e-10", effect: "hold", code: "oversight_required", people: 1, ..plain },
        11 => Said { id: "f-11", code: "risk_prohibited", ..plain },
        12 => Said { id: "g-12", effect: "permit", obligations: &["log.full"], ..plain },
        13 => Said { id: "l-13", ..plain },
        14 => Said { id: "j-14", ..plain },
        15 => Said { id: "i-15", ..plain },
        16 => Said { id: "n-16", ..plain },
        17 => Said { id: "o-17", effect: "hold", code: hold, people: 1, ..plain },
        18 => Said { id: "p-18", obligations: &["log.full"], ..plain },
        19 => Said { id: "q-19", effect: "hold", code: hold, people: 1, ..plain },
        20 => Said { id: "r-20", effect: "permit", obligations: &["notify.owner"], ..plain },
        _ => unreachable!(),
    }
}

/// Returns the list without repeated items.
pub(super) fn once(list: Vec<String>) -> Vec<String> {
    let mut kept = vec![];
    for text in list {
        if !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept
}
