//! Texts made to exhaust a parser's stack: every operation refuses them, and the service keeps
//! running.

use serde_json::{Value, json};

use super::{asking, demo, simulate::TENANT};
use crate::support::{Plain, new_policy, only};

/// Returns nested brackets that look like part of a `//` comment. For Cedar, the carriage return
/// before them ends the comment.
fn hidden(depth: usize) -> String {
    let (open, close) = ("(".repeat(depth), ")".repeat(depth));
    format!("forbid(principal, action, resource) when {{ //\r{open}true{close}\n }};")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_texts_are_refused_wherever_they_come_in() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let (_, policies) = owner.list_policies("").await;
    let refused = |(status, answer): (u16, Value), member: &str| {
        assert_eq!(status, 400, "{answer:#}");
        assert_eq!(answer["details"][0]["field"], member, "{answer:#}");
        assert!(answer["message"].as_str().unwrap().contains("nests too deep"), "{answer:#}");
    };
    // Cedar's parser could handle 25 levels, but the limit is lower. A comment must not hide them.
    for depth in [25, 400, 30_000] {
        let text = hidden(depth);
        let candidate = json!([{"cedar": text}]);
        let body = json!({"request": asking(1.0, "DE"), "candidate_policies": candidate});
        let simulated = client.simulate_decision(body).await;
        refused(simulated, "candidate_policies[0].cedar");
        let body = json!({"tenant_id": TENANT, "candidate_policies": candidate});
        let dry_run = owner.impact_policies(body).await;
        refused(dry_run, "candidate_policies[0].cedar");
        refused(owner.create_policy(new_policy("deep", &text)).await, "cedar");
        refused(
            owner
                .update_policy(
                    policies["policies"][0]["id"].as_str().unwrap(),
                    only("cedar", &text),
                )
                .await,
            "cedar",
        );
        let (status, said) = owner.validate_policy(only("cedar", &text)).await;
        assert_eq!((status, said["valid"].as_bool()), (200, Some(false)), "{said:#}");
        let problem = said["problems"][0]["problem"].as_str().unwrap();
        assert!(problem.contains("nests too deep"), "{said:#}");
    }
    let (status, answer) = client.evaluate(asking(1.0, "DE")).await;
    assert_eq!((status, answer["decision"].text()), (200, "allow"), "{answer:#}");
}
