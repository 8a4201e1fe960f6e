//! Lists of decisions: an index finds each page, and a list that times out shows how to narrow it.

use std::iter::once;

use authority_ids::{DecisionId, TenantId};
use authority_model::proto::runtime::{
    ListDecisionsRequest, decision_service_client::DecisionServiceClient,
};
use authority_runtime::decision_filter::DecisionFilter;
use authority_store::{Db, Error, Scope};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::Text,
};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use serde_json::{Value, json};
use tonic::Code;

use super::demo;
use crate::support::database::Database;
use crate::support::{Answered, Plain};

/// Creates the decisions that the load benchmark uses, in a smaller number.
const FILL: &str = include_str!("../../../benches/load/lists.sql");
const ROWS: u32 = 60_000;
const BIG: &str = "svc:tenant:load-00";
const PAGE: i64 = 101;

/// How many rows a query for one page may read without returning them, and how many blocks of 8 KiB
/// it may read.
const PASSED_OVER: u64 = 1_000;
/// A fifth of the rows of a whole month.
const MANY: f64 = 1_000.0;
const BLOCKS: u64 = 1_500;

/// For each filter: a frequent value, a rare value, and a value that no decision has.
const VALUES: [[&str; 3]; 4] = [
    ["svc:agent:load-00:bot-000", "svc:agent:load-00:rare", "svc:agent:load-00:none"],
    ["act.01", "rare.act", "none.act"],
    ["allow", "require_approval", "deny"],
    ["permission_granted", "policy_denied", "x_none"],
];

struct Explain<Q>(Q);

impl<Q: QueryFragment<Pg>> QueryFragment<Pg> for Explain<Q> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT JSON) ");
        self.0.walk_ast(out)
    }
}

impl<Q> QueryId for Explain<Q> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q> Query for Explain<Q> {
    type SqlType = Text;
}

/// Returns all combinations of filters. Each filter is unset or has a value from `VALUES`.
fn combinations() -> Vec<ListDecisionsRequest> {
    let choices = VALUES.map(|values| once(None).chain(values.map(Some)).collect::<Vec<_>>());
    let [subjects, actions, decisions, reasons] = choices;
    let mut all = Vec::new();
    for subject in &subjects {
        for action in &actions {
            for decision in &decisions {
                for reason in &reasons {
                    let [subject, action, decision, reason_code] =
                        [subject, action, decision, reason].map(|one| one.map(str::to_owned));
                    let one = ListDecisionsRequest {
                        subject,
                        action,
                        decision,
                        reason_code,
                        ..Default::default()
                    };
                    all.push(one);
                }
            }
        }
    }
    all
}

async fn filled() -> Database {
    let database = Database::fresh().await;
    let (fill, vacuum) = FILL.split_once("VACUUM").unwrap();
    database.run(&fill.replace(":rows", &ROWS.to_string())).await;
    database.run(&format!("VACUUM {vacuum}")).await;
    database
}

/// Returns the sum of the named number over all nodes of a query plan.
fn sum(plan: &Value, name: &str) -> u64 {
    let below = plan["Plans"].as_array().into_iter().flatten().map(|plan| sum(plan, name));
    let loops = plan["Actual Loops"].as_u64().unwrap_or(1);
    plan[name].as_u64().unwrap_or_default() * loops + below.sum::<u64>()
}

/// Returns whether the plan scans a table that has many rows. The partition of a month that has just
/// begun has few, and is read faster without an index.
fn scans(plan: &Value) -> bool {
    let rows = ["Actual Rows", "Rows Removed by Filter"].map(|name| plan[name].as_f64());
    let has_rows = rows.into_iter().flatten().any(|rows| rows > MANY);
    let below = plan["Plans"].as_array().into_iter().flatten();
    (plan["Node Type"] == "Seq Scan" && has_rows) || below.into_iter().any(scans)
}

#[track_caller]
fn assert_frugal(plan: &Value, about: &str) {
    assert!(!scans(plan), "{about}: {plan:#}");
    let passed_over = sum(plan, "Rows Removed by Filter");
    let blocks = ["Shared Hit Blocks", "Shared Read Blocks"]
        .iter()
        .map(|name| plan[name].as_u64().unwrap_or_default())
        .sum::<u64>();
    assert!(passed_over <= PASSED_OVER, "{about}: {passed_over} rows passed over: {plan:#}");
    assert!(blocks <= BLOCKS, "{about}: {blocks} blocks: {plan:#}");
}

async fn check(db: &mut Db, filter: &DecisionFilter, before: Option<&str>) {
    for query in filter.newest(before, PAGE) {
        let about = format!("{filter:?} before {before:?}");
        let plan: String = Explain(query).get_result(db).await.unwrap();
        let plan: Value = serde_json::from_str(&plan).unwrap();
        assert_frugal(&plan[0]["Plan"], &about);
    }
}

/// An index serves every combination of filters. The query reads few rows that the page does not
/// show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_filter_of_a_tenants_decisions_is_found_by_an_index() {
    let database = filled().await;
    let tenant = TenantId::parse(BIG).unwrap();
    let middle = "SELECT id FROM decisions ORDER BY id OFFSET 30000 LIMIT 1";
    let mut owner = database.owner().await;
    let middle: Vec<Id> = diesel::sql_query(middle).load(&mut owner).await.unwrap();
    let middle = middle[0].id.clone();
    let (of_tenant, of_all) = (Scope::service(), Scope::service());
    let of_tenant = Scope { tenant: Some(tenant.clone()), ..of_tenant };
    for (scope, within, named) in
        [(of_tenant, Some(tenant), None), (of_all, None, Some(BIG.to_owned()))]
    {
        let middle = middle.clone();
        let run = database.store().read_tx(&scope, async move |db: &mut Db| {
            for by in combinations() {
                let by = ListDecisionsRequest { tenant_id: named.clone(), ..by };
                let filter = DecisionFilter::new(by, within.clone()).unwrap();
                check(db, &filter, None).await;
                check(db, &filter, Some(&middle)).await;
            }
            Ok::<_, Error>(())
        });
        run.await.unwrap();
    }
}

#[derive(diesel::QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    id: String,
}

/// The pages contain the same decisions as a scan of the table, in the same order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_together_have_each_decision_once() {
    let (app, _, _) = demo().await;
    let at = DecisionId::first(
        u64::try_from(authority_process::clock::Clock::default().now().timestamp_millis()).unwrap(),
    );
    let fill = format!(
        "INSERT INTO decisions (id, tenant_id, subject, action, decision, reason_code, evaluated_at, \
             record, kid, signature, context, context_salt, facts, facts_salt) \
         SELECT '{at}' || lpad(to_hex(n), 52, '0'), 'svc:tenant:acme', 's' || n % 2, 'a' || n % 3, \
             (ARRAY['allow', 'allow_with_constraints', 'deny', 'require_approval'])[1 + n % 4], \
             (ARRAY['permission_granted', 'permission_granted', 'policy_denied', 'x_own'])[1 + n % 4], \
             now(), '{{}}', 'k', '', '{{}}', '', '{{}}', '' FROM generate_series(1, 120) AS n"
    );
    app.database.run(&fill).await;
    let auditor = app.person("svc:tenant:acme", "auditor", "eve@example.org");
    for (query, wanted) in [
        ("", "true"),
        ("subject=s1", "n % 2 = 1"),
        ("action=a2&decision=allow", "n % 3 = 2 AND n % 4 < 2"),
        ("decision=allow_with_constraints", "n % 4 = 1"),
        ("reason_code=permission_granted", "n % 4 < 2"),
        ("reason_code=permission_granted&decision=deny", "false"),
        ("reason_code=x_own&subject=s1&action=a0", "n % 4 = 3 AND n % 3 = 0"),
        ("reason_code=policy_denied&decision=require_approval", "false"),
    ] {
        let wanted = format!(
            "SELECT '{at}' || lpad(to_hex(n), 52, '0') AS id FROM generate_series(1, 120) AS n \
             WHERE {wanted} ORDER BY 1 DESC"
        );
        let mut owner = app.database.owner().await;
        let wanted: Vec<Id> = diesel::sql_query(wanted).load(&mut owner).await.unwrap();
        let wanted: Vec<String> = wanted.into_iter().map(|row| row.id).collect();
        let mut found: Vec<String> = Vec::new();
        let mut token = String::new();
        loop {
            let page = auditor
                .list_decisions(&format!("limit=7&{query}&page_token={token}"))
                .await
                .assert_status(200);
            let shown = page["decisions"].as_array().unwrap().iter();
            found.extend(shown.map(|one| one["decision_id"].as_str().unwrap().to_owned()));
            match page["next_page_token"].as_str() {
                Some(next) => next.clone_into(&mut token),
                None => break,
            }
        }
        assert_eq!(found, wanted, "{query}");
    }
}

/// A retry would time out as well. The error therefore differs from the one for an unavailable
/// database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_does_not_end_names_the_remedy() {
    let (app, client, _) = demo().await;
    let auditor = app.person("svc:tenant:acme", "auditor", "eve@example.org");
    let mut holder = app.database.owner().await;
    holder.batch_execute("BEGIN; LOCK TABLE decisions IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let owner = app.owner();
    let (own, every, export, all) = tokio::join!(
        auditor.list_decisions("decision=deny"),
        owner.list_decisions("decision=deny&since=-1d"),
        auditor.get("/api/v1/app/decisions:export?decision=deny"),
        auditor.list_decisions(""),
    );
    for (about, (status, answer), field, remedy) in [
        ("own", &own, "since", "narrow the time by `since` and `until`"),
        (
            "every",
            &every,
            "tenant_id",
            "add `tenant_id`, or narrow the time by `since` and `until`",
        ),
        ("export", &export, "since", "narrow the time by `since` and `until`"),
    ] {
        assert_eq!(
            (*status, answer["error"].text()),
            (400, "invalid_request"),
            "{about} {answer:#}"
        );
        let problem = format!("the list took longer than 3 s: {remedy}");
        assert_eq!(answer["details"], json!([{"field": field, "problem": problem}]), "{about}");
        assert_eq!(answer["message"], problem, "{about}");
    }
    // The query for all decisions has no filter to narrow: the error reports a slow database.
    assert_eq!(all.0, 503, "{:#}", all.1);
    let mut grpc = DecisionServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let by = ListDecisionsRequest { action: Some("a".to_owned()), ..Default::default() };
    let mut call = tonic::Request::new(by);
    let bearer = format!("Bearer {}", auditor.token).parse().unwrap();
    call.metadata_mut().insert("authorization", bearer);
    let refused = grpc.list_decisions(call).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(auditor.list_decisions("decision=deny").await.0, 200);
    drop(client);
}
