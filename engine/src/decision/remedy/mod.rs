//! The smallest single change that would turn a denial into a permit or a hold.
//!
//! An explanation and nothing else: no decision looks at it. It tries one change after the other,
//! in the order of [`STEPS`], and has [`decide`] judge each; the first that helps is answered. The
//! order goes from what the asker may say otherwise to what people must give it, and then to what
//! people have forbidden and must lift:
//!
//! 1. `purpose`: another that the delegations are bound to
//! 2. `amount`: the largest that passes, by the bounds; where a rule is tighter, by halving
//! 3. `jurisdiction`: another of the authorities and the purpose
//! 4. `delegation`: another of the subject's named, or none
//! 5. `grant`: access to the resource, workspace or project, or the action itself
//! 6. `link`: a delegation or row that has expired, not begun, or was suspended or revoked
//! 7. `principal`: the subject or a delegator that is not active
//! 8. `context`: a member that the tool or a bound asks for
//! 9. `declaration`: a risk tier where none is declared, the riskiest that passes
//! 10. `stop`, `quarantine`, `denial`: a signal, a quarantine or a denying row lifted
//!
//! Where two changes are needed there is no answer. Policies and reality are never changed: what
//! they say is meant, and the trace names them.

mod granted;
mod said;

use std::{cell::Cell, collections::BTreeSet};

use chrono::{DateTime, Utc};

use super::{
    bounds::Bounds,
    decide,
    facts::{Constraints, Facts, Gathered},
    levels::{Decision, words},
    reason::Reason,
    request::{Draft, Request},
    verdict::Verdict,
};
use serde::{Deserialize, Serialize};

words! {
    /// What kind of change it is.
    Kind {
        Purpose "purpose",
        Amount "amount",
        Jurisdiction "jurisdiction",
        Delegation "delegation",
        Grant "grant",
        Link "link",
        Principal "principal",
        Context "context",
        Declaration "declaration",
        Stop "stop",
        Quarantine "quarantine",
        Denial "denial",
    }
}

/// One change, and what the decision would be with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    pub kind: Kind,
    /// The member of the request or of the record that changes.
    pub member: Option<String>,
    /// What it changes to; none: whatever it truly is, or nothing at all.
    pub value: Option<String>,
    /// The record that changes, or that the change is about.
    pub id: Option<String>,
    /// For people.
    pub sentence: String,
    pub decision: Decision,
    pub reason_code: Reason,
}

/// The facts about another request than the one that was decided, as far as they can be had: its
/// purpose or its delegation may not have been looked up.
pub type Around<'a> = dyn Fn(&Request) -> Option<Facts> + 'a;

type Step = fn(&Search<'_>) -> Option<Remedy>;

const STEPS: [Step; 12] = [
    said::purpose,
    said::amount,
    said::jurisdiction,
    said::delegation,
    granted::grant,
    granted::link,
    granted::principal,
    said::context,
    said::declaration,
    granted::stop,
    granted::quarantine,
    granted::denial,
];

/// Changes that each step tries at most. A subject with very many delegations gets an answer or
/// none, but never holds a core for long.
const MOST_TRIES: u32 = 128;

/// The first change that helps; none where the request is not denied, or no single change does.
pub fn smallest(
    request: &Request,
    facts: &Facts,
    at: DateTime<Utc>,
    around: &Around<'_>,
) -> Option<Remedy> {
    // A trace costs, and nobody reads these.
    let plain = Draft { explain: false, ..request.clone().into_draft() };
    let request = Request::new(plain).ok()?;
    let verdict = decide(&request, facts, at);
    if verdict.decision != Decision::Deny {
        return None;
    }
    let reason = verdict.reason_code;
    let search = Search { request, facts, at, around, reason, left: Cell::default() };
    STEPS.iter().find_map(|step| {
        search.left.set(MOST_TRIES);
        step(&search)
    })
}

/// One denied case.
struct Search<'a> {
    request: Request,
    facts: &'a Facts,
    at: DateTime<Utc>,
    around: &'a Around<'a>,
    /// Why it was denied.
    reason: Reason,
    left: Cell<u32>,
}

impl Search<'_> {
    /// The verdict where the asker says something else, unless it is a denial too.
    fn say(&self, change: impl FnOnce(&mut Draft)) -> Option<Verdict> {
        let mut draft = self.request.clone().into_draft();
        change(&mut draft);
        let request = Request::new(draft).ok()?;
        let same = request.keys() == self.request.keys();
        let looked_up = if same { None } else { (self.around)(&request) };
        let facts = looked_up.unwrap_or_else(|| self.facts.clone());
        // What people approved was another question.
        self.judge(&request, &Facts { approval: None, ..facts })
    }

    /// The verdict where the facts are otherwise, unless it is a denial too.
    fn find(&self, change: impl FnOnce(&mut Gathered)) -> Option<Verdict> {
        let mut gathered = Gathered::clone(&self.facts.gathered);
        change(&mut gathered);
        let facts = Facts { gathered: gathered.into(), ..self.facts.clone() };
        self.judge(&self.request, &facts)
    }

    fn judge(&self, request: &Request, facts: &Facts) -> Option<Verdict> {
        self.left.set(self.left.get().checked_sub(1)?);
        let verdict = decide(request, facts, self.at);
        (verdict.decision != Decision::Deny).then_some(verdict)
    }

    fn gathered(&self) -> &Gathered {
        &self.facts.gathered
    }

    /// Every bound that an authority of the subject has, with the id of its holder.
    fn bounds(&self) -> Vec<(&str, &Bounds)> {
        let links = self.gathered().delegations.iter().flat_map(|chain| &chain.0);
        let of_links = links.map(|link| (link.id.as_str(), &link.bounds));
        let uses = self.gathered().uses.iter().filter(|uses| uses.row.allowed);
        let of_uses = uses.filter_map(|uses| match &uses.row.constraints {
            Constraints::Bounds(bounds) => Some((uses.row.id.as_str(), bounds.as_ref())),
            Constraints::Malformed(_) => None,
        });
        of_links.chain(of_uses).collect()
    }
}

/// A change and what comes of it.
fn remedy(kind: Kind, sentence: String, verdict: &Verdict) -> Remedy {
    Remedy {
        kind,
        member: None,
        value: None,
        id: None,
        sentence,
        decision: verdict.decision,
        reason_code: verdict.reason_code,
    }
}

/// Each text once, in the order in which they come, without `but`.
fn distinct<'t>(texts: impl IntoIterator<Item = &'t String>, but: Option<&str>) -> Vec<&'t str> {
    let mut seen = BTreeSet::new();
    let texts = texts.into_iter().map(String::as_str);
    texts.filter(|text| Some(*text) != but && seen.insert(*text)).collect()
}
