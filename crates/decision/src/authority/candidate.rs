//! The authorities that may cover the action, in the order in which they are tried.

use authority_ids::{DelegationRef, EntityRef};
use chrono::{DateTime, Utc};

use super::{
    case::Case,
    used::{AuthorityKind, AuthorityUsed},
};
use crate::{
    facts::{
        bounds::Bounds,
        hours::Hours,
        records::{ActsIn, Chain, Constraints, Delegation, Used, Uses},
        terms::{Declared, Terms},
    },
    pattern::{Pattern, Specificity, best_cover},
};

/// A source of authority.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Delegation(&'a Chain),
    Uses(&'a Uses),
    ActsIn(&'a ActsIn),
    /// A delegation was named and cannot be resolved.
    Unresolved,
    /// No authority covers the action.
    Nothing,
}

/// A possible authority, checked against all its own bounds.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) source: Source<'a>,
    /// The terms that apply: of the tool that the request names, or else of the authority's tool,
    /// or else of all tools that perform the action. A request without a tool does not avoid any
    /// terms.
    pub(crate) terms: Terms<'a>,
    /// The joint declaration of the request, tools and model.
    pub(crate) declared: Declared,
}

impl<'a> Candidate<'a> {
    fn new(case: &Case<'a>, source: Source<'a>) -> Self {
        let (mut terms, mut model) = (case.terms(), case.model_tier());
        if let Source::Uses(uses) = source {
            match &uses.used {
                Used::Tool(used) if case.request.tool_id.is_none() => terms = Terms::Of(used),
                Used::Model(used) => model = model.max(used.risk_tier),
                _ => {}
            }
        }
        let declared = Declared::of(case.request, model, terms);
        Self { source, terms, declared }
    }

    /// Returns the candidate for a missing authority.
    pub(crate) fn nothing(case: &Case<'a>) -> Self {
        Self::new(case, Source::Nothing)
    }

    /// Returns the candidate for an authority of this kind that no longer exists.
    pub(crate) fn absent(case: &Case<'a>, kind: AuthorityKind) -> Self {
        match kind {
            AuthorityKind::Delegation => Self::new(case, Source::Unresolved),
            AuthorityKind::Uses | AuthorityKind::ActsIn => Self::nothing(case),
        }
    }

    /// Returns the delegation's chain, from the delegation up. Empty for other authorities.
    pub(crate) fn links(&self) -> &'a [std::sync::Arc<Delegation>] {
        match self.source {
            Source::Delegation(chain) => &chain.0,
            _ => &[],
        }
    }

    pub(crate) fn delegation_id(&self) -> Option<&'a DelegationRef> {
        self.links().first().map(|link| &link.id)
    }

    /// Returns the bounds that must all hold, each with its holder: the line of a delegation, or the
    /// id of a `uses` row.
    ///
    /// Returns `None` if a holder's bounds cannot be read.
    pub(crate) fn bounds(&self) -> Option<Vec<(&'a str, &'a Bounds)>> {
        match self.source {
            Source::Delegation(chain) => {
                Some(chain.0.iter().map(|link| (link.line(), &link.bounds)).collect())
            }
            Source::Uses(uses) => match &uses.row.constraints {
                Constraints::Bounds(bounds) => Some(vec![(&uses.row.id, bounds)]),
                Constraints::Malformed(_) => None,
            },
            Source::ActsIn(_) | Source::Unresolved | Source::Nothing => Some(Vec::new()),
        }
    }

    /// Returns the hours among the bounds.
    pub(crate) fn hours(&self) -> impl Iterator<Item = &'a Hours> {
        let row = match self.source {
            Source::Uses(uses) => match &uses.row.constraints {
                Constraints::Bounds(bounds) => bounds.hours.as_ref(),
                Constraints::Malformed(_) => None,
            },
            _ => None,
        };
        let links = self.links().iter().filter_map(|link| link.bounds.hours.as_ref());
        links.chain(row)
    }

    /// Returns the id of the record that has this holder's bounds.
    pub(crate) fn record_of<'h>(&self, holder: &'h str) -> &'h str
    where
        'a: 'h,
    {
        let link = self.links().iter().find(|link| link.line() == holder);
        link.map_or(holder, |link| link.id.as_str())
    }

    /// Returns the earliest end of the authority's windows.
    pub(crate) fn until(&self) -> Option<DateTime<Utc>> {
        match self.source {
            Source::Delegation(chain) => chain.0.iter().filter_map(|l| l.window.until).min(),
            Source::Uses(uses) => uses.row.window.until,
            Source::ActsIn(row) => row.window.until,
            Source::Unresolved | Source::Nothing => None,
        }
    }

    /// Returns the tool that a permit under this authority is limited to, if any.
    pub(crate) fn tool_id(&self) -> Option<EntityRef> {
        self.terms.tool().map(|tool| tool.id.clone())
    }

    pub(crate) fn used(&self) -> Option<AuthorityUsed> {
        let chain = self.links().iter().map(|link| link.id.clone()).collect();
        let (kind, id) = self.name()?;
        Some(AuthorityUsed { kind, id: id.to_owned(), chain })
    }

    pub(crate) fn name(&self) -> Option<(AuthorityKind, &'a str)> {
        match self.source {
            Source::Delegation(_) => Some((AuthorityKind::Delegation, self.delegation_id()?)),
            Source::Uses(uses) => Some((AuthorityKind::Uses, &uses.row.id)),
            Source::ActsIn(row) => Some((AuthorityKind::ActsIn, &row.id)),
            Source::Unresolved | Source::Nothing => None,
        }
    }
}

/// Returns the candidates in the order in which they are tried. Never empty.
///
/// A named delegation is the only candidate. Otherwise, the most specific pattern comes first, then
/// the lowest id.
pub(crate) fn candidates<'a>(case: &Case<'a>) -> Vec<Candidate<'a>> {
    if let Some(id) = &case.request.delegation_id {
        let id = case.successor_of(id);
        let named = |chain: &&Chain| chain.0.first().is_some_and(|link| link.id == id);
        let found = case.gathered.delegations.iter().find(named);
        return vec![Candidate::new(case, found.map_or(Source::Unresolved, Source::Delegation))];
    }
    let mut found: Vec<(Specificity, Candidate<'a>)> = Vec::new();
    let mut add = |cover: Option<Specificity>, source| {
        found.extend(cover.map(|cover| (cover, Candidate::new(case, source))));
    };
    for chain in &case.gathered.delegations {
        let own = chain.0.first().filter(|link| link.delegate_id == case.request.subject);
        let cover = own.and_then(|link| best_cover(&link.actions, &case.request.action));
        add(cover, Source::Delegation(chain));
    }
    for uses in case.gathered.uses.iter().filter(|uses| uses.row.allowed) {
        add(uses_cover(case, uses), Source::Uses(uses));
    }
    for row in &case.gathered.acts_in {
        let named = case.request.workspace_id.as_ref() == Some(&row.workspace_id);
        let actions = row.allowed_actions.as_deref().filter(|_| named);
        let cover = actions.and_then(|actions| best_cover(actions, &case.request.action));
        add(cover, Source::ActsIn(row));
    }
    found.sort_by(|(cover, one), (other_cover, other)| {
        let name = |candidate: &Candidate<'a>| candidate.name().map(|(kind, id)| (id, kind));
        cover.cmp(other_cover).then_with(|| name(one).cmp(&name(other)))
    });
    if found.is_empty() {
        return vec![Candidate::new(case, Source::Nothing)];
    }
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Returns how specifically a row covers the action.
///
/// A row on a tool covers that tool only: it does not cover a request that names another tool.
fn uses_cover(case: &Case<'_>, uses: &Uses) -> Option<Specificity> {
    let action = &case.request.action;
    let over = |live: bool, actions: &[Pattern]| best_cover(actions, action).filter(|_| live);
    match &uses.used {
        Used::Action(pattern) => best_cover(std::slice::from_ref(pattern), action),
        Used::Tool(tool) => {
            let other = case.request.tool_id.as_ref().is_some_and(|named| *named != tool.id);
            over(tool.live && !other, &tool.actions)
        }
        Used::Model(model) => over(model.live, &model.actions),
        Used::ExternalApp(app) => over(app.live, &app.actions),
        Used::Resource(_) | Used::Missing(_) => None,
    }
}

/// Whether this row with allowed = 0 denies the request.
pub(crate) fn is_denied_by(case: &Case<'_>, uses: &Uses) -> bool {
    if !uses.row.window.holds(case.at) {
        return false;
    }
    let request = case.request;
    let covers = |actions: &[Pattern]| best_cover(actions, &request.action).is_some();
    match &uses.used {
        Used::Action(pattern) => pattern.covers(&request.action),
        Used::Tool(tool) => match &request.tool_id {
            Some(named) => *named == tool.id,
            None => covers(&tool.actions),
        },
        Used::Model(model) => covers(&model.actions),
        Used::ExternalApp(app) => covers(&app.actions),
        Used::Resource(id) => request.resource_id.as_ref() == Some(id),
        // The denied target is unknown. The row therefore denies every request.
        Used::Missing(_) => true,
    }
}
