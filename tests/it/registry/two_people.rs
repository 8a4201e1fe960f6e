//! Transitions that need two people. The same rule as for approvals decides whether two callers are
//! one person.

use serde_json::{Value, json};

use super::rest::{Answer, App, id};
use crate::support::{Members, new_principal, nothing, only};

/// A caller: `owner` or a tenant's id, the name or address, and the subject.
#[derive(Clone, Copy)]
struct Who<'a> {
    caller: &'a str,
    name: &'a str,
    subject: &'a str,
}

struct World {
    app: App,
    tenant: String,
    machine: String,
    /// The number of records so far. Each case uses a new one.
    records: std::cell::Cell<usize>,
}

impl World {
    async fn start() -> Self {
        let app = App::start().await;
        let tenant = app.tenant("acme").await;
        let machine = machine(&app, only("tenant_id", &tenant)).await;
        Self { app, tenant, machine, records: std::cell::Cell::default() }
    }

    /// Returns the id of a record that has had no transition.
    fn record(&self) -> String {
        self.records.set(self.records.get() + 1);
        format!("order-{}", self.records.get())
    }

    async fn asks(&self, who: Who<'_>, record: &str) -> Answer {
        asks(&self.app, who, &self.machine, record).await
    }

    fn member<'a>(&'a self, name: &'a str, subject: &'a str) -> Who<'a> {
        Who { caller: &self.tenant, name, subject }
    }

    async fn principal(&self, more: Value) -> String {
        let body = new_principal("human", "One").with("tenant_id", &self.tenant).and(&more);
        id(&self.app.make("/principals", body).await)
    }
}

async fn machine(app: &App, more: Value) -> String {
    let body = json!({
        "entity_class": "order", "states": ["open", "closed"],
        "transitions": [{"trigger": "close", "from": ["open"], "to": "closed", "approvals": 2}],
    })
    .and(&more);
    id(&app.make("/state-machines", body).await)
}

async fn asks(app: &App, who: Who<'_>, machine: &str, record: &str) -> Answer {
    let headers = [("x-actor", who.name), ("x-subject", who.subject)];
    let path = if who.caller == "owner" { "/state-transitions" } else { "/app/state-transitions" };
    let body = json!({"machine_id": machine, "entity_id": record, "trigger": "close"});
    app.call_as(who.caller, "POST", path, body, &headers).await
}

const BOB: (&str, &str) = ("bob@example.com", "s-bob");

#[tokio::test(flavor = "multi_thread")]
async fn whom_the_rule_of_approvals_calls_one_person_is_not_two() {
    let world = World::start().await;
    world.principal(json!({"external_subject": "s-a", "email": "b@example.com"})).await;
    // These principals have the same address, in different letter case, and different subjects.
    world.principal(json!({"external_subject": "s-c", "email": "c@example.com"})).await;
    world.principal(json!({"external_subject": "s-d", "email": "C@example.com"})).await;
    let own = |name, subject| world.member(name, subject);
    let owner = |name, subject| Who { caller: "owner", name, subject };
    for (one, other) in [
        (own("ann@example.com", "s-1"), own("ann@example.com ", "s-2")),
        (own("änn@example.com", "s-1"), own("Änn@example.com", "s-2")),
        (own("a@example.com", "s-a"), own("b@example.com", "s-b")),
        (own("x@example.com", "s-c"), own("y@example.com", "s-d")),
        // The same person, as the installation's owner and as a user of the tenant.
        (owner("a@example.com", "s-a"), owner("b@example.com", "s-b")),
        (owner("a@example.com", "s-a"), own("b@example.com", "s-b")),
        (own("same-name", "same-name"), own("same-name", "same-name")),
    ] {
        for [first, second] in [[one, other], [other, one]] {
            let record = world.record();
            for who in [first, second, first] {
                let waits = world.asks(who, &record).await.is(412);
                assert_eq!(waits.body["error"], "second_approver_missing");
            }
            let done = world.asks(own(BOB.0, BOB.1), &record).await.is(201);
            assert_eq!(done.body["state_event"]["first_actor"], first.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_person_who_is_no_longer_active_does_not_count() {
    let world = World::start().await;
    let (bob, cid) = (world.member(BOB.0, BOB.1), world.member("cid@example.com", "s-cid"));
    for (name, subject, named, ending) in [
        ("a@example.com", "s-a", only("email", "A@example.com"), only("state", "suspended")),
        ("b@example.com", "s-b", only("external_subject", "s-b"), only("state", "revoked")),
        ("c@example.com", "s-c", only("email", "c@example.com"), Value::Null),
    ] {
        let (ann, principal) = (world.member(name, subject), world.principal(named).await);
        let record = world.record();
        world.asks(ann, &record).await.is(412);
        let path = format!("/principals/{principal}");
        if ending.is_null() {
            world.app.call("DELETE", &path, Value::Null).await.is(200);
        } else {
            world.app.call("PATCH", &path, ending).await.is(200);
        }
        // The ended person no longer counts. The second person becomes the first.
        world.asks(bob, &record).await.is(412);
        world.asks(bob, &record).await.is(412);
        let event = world.asks(cid, &record).await.is(201).body["state_event"].clone();
        assert_eq!((&event["first_actor"], &event["actor"]), (&json!(BOB.0), &json!(cid.name)));
        // Now the ended person is the second, acting as the owner. No other check requires that an
        // owner is active in the tenant.
        let record = world.record();
        world.asks(bob, &record).await.is(412);
        let as_owner = Who { caller: "owner", ..ann };
        let refused = world.asks(as_owner, &record).await.is(409);
        assert_eq!(refused.body["error"], "approver_not_eligible", "{name}");
        world.asks(cid, &record).await.is(201);
    }
}

/// A state machine of the installation has no tenant. Principals of all tenants are considered to
/// decide whether two callers are one person.
#[tokio::test(flavor = "multi_thread")]
async fn two_owners_who_are_one_person_do_not_move_a_record_of_the_installation() {
    let world = World::start().await;
    let installed = machine(&world.app, nothing()).await;
    world.principal(json!({"external_subject": "s-a", "email": "b@example.com"})).await;
    let owner = |name, subject| Who { caller: "owner", name, subject };
    let (one, other) = (owner("a@example.com", "s-a"), owner("b@example.com", "s-b"));
    for (record, [first, second]) in [("r-1", [one, other]), ("r-2", [other, one])] {
        asks(&world.app, first, &installed, record).await.is(412);
        asks(&world.app, second, &installed, record).await.is(412);
        asks(&world.app, owner(BOB.0, BOB.1), &installed, record).await.is(201);
    }
    let (one, other) = (owner("ann@example.com", "s-1"), owner("ANN@example.com ", "s-2"));
    asks(&world.app, one, &installed, "r-3").await.is(412);
    asks(&world.app, other, &installed, "r-3").await.is(412);
}
