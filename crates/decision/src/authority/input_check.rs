//! Checks a request's context against its declarations.
//!
//! The declarations come from the tenant, from the schemas of the tools that could perform the
//! action, and from the types that policies rely on. These types apply to every tool.

use serde_json::{Map, Value};

use super::{
    candidate::Candidate,
    case::Case,
    input_types::InputTypes,
    trace_step::{Outcome, TraceStep},
};
use crate::{
    facts::terms::Terms,
    reason::Reason,
    request::input_schema::{
        ARGUMENTS, InputAt, InputReference, InputSchema, MOST_SCHEMAS,
        cost::MOST_STEPS,
        json::Json,
        violation::{At, Broken, Validity, Violation},
    },
};

/// The size of a context, in bytes, with which one schema of the maximum cost uses up the whole
/// step budget of a request.
const LARGEST: u64 = 256 * 1024;
/// The maximum number of violations to explain.
const MOST_TOLD: usize = 8;

const NAME_THE_TOOL: &str = "; no tool is named, so the schemas of all tools for the action apply: name the tool in \
    `tool_id` to apply only its own";

/// Checks the input, as one row of the decision table.
pub(crate) fn is_valid(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let at = At::context(false);
    let types = InputTypes::of(case);
    let context = &case.request.context;
    types
        .hold_by_tenant(context, &at)
        .and_then(|()| types.hold_by_tools(context, &at))
        .and_then(|()| schemas_hold(case, candidate.terms, &at))
        .map_err(|_| Reason::ContextInvalid)
}

fn schemas_hold(case: &Case<'_>, terms: Terms<'_>, at: &At<'_>) -> Validity {
    match terms {
        Terms::Nobody => Ok(()),
        Terms::Of(tool) => {
            tool.input.as_ref().map_or(Ok(()), |named| schema_holds(case, named, at))
        }
        Terms::Joined(terms) => {
            are_affordable(case, terms.inputs.iter().map(|one| &one.schema), at)?;
            terms.inputs.iter().try_for_each(|one| schema_holds(case, &one.schema, at))
        }
    }
}

/// Whether the schemas of all tools can be applied to a context of this size.
fn are_affordable<'r>(
    case: &Case<'_>,
    named: impl ExactSizeIterator<Item = &'r InputReference>,
    at: &At<'_>,
) -> Validity {
    if named.len() < 2 {
        return Ok(());
    }
    if named.len() > MOST_SCHEMAS {
        return at.broken(|| format!("of at most {MOST_SCHEMAS} schemas"));
    }
    let cost: u64 = named.filter_map(|named| known(case, named)).map(InputSchema::cost).sum();
    let too_much = || cost.saturating_mul(size_of(&case.request.context)) > MOST_STEPS * LARGEST;
    if cost > MOST_STEPS && too_much() {
        return at.broken(|| "of the time that the schemas of all tools may take".to_owned());
    }
    Ok(())
}

fn schema_holds(case: &Case<'_>, named: &InputReference, at: &At<'_>) -> Validity {
    let Some(schema) = known(case, named) else {
        return at.broken(|| "of a schema that is not known".to_owned());
    };
    let context = &case.request.context;
    match named.at {
        InputAt::Context => schema.judge(Json::Object(context), at),
        InputAt::Arguments => {
            let none = Map::new();
            let own = context.get(ARGUMENTS).filter(|own| !own.is_null());
            schema.judge(own.map_or(Json::Object(&none), Json::from), &at.member(ARGUMENTS))
        }
    }
}

fn known<'a>(case: &Case<'a>, named: &InputReference) -> Option<&'a InputSchema> {
    let mut schemas = case.gathered.schemas.iter();
    schemas.find(|schema| schema.sha256() == named.sha256).map(|schema| &**schema)
}

/// Returns the approximate size of the context as JSON, in bytes.
fn size_of(context: &Map<String, Value>) -> u64 {
    fn value(one: &Value) -> u64 {
        match one {
            Value::Null | Value::Bool(_) | Value::Number(_) => 4,
            Value::String(text) => 3 + text.len() as u64,
            Value::Array(items) => 2 + items.iter().map(value).sum::<u64>(),
            Value::Object(members) => 2 + size_of(members),
        }
    }
    context.iter().map(|(name, one)| 4 + name.len() as u64 + value(one)).sum()
}

/// Returns the violations as steps of the trace, with the pointer and the rule but never the value.
pub(crate) fn steps(case: &Case<'_>, candidate: &Candidate<'_>) -> Vec<TraceStep> {
    let at = At::context(true);
    let (types, context) = (InputTypes::of(case), &case.request.context);
    let tenant_id = case.request.tenant_id.as_str();
    let mut steps = Vec::new();
    let mut tell = |id: &str, held: Validity, more: &str| {
        if let Err(Broken(Some(violation))) = held {
            steps.push(step(id, &violation, more));
        }
    };
    let by_tenant = ", which the tenant's `context_schema` declares";
    tell(tenant_id, types.hold_by_tenant(context, &at), by_tenant);
    let by_tools = ", which the tools that perform the action declare and policies rely on";
    tell(tenant_id, types.hold_by_tools(context, &at), by_tools);
    match candidate.terms {
        Terms::Nobody => {}
        Terms::Of(tool) => {
            tell(&tool.id, schemas_hold(case, candidate.terms, &at), ", by its schema");
        }
        Terms::Joined(terms) => {
            let affordable = are_affordable(case, terms.inputs.iter().map(|one| &one.schema), &at);
            let each = if affordable.is_ok() { &terms.inputs[..] } else { &[] };
            tell(tenant_id, affordable, NAME_THE_TOOL);
            let more = if each.len() > 1 { NAME_THE_TOOL } else { ", by its schema" };
            for one in each {
                tell(&one.tool_id, schema_holds(case, &one.schema, &at), more);
            }
        }
    }
    steps.truncate(MOST_TOLD);
    steps
}

fn step(id: &str, violation: &Violation, more: &str) -> TraceStep {
    let (reason, detail) = (Some(Reason::ContextInvalid), format!("{violation}{more}"));
    TraceStep::new("input", id, Outcome::Refuse, reason, detail)
}
