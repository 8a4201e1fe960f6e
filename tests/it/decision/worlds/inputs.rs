//! The declarations of the input in random worlds.

use authority_decision::{
    input_schema::{InputAt, InputReference, InputSchema},
    validation::{Agreement, ContextSchema, typed},
};

use super::*;

/// The schemas of tools, by name. The name is used as the digest.
pub(crate) const SCHEMAS: [(&str, &str); 4] = [
    ("schema-flagged", r#"{"type": "object", "properties": {"flagged": {"type": "boolean"}}}"#),
    (
        "schema-note",
        r#"{"type": "object", "required": ["note"], "properties": {"note": {"type": "object"}}}"#,
    ),
    (
        "schema-amount",
        r#"{"properties": {"amount": {"maximum": 2000}}, "additionalProperties": false}"#,
    ),
    ("schema-nothing", "{}"),
];

pub(super) fn drawn(dice: &mut Dice<'_>) -> Option<InputReference> {
    dice.maybe(5, |dice| InputReference {
        sha256: SCHEMAS[dice.below(SCHEMAS.len())].0.to_owned(),
        at: if dice.rarely(4) { InputAt::Arguments } else { InputAt::Context },
    })
}

pub(super) fn declared(dice: &mut Dice<'_>) -> Option<Arc<ContextSchema>> {
    let all = [
        json!({"payment.*": {"flagged": "boolean"}, "*": {"note": {"text": "string"}}}),
        json!({"*": {"flagged": "integer"}, "payment.execute": {"flagged": "boolean"}}),
        json!({"report.read": {"note": {"type": {"text": "string"}, "required": true}}}),
        json!({"payment.*": {"flagged": "no type"}}),
    ];
    let at = dice.maybe(6, |dice| dice.below(all.len()))?;
    Some(ContextSchema::stored(all[at].clone()).into())
}

/// Adds the schemas and the input types of the tools to the facts, as the service's graph does.
pub(super) fn look_up(
    tools: &[Arc<Tool>],
    performs: impl Fn(&&Arc<Tool>) -> bool,
    to: &mut Gathered,
) {
    let text = |name: &str| SCHEMAS.iter().find(|(own, _)| *own == name).unwrap().1;
    let named: BTreeSet<_> =
        tools.iter().filter_map(|tool| Some(&tool.input.as_ref()?.sha256)).collect();
    let schema = |name: &String| Arc::new(InputSchema::new(name.clone(), text(name).to_owned()));
    to.schemas = named.into_iter().map(schema).collect();
    let each = tools.iter().filter(performs).map(|tool| {
        let input = tool.input.as_ref();
        let members = input.map(|own| typed(&text(&own.sha256).parse().unwrap(), own.at));
        Agreement::of(&members.unwrap_or_default())
    });
    let all = each.reduce(Agreement::joined).map(Agreement::members);
    to.input_types = all.filter(|members| !members.is_empty()).map(Arc::new);
}
