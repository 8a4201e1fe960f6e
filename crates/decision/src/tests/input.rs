//! Tests declared input: by the tenant, by the tools' schemas, and by the types that policies rely
//! on.

use serde_json::{Value, json};

use super::{
    super::{CompiledPolicy, JoinedTerms, PolicyReference},
    *,
};
use crate::{
    authority::{
        case::Case,
        choose::{self, FailedCheck, INPUT},
        trace_step::Outcome,
    },
    policy::validation::{Agreement, ContextSchema, typed},
    request::input_schema::{InputAt, InputReference, InputSchema, MOST_SCHEMAS},
};

/// Returns a tool for the world's action with a schema. The schema's text serves as its digest.
pub(super) fn with_schema(id: &str, schema: &Value, at: InputAt) -> (Tool, Value) {
    let input = InputReference { sha256: schema.to_string(), at };
    (Tool { input: Some(input), ..tool(id) }, schema.clone())
}

fn of_context(id: &str, schema: &Value) -> (Tool, Value) {
    with_schema(id, schema, InputAt::Context)
}

impl World {
    /// Gathers tools as the graph does. `named` is the request's tool.
    pub(super) fn with_tools(tools: &[(Tool, Value)], named: Option<&str>) -> Self {
        let mut world = Self::sound();
        world.draft.tool_id = named.map(Into::into);
        let found = tools.iter().find(|(tool, _)| Some(tool.id.as_str()) == named);
        world.gathered.tool = found.map(|(tool, _)| tool.clone().into());
        if named.is_none() {
            let all = JoinedTerms::all(tools.iter().map(|(tool, _)| tool));
            world.gathered.joined_terms = all.map(Arc::new);
        }
        for (tool, schema) in tools {
            world.gathered.schemas.extend(
                tool.input.iter().map(|input| {
                    Arc::new(InputSchema::new(input.sha256.clone(), schema.to_string()))
                }),
            );
        }
        let each = tools.iter().map(|(tool, schema)| {
            let at = tool.input.as_ref().map_or(InputAt::Context, |input| input.at);
            Agreement::of(&typed(schema, at))
        });
        world.gathered.input_types = each.reduce(Agreement::joined).map(|all| all.members().into());
        world
    }

    pub(super) fn declare(&mut self, declared: Value) {
        let tenant = Arc::make_mut(self.gathered.tenant.as_mut().unwrap());
        tenant.context_schema = Some(ContextSchema::stored(declared).into());
    }

    pub(super) fn asked(mut self, context: &Value) -> Verdict {
        self.draft.context = context.as_object().cloned().unwrap();
        self.decide()
    }
}

fn region() -> Value {
    json!({"type": "object", "required": ["region"], "properties": {"region": {"type": "string", "enum": ["EU", "US"]}}})
}

#[test]
fn the_index_of_the_input_check_is_its_place_in_the_table() {
    let mut world = World::with_tools(&[of_context("tool-1", &region())], Some("tool-1"));
    world.draft.context = json!({"region": "XX"}).as_object().cloned().unwrap();
    let (request, facts) = (Request::new(world.draft.clone()).unwrap(), world.facts());
    let refusal = choose::choose(&Case::new(&request, &facts, now())).refusal;
    assert_eq!(refusal, Some(FailedCheck { row: INPUT, reason: Reason::ContextInvalid }));
}

#[test]
fn a_named_tools_schema_must_hold() {
    let tools = [of_context("tool-1", &region())];
    let asked =
        |context: Value| World::with_tools(&tools, Some("tool-1")).asked(&context).reason_code;
    assert_eq!(asked(json!({"region": "EU"})), Reason::PermissionGranted);
    assert_eq!(
        asked(json!({"region": "EU", "amount": 700, "other": 1})),
        Reason::PermissionGranted
    );
    for bad in [
        json!(7),
        json!(["EU"]),
        json!("eu"),
        json!("XX"),
        json!(null),
        json!({"region": "EU"}),
        json!(true),
    ] {
        assert_eq!(asked(json!({"region": bad})), Reason::ContextInvalid, "{bad}");
    }
    assert_eq!(asked(json!({})), Reason::ContextInvalid);
    assert_eq!(asked(json!({"Region": "EU"})), Reason::ContextInvalid);
}

#[test]
fn a_tool_that_is_not_named_must_hold_all_the_same() {
    let other = json!({"properties": {"note": {"maxLength": 3}}});
    let tools = [
        of_context("tool-1", &region()),
        of_context("tool-2", &other),
        (tool("tool-3"), json!({})),
    ];
    let asked = |named: Option<&str>, context: Value| {
        World::with_tools(&tools, named).asked(&context).reason_code
    };
    let both = json!({"region": "EU", "note": "abc"});
    assert_eq!(asked(None, both.clone()), Reason::PermissionGranted);
    assert_eq!(asked(None, json!({"note": "abc"})), Reason::ContextInvalid);
    assert_eq!(asked(None, json!({"region": "EU", "note": "abcd"})), Reason::ContextInvalid);
    assert_eq!(
        asked(Some("tool-1"), json!({"region": "EU", "note": "abcd"})),
        Reason::PermissionGranted
    );
    assert_eq!(asked(Some("tool-2"), json!({"note": "abc"})), Reason::PermissionGranted);
    assert_eq!(asked(Some("tool-3"), json!({})), Reason::PermissionGranted);
}

/// A tool without declarations doesn't bypass the types that policies rely on.
#[test]
fn types_that_policies_rely_on_hold_whichever_tool_is_named() {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string"}, "lines": {"type": "array",
        "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}}});
    let tools = [of_context("tool-1", &schema), (tool("tool-2"), json!({}))];
    for named in [Some("tool-1"), Some("tool-2"), None] {
        let asked = |context: Value| World::with_tools(&tools, named).asked(&context).reason_code;
        assert_eq!(
            asked(json!({"region": "any", "lines": [{"n": 1.0}]})),
            Reason::PermissionGranted
        );
        assert_eq!(asked(json!({})), Reason::PermissionGranted);
        for bad in [
            json!({"region": 7}),
            json!({"region": ["EU"]}),
            json!({"lines": [{"n": "1"}]}),
            json!({"lines": [null]}),
        ] {
            assert_eq!(asked(bad.clone()), Reason::ContextInvalid, "{named:?} {bad}");
        }
    }
    // A type that the tools do not agree on, or a field that one tool lacks, applies only to
    // requests that name the tool.
    let other = json!({"type": "object", "properties": {"region": {"type": "integer"}}});
    let tools = [of_context("tool-1", &schema), of_context("tool-2", &other)];
    let asked = |named: Option<&str>| {
        World::with_tools(&tools, named).asked(&json!({"region": 7})).reason_code
    };
    assert_eq!(asked(Some("tool-2")), Reason::PermissionGranted);
    assert_eq!(asked(Some("tool-1")), Reason::ContextInvalid);
    assert_eq!(asked(None), Reason::ContextInvalid);
}

#[test]
fn a_tenants_own_declaration_holds_whichever_tool_is_named() {
    let declared = json!({"*": {"region": "integer", "rate": "decimal"},
        "payment.*": {"region": {"type": "string", "required": true}, "payee": {"name": {"type": "string", "required": true}}}});
    let code = |context: Value| {
        let mut world = World::sound();
        world.declare(declared.clone());
        world.asked(&context).reason_code
    };
    assert_eq!(
        code(json!({"region": "EU", "rate": 0.5, "payee": {"name": "x", "more": 1}})),
        Reason::PermissionGranted
    );
    for bad in [
        json!({}),
        json!({"region": 7}),
        json!({"region": null}),
        json!({"region": "EU", "rate": "0.5"}),
        json!({"region": "EU", "rate": 0.123_45}),
        json!({"region": "EU", "payee": {}}),
        json!({"region": "EU", "payee": {"name": null}}),
        json!({"region": "EU", "payee": "x"}),
    ] {
        assert_eq!(code(bad.clone()), Reason::ContextInvalid, "{bad}");
    }
    // If the declaration can't be read, no context is valid.
    let mut world = World::sound();
    world.declare(json!({"payment.*": {"region": "text"}}));
    assert_eq!(world.asked(&json!({"region": "EU"})).reason_code, Reason::ContextInvalid);
}

#[test]
fn authority_by_a_tool_narrows_to_its_schema() {
    let strict = of_context("tool-1", &json!({"required": ["region"]}));
    let free = (tool("tool-2"), json!({}));
    let mut world = World::with_tools(&[strict.clone(), free.clone()], None);
    world.draft.delegation_id = None;
    world.draft.resource_id = None;
    world.draft.project_id = None;
    world.gathered.delegations.clear();
    world.uses("uses-1", Used::Tool(strict.0.into()));
    assert_eq!(world.decide().reason_code, Reason::ContextInvalid);
    world.uses("uses-2", Used::Tool(free.0.into()));
    let verdict = world.decide();
    assert_eq!(verdict.reason_code, Reason::PermissionGranted);
    assert_eq!(verdict.tool_id.as_deref(), Some("tool-2"));
}

#[test]
fn a_schema_may_be_about_the_arguments() {
    let schema = json!({"type": "object", "required": ["to"], "additionalProperties": false,
        "properties": {"to": {"type": "string"}, "amount": {"type": "string"}}});
    let tools = [with_schema("tool-1", &schema, InputAt::Arguments)];
    for named in [Some("tool-1"), None] {
        let asked = |context: Value| World::with_tools(&tools, named).asked(&context).reason_code;
        assert_eq!(
            asked(json!({"arguments": {"to": "x", "amount": "5"}, "to": 7})),
            Reason::PermissionGranted
        );
        for bad in [
            json!({"to": "x"}),
            json!({"arguments": {}}),
            json!({"arguments": null}),
            json!({"arguments": {"to": 7}}),
            json!({"arguments": {"to": "x", "currency": "EUR"}}),
            json!({"arguments": "to"}),
            json!({"arguments": [{"to": "x"}]}),
        ] {
            assert_eq!(asked(bad.clone()), Reason::ContextInvalid, "{bad}");
        }
    }
    let free = [with_schema("tool-1", &json!({"type": "object"}), InputAt::Arguments)];
    assert_eq!(
        World::with_tools(&free, None).asked(&json!({})).reason_code,
        Reason::PermissionGranted
    );
}

#[test]
fn what_is_not_known_of_a_schema_denies() {
    let tools = [of_context("tool-1", &json!({"$ref": "https://example.org/schema"}))];
    assert_eq!(World::with_tools(&tools, None).decide().reason_code, Reason::ContextInvalid);
    let tools = [of_context("tool-1", &json!({}))];
    let mut world = World::with_tools(&tools, Some("tool-1"));
    assert_eq!(world.decide().reason_code, Reason::PermissionGranted);
    let read = serde_json::to_string(&world.gathered.schemas).unwrap();
    assert_eq!(read, json!([{"sha256": "{}"}]).to_string());
    world.gathered.schemas = serde_json::from_str(&read).unwrap();
    assert_eq!(world.decide().reason_code, Reason::ContextInvalid, "only its digest was read");
    world.gathered.schemas.clear();
    assert_eq!(world.decide().reason_code, Reason::ContextInvalid);
}

#[test]
fn more_schemas_than_a_decision_takes_deny_until_a_tool_is_named() {
    let tools = |count: usize, schema: fn(usize) -> Value| -> Vec<(Tool, Value)> {
        (0..count).map(|n| of_context(&format!("tool-{n}"), &schema(n))).collect()
    };
    let simple = |n: usize| json!({"properties": {"a": {"minLength": n}}});
    let most = tools(MOST_SCHEMAS, simple);
    assert_eq!(World::with_tools(&most, None).decide().reason_code, Reason::PermissionGranted);
    let more = tools(MOST_SCHEMAS + 1, simple);
    assert_eq!(World::with_tools(&more, None).decide().reason_code, Reason::ContextInvalid);
    assert_eq!(
        World::with_tools(&more, Some("tool-1")).decide().reason_code,
        Reason::PermissionGranted
    );
    // Each schema can be applied to the largest context, but not all of them together.
    let costly = tools(60, |n| json!({"properties": {"a": {"pattern": format!("[ab]{{40}}{n}")}}}));
    let large = json!({"a": "a".repeat(200_000)});
    let text = |n: usize| json!({"a": format!("{}{n}", "a".repeat(40))});
    assert_eq!(
        World::with_tools(&costly, Some("tool-7")).asked(&text(7)).reason_code,
        Reason::PermissionGranted
    );
    let mut world = World::with_tools(&costly, None);
    world.draft.explain = true;
    let verdict = world.asked(&large);
    assert_eq!(verdict.reason_code, Reason::ContextInvalid);
    let told = format!("{:?}", verdict.trace);
    assert!(told.contains("may take") && told.contains("name the tool"), "{told}");
}

#[test]
fn the_trace_names_pointer_and_rule_and_never_the_value() {
    let other = json!({"required": ["other"]});
    let tools = [of_context("tool-1", &region()), of_context("tool-2", &other)];
    let mut world = World::with_tools(&tools, None);
    world.draft.explain = true;
    world.draft.context.insert("region".to_owned(), json!("secret"));
    let verdict = world.decide();
    let trace = verdict.trace.unwrap();
    assert!(!format!("{trace:?}").contains("secret"));
    let steps: Vec<_> = trace[0].steps.iter().filter(|step| step.kind == "input").collect();
    let told = |id: &str| steps.iter().find(|step| step.id == id).map(|step| step.detail.as_str());
    let starts = |id: &str, text: &str| told(id).is_some_and(|told| told.starts_with(text));
    assert!(starts("tool-1", "`/region` breaks the rule `enum`"), "{steps:?}");
    assert!(starts("tool-2", "`/other` breaks the rule `required`"), "{steps:?}");
    assert!(steps.iter().all(|step| step.detail.contains("name the tool in `tool_id`")));
    assert!(steps.iter().all(|step| step.outcome == Outcome::Refuse));
    let authority = trace[0].steps.iter().find(|step| step.kind == "delegation").unwrap();
    assert!(authority.detail.contains("`/region`"), "{authority:?}");
    let mut world = World::with_tools(&tools, Some("tool-1"));
    world.draft.explain = true;
    let trace = world.decide().trace.unwrap();
    let step = trace[0].steps.iter().find(|step| step.kind == "input").unwrap();
    assert!(!step.detail.contains("name the tool"), "{step:?}");
}

/// The check comes after the tool's requirements and before the purpose.
#[test]
fn the_row_has_its_place() {
    let tools = |requires: &[&str]| {
        let (mut tool, schema) = of_context("tool-1", &region());
        tool.requires = requires.iter().map(|name| (*name).to_owned()).collect();
        [(tool, schema)]
    };
    let mut world = World::with_tools(&tools(&["note"]), Some("tool-1"));
    world.gathered.purpose = None;
    assert_eq!(world.decide().reason_code, Reason::ContextIncomplete);
    let mut world = World::with_tools(&tools(&[]), Some("tool-1"));
    world.gathered.purpose = None;
    assert_eq!(world.decide().reason_code, Reason::ContextInvalid);
    let mut world = World::with_tools(&tools(&[]), Some("tool-1"));
    world.gathered.policies = vec![forbid("true")];
    assert_eq!(world.decide().reason_code, Reason::ContextInvalid);
}

pub(super) fn forbid(condition: &str) -> Arc<CompiledPolicy> {
    let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
    let reference = PolicyReference {
        id: "policy-1".into(),
        version: 1,
        sha256: String::new(),
        applies_to: Vec::new(),
        effective: Window::default(),
    };
    CompiledPolicy::compile(reference, &text).unwrap().into()
}

/// A whole number counts as whole in any notation: policies compare it as such.
#[test]
fn a_whole_number_is_a_long_in_policies() {
    let schema = json!({"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}});
    let tools = [of_context("tool-1", &schema)];
    for (count, reason) in [
        (json!(5), Reason::PolicyDenied),
        (json!(5.0), Reason::PolicyDenied),
        (json!(3.0), Reason::PermissionGranted),
        (json!(5.5), Reason::ContextInvalid),
    ] {
        let mut world = World::with_tools(&tools, Some("tool-1"));
        world.gathered.policies = vec![forbid("context.input.count > 4")];
        assert_eq!(world.asked(&json!({"count": count})).reason_code, reason, "{count}");
    }
}

/// The input is checked once for all authorities with the same terms.
#[test]
fn many_authorities_cost_one_check() {
    let schema = json!({"properties": {"a": {"items": {"pattern": "[ab]{40}c"}}}});
    let tools = [of_context("tool-1", &schema)];
    let context = json!({"a": [format!("{}c", "a".repeat(120_000)), "x"]});
    let timed = |authorities: usize| {
        let mut world = World::with_tools(&tools, None);
        world.draft.delegation_id = None;
        let chain = world.gathered.delegations[0].clone();
        for number in 1..authorities {
            let mut other = chain.clone();
            Arc::make_mut(&mut other.0[0]).id = format!("del-x{number}").into();
            world.gathered.delegations.push(other);
        }
        world.draft.context = context.as_object().cloned().unwrap();
        let (request, facts) = (Request::new(world.draft.clone()).unwrap(), world.facts());
        let start = std::time::Instant::now();
        assert_eq!(decide(&request, &facts, now()).reason_code, Reason::ContextInvalid);
        start.elapsed()
    };
    timed(1);
    let (one, many) = (timed(1), timed(64));
    assert!(
        many < one * 16 + std::time::Duration::from_millis(50),
        "one authority took {one:?}, many {many:?}"
    );
}

#[test]
fn the_remedy_names_a_member_that_is_missing() {
    let schema = json!({"type": "object", "required": ["reference"], "properties": {"reference": {"type": "string"}}});
    let world = World::with_tools(&[of_context("tool-1", &schema)], Some("tool-1"));
    let request = Request::new(world.draft.clone()).unwrap();
    let found =
        crate::verdict::remedy::smallest(&request, &world.facts(), now(), &|_| None, &|| true);
    let changes = found.unwrap().changes;
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0].member.as_deref(), Some("context.reference"));
}
