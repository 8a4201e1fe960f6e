//! Each type of tightening, tested with each operation over REST and gRPC, and with a stream.

use authority_process::clock::Clock;
use chrono::Datelike;
use serde_json::{Value, json};

use super::{
    Lines,
    doors::{Grpc, over_rest},
    world::{Agent, World},
};
use crate::support::{Members, new_policy, only};

/// A change of authority that denies or holds an agent's request, and the expected reason.
struct Tightening {
    name: &'static str,
    /// Whether the request names its tool.
    names_tool: bool,
    change: (&'static str, String, Value),
    reason: &'static str,
}

const DENY: &str = "forbid(principal, action, resource);";
/// The requests support no obligation.
const OBLIGE: &str = "@obligation(\"mask.pii\") permit(principal, action, resource);";

#[allow(clippy::too_many_lines, reason = "a table")]
fn tightening(agent: &Agent, world: &World, place: usize) -> Option<Tightening> {
    let elsewhere = &world.elsewhere;
    let tool = |body: Value| ("PATCH", format!("tools/{}", agent.tool), body);
    let purpose = |verb, body| (verb, format!("purposes/{}", agent.purpose), body);
    let policy = |cedar: &str| {
        let target = format!("action:{}", agent.action());
        let body = new_policy("own", cedar).with("applies_to", json!([target]));
        ("POST", "policies".to_owned(), body)
    };
    let hold = format!("@decision(\"require_approval\") {DENY}");
    let another = json!({"tenant_id": super::world::TENANT, "name": "another",
        "function_signature": "f()", "actions": [agent.action()], "requires": ["invoice"]});
    let far = "mon tue wed thu fri sat sun".split(' ');
    let today = Clock::default().now().weekday().num_days_from_monday();
    let day = far.cycle().nth(usize::try_from(today + 3).unwrap()).unwrap();
    let hours =
        json!({"hours": {"utc_offset": "+00:00", "days": [day], "from": "00:00", "to": "24:00"}});
    let total = json!({"max_total_amount": {"amount": "5", "window_seconds": 86_400}});
    let schema = json!({"type": "object", "required": ["invoice"]});
    let (workspaces, purposes) =
        (json!({"workspace_ids": [elsewhere]}), only("purposes", ["elsewhere"]));
    let amount = only("max_amount", "5");
    let rows = [
        ("narrowed in amount", true, agent.narrowed(amount), "constraint_exceeded"),
        (
            "narrowed in place",
            true,
            agent.narrowed(only("jurisdictions", ["FR"])),
            "jurisdiction_unsupported",
        ),
        (
            "grant deleted",
            true,
            ("DELETE", format!("relationships/granted-access-to/{}", agent.grant), Value::Null),
            "resource_access_missing",
        ),
        (
            "resource moved",
            true,
            ("PATCH", format!("resources/{}", agent.resource), only("workspace_id", elsewhere)),
            "resource_access_missing",
        ),
        (
            "tool deprecated",
            true,
            ("DELETE", format!("tools/{}", agent.tool), Value::Null),
            "tool_mismatch",
        ),
        ("tool given other actions", true, tool(only("actions", ["other.do"])), "tool_mismatch"),
        (
            "tool prohibited",
            true,
            tool(json!({"action_risk_classification": {"risk_tier": "prohibited"}})),
            "risk_prohibited",
        ),
        ("tool requires more", true, tool(only("requires", ["invoice"])), "context_incomplete"),
        (
            "tool needs more access",
            true,
            tool(only("access_level", "admin")),
            "resource_access_missing",
        ),
        (
            "purpose changed",
            true,
            purpose("PATCH", only("allowed_actions", ["other.*"])),
            "purpose_not_admitted",
        ),
        ("purpose deleted", true, purpose("DELETE", Value::Null), "purpose_not_admitted"),
        ("policy that forbids", true, policy(DENY), "policy_denied"),
        ("policy that holds", true, policy(&hold), "approval_threshold_breach"),
        ("policy with a new obligation", true, policy(OBLIGE), "obligation_unsupported"),
        // The documentation does not list these changes.
        ("tool that is added", false, ("POST", "tools".to_owned(), another), "context_incomplete"),
        (
            "pinned tool given the action",
            false,
            ("PATCH", format!("tools/{}", world.pinned), json!({"actions": [agent.action()]})),
            "tool_definition_changed",
        ),
        (
            "tool that needs people",
            true,
            tool(json!({"action_risk_classification": {"required_oversight_mode": "two_person"}})),
            "oversight_required",
        ),
        ("tool with a schema", true, tool(only("input_schema", &schema)), "context_invalid"),
        ("tool moved", true, tool(only("workspace_id", elsewhere)), "tool_mismatch"),
        ("narrowed in hours", true, agent.narrowed(hours), "constraint_exceeded"),
        (
            "narrowed in risk",
            true,
            agent.narrowed(only("max_risk_tier", "minimal")),
            "risk_exceeds_delegation",
        ),
        ("narrowed in total", true, agent.narrowed(total), "constraint_exceeded"),
        ("narrowed in workspaces", true, agent.narrowed(workspaces), "constraint_exceeded"),
        ("narrowed in purposes", true, agent.narrowed(purposes), "purpose_out_of_scope"),
        (
            "tenant requires declarations",
            true,
            ("PATCH", "tenants/acme".to_owned(), only("require_declaration", true)),
            "declaration_required",
        ),
    ];
    let (name, names_tool, change, reason) = rows.into_iter().nth(place)?;
    Some(Tightening { name, names_tool, change, reason })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_operation_repeats_an_allow_that_would_not_be_given_now_and_its_stream_ends() {
    let world = Box::pin(World::new()).await;
    let mut grpc = Grpc::new(&world.client).await;
    let mut number = 0;
    loop {
        let agent = world.agent(number).await;
        let Some(row) = tightening(&agent, &world, number) else { break };
        let (name, key) = (row.name, format!("rep-{number}"));
        let ask = agent.asking(row.names_tool);
        let first = over_rest(&world.client, &ask, &key).await;
        assert!(first.iter().all(Result::is_ok), "{name}: {first:?}");
        let again = grpc.answers(&ask, &key).await;
        assert_eq!(again, first, "{name}: not repeated although authority is unchanged");
        let (mut lines, _) = Lines::stops(&world.client, first[0].as_ref().unwrap()).await;

        world.does(row.change).await;
        // docs/reference/mcp.md, "Decisions"
        let condition = match row.reason {
            "tool_definition_changed" => "capability.quarantined",
            _ => "authority.changed",
        };
        let fresh = over_rest(&world.client, &ask, &format!("fresh-{number}")).await;
        for answer in fresh {
            assert_eq!(answer.unwrap_err().1, row.reason, "{name}: a new request");
        }
        for repeats in [over_rest(&world.client, &ask, &key).await, grpc.answers(&ask, &key).await]
        {
            for (operation, repeat) in repeats.into_iter().enumerate() {
                let (code, message) =
                    repeat.expect_err(&format!("{name}: repeated by {operation}"));
                assert_eq!(code, "decision_stopped", "{name}, {operation}: {message}");
                let told = [condition, row.reason].iter().all(|word| message.contains(word));
                assert!(told, "{name}, {operation}: {message}");
            }
        }
        let event = lines.last().await;
        let told = (&event["kind"], &event["stop_condition"], &event["reason_code"]);
        let wanted = (&json!("stopped"), &json!(condition), &json!(row.reason));
        assert_eq!(told, wanted, "{name}: {event:#}");
        number += 1;
    }
    assert!(number > 20, "{number} kinds of tightening were tried");
}
