//! Measures lists of many decisions and the pages of the console.

use std::time::Instant;

use authority_store::{
    Address,
    embedded::{Embedded, Options},
};
use diesel_async::SimpleAsyncConnection;
use hdrhistogram::Histogram;
use serde_json::json;

use crate::{
    Fault,
    arguments::Arguments,
    call::{Call, Protocol},
    console::{self, DEMO},
    http1::Connection,
    meter::to_float,
    owner::Owner,
    product::{self, Started},
    row::Report,
    server::Folder,
};

/// The SQL that inserts the decisions, and their facts and usage. The database owner runs it.
const FILL: &str = include_str!("lists.sql");
const FACTS: &str = include_str!("facts.sql");
/// Approval requests that are pending while the console's pages are read.
const HELD: u32 = 25;
/// Decisions that a policy denied. They fill a page, which names the policy of each.
const DENIED: u32 = 50;
const NOTHING_SMALL: &str = "forbid (principal, action, resource) \
     when { context has amount && context.amount.lessThan(decimal(\"1000.0\")) };";
/// The tenant with half of the decisions, and its slug.
const TENANT: &str = "svc:tenant:load-00";
const SLUG: &str = "load-00";
/// The number of calls of each list. The first call may read the disk and is not measured.
const CALLS: usize = 3;

/// For each filter: frequent values, a rare value, and a value without decisions.
const FILTERS: [(&str, &[&str]); 4] = [
    (
        "subject",
        &[
            "svc:agent:load-00:bot-000",
            "svc:agent:load-00:bot-101",
            "svc:agent:load-00:rare",
            "svc:agent:load-00:none",
        ],
    ),
    ("action", &["act.01", "act.20", "rare.act", "none.act"]),
    ("decision", &["allow", "allow_with_constraints", "require_approval", "deny"]),
    (
        "reason_code",
        &["permission_granted", "constraint_exceeded", "policy_denied", "x_rare", "x_none"],
    ),
];

pub(crate) async fn rows(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let Started { server: _server, address, key } =
        product::start("lists", "strict", folder).await?;
    let owner = Owner::new(address, folder, "lists")?;
    owner.post("/api/v1/tenants", &json!({"name": SLUG, "slug": SLUG})).await?;
    // Connects to the database that the server started.
    let data_dir = folder.path().join("lists");
    let database = Embedded::start(Options { data_dir, ..Options::default() }).await?;
    fill(&database, arguments.decisions).await?;
    run_and_vacuum(&database, FACTS).await?;
    let auditor = product::member(folder, "lists", SLUG, "auditor")?;
    let filters = combinations();
    for (name, path, credential) in [
        ("the owner", format!("/api/v1/decisions?tenant_id={TENANT}"), owner.credential()),
        ("an auditor", "/api/v1/app/decisions?limit=100".to_owned(), auditor.as_str()),
    ] {
        let took = lists(address, &path, credential, &filters).await?;
        let millis = |quantile| to_float(took.value_at_quantile(quantile)) / 1000.0;
        report.notes.push(format!(
            "{} lists of {} decisions, read by {name} (second and third call): {:.1} ms (p50), {:.1} ms (p99), \
             {:.1} ms (worst)",
            filters.len(),
            arguments.decisions,
            millis(0.5),
            millis(0.99),
            millis(1.0),
        ));
    }
    let decided = product::decided(address, &key).await?;
    let held = product::held(address, &key, HELD).await?;
    let policy = json!({"tenant_id": DEMO, "regime": "internal", "name": "Nothing below 1000",
                        "cedar": NOTHING_SMALL});
    owner.post("/api/v1/policies", &policy).await?;
    product::small(address, &key, DENIED).await?;
    console::pages(address, TENANT, &decided, &held, report).await?;
    database.stop().await?;
    Ok(())
}

/// Creates decisions of many tenants.
pub(crate) async fn fill(database: &Embedded, decisions: u64) -> Result<(), Fault> {
    eprintln!("creating {decisions} decisions: up to two minutes and 2 GB for each million");
    run_and_vacuum(database, &FILL.replace(":rows", &decisions.to_string())).await
}

/// Runs SQL that ends with VACUUM, which Postgres runs only on its own.
async fn run_and_vacuum(database: &Embedded, sql: &str) -> Result<(), Fault> {
    let (rows, vacuum) = sql.split_once("VACUUM").ok_or("the SQL has no VACUUM")?;
    run(database, rows).await?;
    run(database, &format!("VACUUM {vacuum}")).await
}

async fn run(database: &Embedded, sql: &str) -> Result<(), Fault> {
    let mut db = Address::parse(&database.owner_url())?.connect().await?;
    Ok(db.batch_execute(sql).await?)
}

/// Returns every combination of filters and values, as the end of a query string.
fn combinations() -> Vec<String> {
    let mut all = vec![String::new()];
    for (name, values) in FILTERS {
        let with = all
            .iter()
            .flat_map(|some| values.iter().map(move |value| format!("{some}&{name}={value}")));
        let with: Vec<String> = with.collect();
        all.extend(with);
    }
    all
}

/// Returns how long each list takes, in microseconds.
async fn lists(
    address: std::net::SocketAddr,
    path: &str,
    credential: &str,
    filters: &[String],
) -> Result<Histogram<u64>, Fault> {
    let mut took = Histogram::new(3)?;
    for filter in filters {
        let path = format!("{path}{filter}");
        let call = Call {
            address,
            protocol: Protocol::Rest,
            path: path.clone().into(),
            credential: Some(credential.to_owned()),
            body: Vec::new(),
            allowed: |_| true,
            decisions: 0,
        };
        let mut connection = Connection::open(&call).await?;
        for number in 0..CALLS {
            let begun = Instant::now();
            let (status, answer) = connection.ask().await?;
            let micros = u64::try_from(begun.elapsed().as_micros())?;
            if status != 200 {
                return Err(format!("{path}: {status}: {}", String::from_utf8_lossy(answer)).into());
            }
            if number > 0 {
                took.record(micros)?;
            }
        }
    }
    Ok(took)
}
