//! The terms that bind a request, by tool: the named tool, the authority's tool, or all tools that
//! perform the action.

use super::{
    access::{access_for, own_access_level},
    gate::Effective,
    joined_terms::JoinedTerms,
    records::{Definition, Tool},
};
use crate::{
    levels::{AccessLevel, EffectClass, Reversibility, RiskTier},
    reason::Reason,
    request::draft::Draft,
};

/// The tools that set the terms of a request.
#[derive(Clone, Copy)]
pub(crate) enum Terms<'a> {
    /// No tool performs the action, or the named tool does not resolve.
    Nobody,
    /// A single tool. The permit is for this tool only.
    Of(&'a Tool),
    /// No tool is named. These are the strictest terms of all tools that perform the action.
    Joined(&'a JoinedTerms),
}

impl<'a> Terms<'a> {
    /// Returns the tool that the permit is limited to, if any.
    pub(crate) fn tool(self) -> Option<&'a Tool> {
        match self {
            Self::Of(tool) => Some(tool),
            Self::Joined(_) | Self::Nobody => None,
        }
    }

    /// Whether both are the terms of the same tools.
    pub(crate) fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Nobody, Self::Nobody) => true,
            (Self::Of(one), Self::Of(other)) => std::ptr::eq(one, other),
            (Self::Joined(one), Self::Joined(other)) => std::ptr::eq(one, other),
            _ => false,
        }
    }

    /// Returns the access level that is needed.
    ///
    /// Only a tool's record can require less than execute. The caller's declaration can raise the
    /// level but never lower it.
    pub(crate) fn access_needed(self, request: &Draft) -> AccessLevel {
        let by_tools = match self {
            Self::Nobody => AccessLevel::Execute,
            Self::Of(tool) => own_access_level(tool),
            Self::Joined(terms) => terms.access_level.strictest.unwrap_or(AccessLevel::Owner),
        };
        let declared = request.action_declaration.and_then(|own| own.effect_class);
        declared.map_or(by_tools, |class| by_tools.max(access_for(Some(class))))
    }

    /// Whether the request has all required fields.
    pub(crate) fn are_met_by(self, request: &Draft) -> bool {
        let present = |member: &str| is_present(request, member);
        match self {
            Self::Nobody => true,
            Self::Of(tool) => tool.requires.iter().all(|member| present(member)),
            Self::Joined(terms) => terms.requires.keys().all(|member| present(member)),
        }
    }

    /// Checks the definitions of tools of MCP servers: each must be pinned, and the request must have
    /// its digest.
    pub(crate) fn are_pinned_for(self, request: &Draft) -> Result<(), Reason> {
        let is_known = |digest: &String| request.tool_definition_digest.as_ref() == Some(digest);
        let (is_unpinned, is_changed) = match self {
            Self::Nobody => (false, false),
            Self::Of(tool) => match &tool.definition {
                None => (false, false),
                Some(Definition::Unpinned) => (true, false),
                Some(Definition::Pinned(digest)) => (false, !is_known(digest)),
            },
            Self::Joined(terms) => {
                (terms.unpinned_by.is_some(), !terms.definitions.keys().all(is_known))
            }
        };
        match (is_unpinned, is_changed) {
            (true, _) => Err(Reason::CapabilityQuarantined),
            (false, true) => Err(Reason::ToolDefinitionChanged),
            (false, false) => Ok(()),
        }
    }

    /// Returns the tools' declarations and omissions.
    fn record(self) -> Record {
        match self {
            Self::Nobody => {
                let (said, left_out) = (Effective::default(), Effective::default());
                Record { said, left_out, silent: true }
            }
            Self::Of(tool) => {
                let mut said = Effective::default();
                said.take(tool.action_declaration, tool.action_risk_classification);
                let silent = !said.is_declared();
                let left_out = if silent { Effective::default() } else { gaps(said) };
                Record { said, left_out, silent }
            }
            Self::Joined(terms) => {
                let said = Effective {
                    effect_class: terms.effect_class.strictest,
                    reversibility: terms.reversibility.strictest,
                    rollback_available: terms.rollback_available.strictest,
                    risk_tier: terms.risk_tier.strictest,
                    required: terms.required_oversight_mode.strictest,
                };
                let all = gaps(Effective::default());
                let left_out = Effective {
                    effect_class: all.effect_class.filter(|_| terms.effect_class.is_omitted()),
                    reversibility: all.reversibility.filter(|_| terms.reversibility.is_omitted()),
                    rollback_available: all
                        .rollback_available
                        .filter(|_| terms.rollback_available.is_omitted()),
                    risk_tier: all.risk_tier.filter(|_| terms.risk_tier.is_omitted()),
                    required: None,
                };
                Record { said, left_out, silent: terms.undeclared_by.is_some() }
            }
        }
    }
}

/// Whether the request has a field that a tool requires.
pub(crate) fn is_present(request: &Draft, member: &str) -> bool {
    match member {
        "resource_id" => request.resource_id.is_some(),
        "workspace_id" => request.workspace_id.is_some(),
        other => request.context.contains_key(other),
    }
}

/// The declarations of tool records.
struct Record {
    /// The strictest declaration of any tool.
    said: Effective,
    /// The fields omitted by a tool that declares other fields, each with its worst value: an
    /// omitted field counts as the worst.
    left_out: Effective,
    /// Whether a tool lacks a declaration. Also true without any tool.
    silent: bool,
}

/// Returns the undeclared fields, each with its worst value.
fn gaps(declared: Effective) -> Effective {
    let class = declared.effect_class.is_none();
    Effective {
        effect_class: class.then_some(EffectClass::DigitalStateChange),
        reversibility: declared.reversibility.is_none().then_some(Reversibility::Irreversible),
        rollback_available: declared.rollback_available.is_none().then_some(false),
        risk_tier: declared.risk_tier.is_none().then_some(RiskTier::Limited),
        required: None,
    }
}

/// The joint declaration of the request, tools and model.
#[derive(Clone, Copy)]
pub(crate) struct Declared {
    /// The request's own declaration.
    own: Effective,
    /// The declaration of the model.
    by_model: Effective,
    /// The strictest declaration of the model and of any tool.
    by_records: Effective,
    /// The gate's input: the joint declaration, in which a field that a record omits counts as the
    /// worst value. A request can only add to it. The caller's declaration can therefore never
    /// lower the requirements of records.
    pub(crate) counted: Effective,
    /// The risk tier, if it is known for every tool.
    pub(crate) known_tier: Option<RiskTier>,
    /// Whether there is a declaration for every tool.
    pub(crate) is_declared: bool,
}

impl Declared {
    pub(crate) fn of(request: &Draft, model: Option<RiskTier>, terms: Terms<'_>) -> Self {
        let mut own = Effective::default();
        own.take(request.action_declaration, request.action_risk_classification);
        let Record { said: by_tools, left_out, silent } = terms.record();
        let by_model = Effective { risk_tier: model, ..Effective::default() };
        let mut by_records = by_model;
        by_records.join(by_tools);
        let mut said = own;
        said.join(by_records);
        let mut counted = said;
        // The model's record replaces a tier that a tool's record omits.
        counted.join(Effective {
            risk_tier: left_out.risk_tier.filter(|_| model.is_none()),
            ..left_out
        });
        if silent && model.is_some() {
            counted.join(gaps(by_model));
        } else if silent && own.is_declared() {
            counted.join(gaps(own));
        }
        let in_all = own.risk_tier.or(model);
        let unknown = in_all.is_none() && (left_out.risk_tier.is_some() || silent);
        let known_tier = said.risk_tier.filter(|_| !unknown);
        let is_declared = own.is_declared() || model.is_some() || !silent;
        Self { own, by_model, by_records, counted, known_tier, is_declared }
    }

    /// Returns the declarations that policies are evaluated on.
    ///
    /// The first is the strictest of all. If no tool is named, a declaration for each tool that
    /// performs the action follows. If the request raises any of them, all follow again without
    /// the raise: a policy may test for the value that a record declares, and declaring a riskier
    /// one must not avoid it.
    pub(crate) fn seen_by_policies(&self, terms: Terms<'_>) -> Vec<Effective> {
        let mut seen = self.without_raise(terms);
        let raised = |declared: &Effective| {
            let mut raised = *declared;
            raised.join(self.own);
            raised
        };
        let raises = |declared: &Effective| raised(declared) != *declared;
        if self.own.is_declared() && seen.iter().any(raises) {
            let count = seen.len();
            seen.extend_from_within(..);
            seen.iter_mut().take(count).for_each(|declared| *declared = raised(declared));
        }
        seen
    }

    /// Returns the declarations of records. The request only fills in the fields that they lack.
    pub(crate) fn without_raise(&self, terms: Terms<'_>) -> Vec<Effective> {
        let by_tools = match terms {
            Terms::Joined(joined) => &joined.declarations[..],
            Terms::Of(_) | Terms::Nobody => &[],
        };
        let by_records = |tool: &Effective| {
            let mut declared = self.by_model;
            declared.join(*tool);
            declared
        };
        let each = std::iter::once(self.by_records).chain(by_tools.iter().map(by_records));
        each.map(|declared| declared.or(self.own)).collect()
    }
}
