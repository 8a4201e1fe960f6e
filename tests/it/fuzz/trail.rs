//! A tenant's users read all of its records: every list, record and export under /api/v1/app.

use serde_json::Value;

use super::{
    access,
    ground::{Ground, fill},
    report,
    routes::{Route, pool, routes},
};
use crate::support::{TestApp, Wishes, wire::Caller};

/// The collections that users with the roles admin and auditor may list and export.
const EXPORTED: [&str; 9] = [
    "decisions",
    "policies",
    "principals",
    "purposes",
    "delegations",
    "approvals",
    "stop-signals",
    "quarantines",
    "tools",
];

#[test]
fn admins_and_auditors_read_all_of_their_tenant() {
    let all = routes(&pool());
    let opens = |path: &str, role: &str| {
        let route = all.iter().find(|route| route.verb == "GET" && route.path == path);
        route.is_some_and(|route| access(route).roles.contains(&role))
    };
    let mut failures = Vec::new();
    let of = |name: &&str| [format!("/api/v1/app/{name}"), format!("/api/v1/app/{name}:export")];
    let mut paths: Vec<String> = EXPORTED.iter().flat_map(of).collect();
    let history = "/api/v1/app/entities/{entity_id}/history";
    paths.extend([history.to_owned(), format!("{history}:export")]);
    paths.push("/api/v1/app/policies/{id}/versions".to_owned());
    for path in paths {
        for (role, may) in [("admin", true), ("auditor", true), ("viewer", false)] {
            if opens(&path, role) != may {
                failures.push(format!("{path} by {role}"));
            }
        }
    }
    // An approval needs these records: the request, the agent, the chain and the policies. The
    // approval itself contains the tool and the purpose.
    let of_an_approval = ["approvals", "principals", "delegations", "policies"];
    for name in EXPORTED {
        for role in ["approver", "legal"] {
            let may = of_an_approval.contains(&name);
            let path = format!("/api/v1/app/{name}/{{id}}");
            if opens(&path, role) != may {
                failures.push(format!("{path} by {role}"));
            }
        }
    }
    report(failures);
}

/// Returns the lines of an export.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_reads_hold_its_own_and_nothing_else() {
    let app = TestApp::wished(Wishes { push: true, ..Wishes::default() }).await;
    let owner = Caller::owner(&app);
    let all = routes(&pool());
    let admin: Vec<_> = all.iter().filter(|route| !super::is_app(route)).cloned().collect();
    let (ground, _) = Ground::lay(&owner, &admin).await;
    let auditor = app.client(&app.member_token(&ground.tenants[0], "auditor"));
    let foreign = ground.ids_of(1);
    let (mut failures, mut shown) = (Vec::new(), String::new());
    let reads = |route: &&Route| {
        let ends = !route.path.ends_with(":stream");
        ends && route.verb == "GET"
            && super::is_app(route)
            && access(route).roles.contains(&"auditor")
    };
    for route in all.iter().filter(reads) {
        if route.variables().is_empty() {
            // A search needs a text. Records of another tenant have the same prefix.
            let needs_text = route.input.get_field_by_name("q").is_some();
            let text_of = if needs_text { "?q=svc:" } else { "?" };
            let path = format!("{}{text_of}", route.path);
            let (status, text) = auditor.text("GET", &path, None).await;
            if status != 200 || foreign.iter().any(|id| text.contains(id)) {
                failures.push(format!("GET {}: {status} {text}", route.path));
            }
            shown += &text;
            if route.input.get_field_by_name("tenant_id").is_some() {
                // Another tenant and an unknown tenant get the same answer.
                let path = format!("{path}&tenant_id={}", ground.tenants[1]);
                let (status, text) = auditor.text("GET", &path, None).await;
                let nobody = path.replace(&ground.tenants[1], "svc:tenant:nobody");
                let (none, as_unknown) = auditor.text("GET", &nobody, None).await;
                let text = text.replace(&ground.tenants[1], "svc:tenant:nobody");
                let same = status == none && still(&text) == still(&as_unknown);
                let shows = foreign.iter().any(|id| text.contains(id));
                if !same || shows || ![200, 400, 404].contains(&status) {
                    failures.push(format!("GET {path}: {status} {text}, {none} {as_unknown}"));
                }
            }
            continue;
        }
        for id in &foreign {
            let path = fill(route, |_| id.clone());
            let (status, text) = auditor.text("GET", &path, None).await;
            let unknown = fill(route, |_| nobody(id));
            let (none, as_unknown) = auditor.text("GET", &unknown, None).await;
            let same = still(&text.replace(id, &nobody(id))) == still(&as_unknown);
            if (status, none) != (404, 404) || !same {
                failures.push(format!("GET {path}: {status} {text}, {none} {as_unknown}"));
            }
        }
    }
    // The export must contain the tenant's own records of each kind.
    for kind in ["policy", "principal", "purpose", "delegation", "tool", "stop_signal"] {
        let own = ground.of_kind(0, kind);
        if own.is_empty() || !own.iter().all(|id| shown.contains(id)) {
            failures.push(format!("{kind}: {own:?} not shown"));
        }
    }
    report(failures);
}

/// Returns an id of the same form that no record has.
fn nobody(id: &str) -> String {
    let (front, _) = id.split_at(id.len() - 4);
    format!("{front}0000")
}

fn still(text: &str) -> Value {
    let mut body: Value = serde_json::from_str(text).unwrap_or_default();
    body["request_id"] = Value::Null;
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_the_list_and_goes_on_from_any_line() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let runtime = app.client(&demo.api_key);
    for amount in [1.0, 2.0, 60_000.0] {
        runtime.post("/api/v1/runtime/evaluate", crate::support::asking(amount, "DE")).await;
    }
    let auditor = app.client(&app.member_token("svc:tenant:acme", "auditor"));
    for name in EXPORTED {
        // The amounts of decisions belong to their contexts.
        let query = if name == "decisions" { "?context=true" } else { "?" };
        let path = format!("/api/v1/app/{name}:export{query}");
        let (status, text) = auditor.text("GET", &path, None).await;
        assert_eq!(status, 200, "{name}: {text}");
        let exported = lines(&text);
        let (last, records) = exported.split_last().unwrap();
        assert_eq!(last["end"], true, "{name}: {text}");
        assert!(records.iter().all(|line| line["end"] == false), "{name}: {text}");
        let (_, listed) = auditor.get(&format!("/api/v1/app/{name}?limit=500")).await;
        let list = listed.as_object().unwrap().values().find(|member| member.is_array());
        let mut list = list.unwrap().as_array().unwrap().clone();
        let member = |line: &Value| {
            let record = line.as_object().unwrap().iter().find(|(name, value)| {
                value.is_object()
                    && !matches!(name.as_str(), "record" | "evidence_pack" | "context")
            });
            record.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let mut records: Vec<Value> = records.iter().map(member).collect();
        if name == "decisions" {
            // The export is in chronological order, unlike the list. tests/it/runtime/exports.rs
            // tests the rest.
            records.reverse();
            // The list has more members for people: a line of the export is for programs that verify it.
            for listed in &mut list {
                let members = listed.as_object_mut().unwrap();
                members
                    .retain(|name, _| !matches!(name.as_str(), "purpose" | "facts" | "policies"));
            }
        }
        assert_eq!(records, list, "{name}");
        // After any line, the export can continue with the next one. After the last line it has no
        // records.
        for (place, line) in exported.iter().enumerate() {
            let Some(token) = line["page_token"].as_str().filter(|token| !token.is_empty()) else {
                continue;
            };
            let path = format!("{path}&page_token={token}");
            let (status, text) = auditor.text("GET", &path, None).await;
            assert_eq!(status, 200, "{name}: {text}");
            let rest: Vec<Value> = lines(&text).iter().map(member).collect();
            let left = exported.iter().skip(place + 1).map(member);
            let left: Vec<Value> = left.chain(last["end"].as_bool().map(|_| Value::Null)).collect();
            let count = rest.len();
            assert_eq!(rest[..count - 1], left[..count - 1], "{name} {place}");
        }
        let place = if name == "decisions" { "after" } else { "page_token" };
        let bad = format!("{path}&{place}=AAAA");
        assert_eq!(auditor.get(&bad).await.0, 400, "{name}");
    }
    // Each line of the decisions export contains the signed record and the signature.
    let (_, text) = auditor.text("GET", "/api/v1/app/decisions:export?decision=deny", None).await;
    let denied = lines(&text);
    assert_eq!(denied.len(), 2, "{text}");
    assert!(denied[0]["record"]["decision_id"].is_null(), "{text}");
    assert!(denied[0]["evidence_pack"]["signature"]["value"].is_string(), "{text}");
    let history = "/api/v1/app/entities/svc:agent:acme:invoice-bot/history";
    let (_, text) = auditor.text("GET", &format!("{history}:export"), None).await;
    let (_, listed) = auditor.get(history).await;
    assert_eq!(lines(&text)[0]["version"], listed["versions"][0], "{text}");
    let missing = "/api/v1/app/entities/svc:agent:acme:none/history:export";
    assert_eq!(auditor.get(missing).await.0, 404);
}
