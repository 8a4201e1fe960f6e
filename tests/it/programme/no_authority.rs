//! A link grants no authority: decisions, lists and roles do not depend on links.

use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use serde_json::{Value, json};

use super::World;
use crate::{
    fuzz::routes::{pool, routes},
    support::{Members, TENANT, asking, only},
};

/// The operations with responses that show links.
const OWN: [&str; 2] = ["/api/v1/app/consultants", "/api/v1/app/consultant-tenant-links"];
/// Usage changes up to a minute after a decision, whether or not there is a link.
const COUNTED_LATER: &str = "/api/v1/app/usage";
const EMAIL: &str = "ada@advice.example";

/// Returns the response of every GET of the tenant's API and the gateway, for each caller.
async fn readings(world: &World) -> Vec<(String, String, u16, Value)> {
    let mut all = Vec::new();
    for route in routes(&pool()) {
        let own = OWN.iter().any(|path| route.path.starts_with(path));
        let tenants = route.path.starts_with("/api/v1/app/") || route.path.starts_with("/v1/");
        let plain = route.variables().is_empty() && !route.path.contains(':');
        let directory = route.path.contains("directory");
        let other = own || directory || route.path == COUNTED_LATER;
        if route.verb != "GET" || other || !tenants || !plain {
            continue;
        }
        for role in ["consultant", "viewer", "approver", "admin"] {
            let person = world.app.person(TENANT, role, EMAIL);
            let (status, mut body) = person.get(&route.path).await;
            steady(&mut body);
            all.push((route.path.clone(), role.to_owned(), status, body));
        }
    }
    all
}

/// Removes fields that differ from call to call.
fn steady(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| name != "last_used_at" && name != "request_id");
            members.values_mut().for_each(steady);
        }
        Value::Array(items) => items.iter_mut().for_each(steady),
        _ => {}
    }
}

/// Returns the decisions and reasons of four requests: an allowed one, a held one, a denied one,
/// and one with an unknown subject.
async fn decisions(world: &World, key: &str) -> Vec<(Value, Value)> {
    let runtime = world.app.client(key);
    let mut all = Vec::new();
    let as_consultant = asking(10.0, "DE").with("subject", "svc:agent:acme:ada");
    let asked = [asking(1200.0, "DE"), asking(75_000.0, "DE"), asking(10.0, "US"), as_consultant];
    for asked in asked {
        let (_, decided) = runtime.evaluate(asked).await;
        all.push((decided["decision"].clone(), decided["reason_code"].clone()));
    }
    assert!(all.iter().all(|(decision, _)| decision.is_string()), "{all:?}");
    all
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

async fn changes(world: &World) -> i64 {
    let mut db = world.app.database.owner().await;
    db.batch_execute("SELECT set_config('role', authority_role('system'), false)").await.unwrap();
    let counted = "SELECT count(*) FROM authority_changes";
    let count: Count = diesel::sql_query(counted).get_result(&mut db).await.unwrap();
    count.count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_link_changes_a_decision_a_list_or_a_role() {
    let world = World::start().await;
    world.app.demo().await;
    let key = world.app.api_key(TENANT, &["runtime:write", "runtime:read"]).await;
    let ada = world.certified("ada").await;
    let decided = decisions(&world, &key).await;
    // The lists are read after the last decision, because they also show decisions.
    let before = (decided, readings(&world).await, changes(&world).await);
    for (scope, status) in [("attest", "active"), ("operate", "invited"), ("view_only", "active")] {
        let body =
            json!({"consultant_id": ada, "tenant_id": TENANT, "scope": scope, "status": status});
        let link = super::id(&world.make("/consultant-tenant-links", body).await);
        assert_eq!(readings(&world).await, before.1, "{scope}");
        assert_eq!(changes(&world).await, before.2, "{scope}");
        let reason = only("reason", "r");
        assert_eq!(
            world.post(&format!("/consultant-tenant-links/{link}/revoke"), reason).await.0,
            200
        );
    }
    let body =
        json!({"consultant_id": ada, "tenant_id": TENANT, "scope": "operate", "status": "active"});
    world.make("/consultant-tenant-links", body).await;
    assert_eq!(decisions(&world, &key).await, before.0);
    // The consultant has no token from the tenant's provider, and therefore no access to the
    // tenant.
    let claims = json!({"sub": "ada", "email": EMAIL, "public_metadata": {"role": "admin"}});
    let stranger = world.app.client(&world.app.token(&claims));
    for path in ["/api/v1/app/approvals", "/api/v1/app/decisions", OWN[0]] {
        assert_eq!(stranger.get(path).await.0, 403, "{path}");
    }
}
