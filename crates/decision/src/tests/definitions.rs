//! Tests that tools of MCP servers are only permitted with the definition that a person has pinned.

use super::*;
use crate::{
    JoinedTerms, PermissionStatus,
    policy::validation::{InputType, Members, typed, typed_by_mcp},
    request::input_schema::{ARGUMENTS, InputAt},
};

const PINNED: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";
const OTHER: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

fn pinned(id: &str, digest: &str) -> Tool {
    Tool { definition: Some(Definition::Pinned(digest.to_owned())), ..tool(id) }
}

fn unpinned(id: &str) -> Tool {
    Tool { definition: Some(Definition::Unpinned), ..tool(id) }
}

/// Returns the world in which these tools perform the action. The request names the first tool, or no
/// tool.
fn world(tools: &[Tool], digest: Option<&str>, is_named: bool) -> World {
    let mut world = World::sound();
    world.draft.tool_definition_digest = digest.map(str::to_owned);
    if is_named {
        world.draft.tool_id = Some(tools[0].id.clone());
        world.gathered.tool = Some(tools[0].clone().into());
    } else {
        world.draft.tool_id = None;
        world.gathered.tool = None;
        world.gathered.joined_terms = JoinedTerms::all(tools).map(Arc::new);
    }
    world
}

fn found(tools: &[Tool], digest: Option<&str>, is_named: bool) -> Reason {
    world(tools, digest, is_named).decide().reason_code
}

#[test]
fn a_definition_binds_requests_that_name_its_tool_and_requests_that_name_none() {
    use Reason::{CapabilityQuarantined, PermissionGranted, ToolDefinitionChanged};
    for is_named in [true, false] {
        for (tool, digest, reason) in [
            (tool("t"), None, PermissionGranted),
            (tool("t"), Some(OTHER), PermissionGranted),
            (pinned("t", PINNED), Some(PINNED), PermissionGranted),
            (pinned("t", PINNED), Some(OTHER), ToolDefinitionChanged),
            (pinned("t", PINNED), None, ToolDefinitionChanged),
            (unpinned("t"), Some(PINNED), CapabilityQuarantined),
            (unpinned("t"), None, CapabilityQuarantined),
        ] {
            let case = format!("{:?} {digest:?} {is_named}", tool.definition);
            assert_eq!(found(&[tool], digest, is_named), reason, "{case}");
        }
    }
}

#[test]
fn every_tool_for_the_action_binds_a_request_that_names_none() {
    let all = [tool("a"), pinned("b", PINNED), pinned("c", PINNED)];
    assert_eq!(found(&all, Some(PINNED), false), Reason::PermissionGranted);
    let two = [pinned("a", PINNED), pinned("b", OTHER)];
    for digest in [PINNED, OTHER] {
        assert_eq!(found(&two, Some(digest), false), Reason::ToolDefinitionChanged);
    }
    assert_eq!(found(&two, Some(PINNED), true), Reason::PermissionGranted);
    let one_is_unpinned = [pinned("a", PINNED), unpinned("b")];
    assert_eq!(found(&one_is_unpinned, Some(PINNED), false), Reason::CapabilityQuarantined);
    assert_eq!(found(&one_is_unpinned, Some(PINNED), true), Reason::PermissionGranted);
}

/// A grant of one tool narrows the terms to that tool. The definitions of the others still bind.
#[test]
fn a_grant_of_another_tool_does_not_avoid_an_unpinned_one() {
    let granted = |tools: &[Tool]| {
        let mut world = world(tools, None, false);
        world.draft.delegation_id = None;
        world.gathered.delegations.clear();
        world.uses("uses-1", Used::Tool(tool("plain").into()));
        world.gathered.grants.iter_mut().for_each(|grant| {
            let grant = Arc::make_mut(grant);
            (grant.grantee_id, grant.access_level) = (SUBJECT.to_owned(), AccessLevel::Owner);
        });
        world.decide().reason_code
    };
    assert_eq!(granted(&[tool("plain")]), Reason::PermissionGranted);
    assert_eq!(granted(&[tool("plain"), unpinned("t")]), Reason::CapabilityQuarantined);
    let changed = granted(&[tool("plain"), pinned("t", PINNED)]);
    assert_eq!(changed, Reason::ToolDefinitionChanged);
}

#[test]
fn a_permission_ends_when_its_tool_drifts() {
    let permitted = world(&[pinned("t", PINNED)], Some(PINNED), true);
    let used = permitted.decide().authority.unwrap();
    let stopped = |world: &World| {
        let request = Request::new(world.draft.clone()).unwrap();
        PermissionStatus::judge(&request, &used, &world.facts(), now()).stopped
    };
    assert_eq!(stopped(&permitted), None);
    let drifted = world(&[unpinned("t")], Some(PINNED), true);
    assert_eq!(stopped(&drifted), Some(Reason::CapabilityQuarantined));
    let changed = world(&[pinned("t", OTHER)], Some(PINNED), true);
    assert_eq!(stopped(&changed), Some(Reason::ToolDefinitionChanged));
}

#[test]
fn the_trace_names_the_tool() {
    for is_named in [true, false] {
        for (one, digest, part) in [
            (unpinned("t"), None, "is not pinned"),
            (pinned("t", PINNED), None, "is missing"),
            (pinned("t", PINNED), Some(OTHER), "is not the digest"),
        ] {
            let mut world = world(&[one], digest, is_named);
            world.draft.explain = true;
            let verdict = world.decide();
            let steps = verdict.trace.unwrap().into_iter().flat_map(|stage| stage.steps);
            let mut of_tool = steps.filter(|step| step.id == "t" && step.reason_code.is_some());
            let step = of_tool.next().unwrap();
            assert_eq!(step.reason_code, Some(verdict.reason_code));
            assert!(step.detail.contains(part), "{step:?}");
        }
    }
}

#[test]
fn a_tool_without_a_definition_is_written_as_before() {
    let written = serde_json::to_value(tool("t")).unwrap();
    assert!(written.get("definition").is_none(), "{written}");
    let terms = serde_json::to_value(JoinedTerms::of(&tool("t"))).unwrap();
    assert!(terms.get("definitions").is_none() && terms.get("unpinned_by").is_none(), "{terms}");
    for one in [pinned("t", PINNED), unpinned("t")] {
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Tool>(&text).unwrap(), one);
    }
}

#[test]
fn arguments_of_a_tool_with_a_definition_have_decimals() {
    let schema = json!({"type": "object", "required": ["price"], "properties": {
        "price": {"type": "number"}, "parts": {"type": "array", "items": {"type": "number"}}}});
    let Some(InputType::Record(members)) =
        typed_by_mcp(&schema).remove(ARGUMENTS).map(|arguments| arguments.kind)
    else {
        panic!("no record");
    };
    assert_eq!(members["price"].kind, InputType::Decimal);
    assert!(members["price"].required);
    assert_eq!(members["parts"].kind, InputType::Set(InputType::Decimal.into()));
    assert_eq!(typed(&schema, InputAt::Context), Members::new());
}
