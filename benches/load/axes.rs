//! The axes of `script/bench --curves`. The function of an axis returns when the curve is measured
//! and the servers have stopped.

use authority_store::{
    Address,
    embedded::{Embedded, Options},
};
use diesel_async::SimpleAsyncConnection;

use crate::{
    Fault,
    arguments::Arguments,
    call::{Call, Shape},
    curves::Curve,
    history, lists,
    meter::{Meter, to_float},
    owner::Owner,
    product::{self, Started},
    row::Report,
    server::Folder,
    table::thousands,
    wire::{Message, Value},
};

/// The procedures that multiply records.
const COPIES: &str = include_str!("curves.sql");
const SHAPE: Shape = Shape::new(16, 16);

/// The number of agents in the curve of calling agents. Each has a delegation.
const AGENTS: u32 = 100_000;
const CALLING: [u32; 3] = [1, 1000, AGENTS];
const DELEGATIONS: [(&str, u32); 3] =
    [("delegations-1", 0), ("delegations-1000", 1000), ("delegations-1000000", 1_000_000)];
const HELD: [u32; 4] = [1, 10, 100, 1000];
const TENANTS: u32 = 1000;
const CALLING_TENANTS: [u32; 3] = [1, 16, 256];
/// The policies of a tenant besides its first, and the action to which they apply.
const POLICIES: [(u32, &str); 4] =
    [(0, "payment"), (19, "payment"), (199, "payment"), (199, "other")];
const STATEMENTS: [u32; 3] = [1, 20, 200];
/// Bytes of texts in a context.
const CONTEXT: [usize; 4] = [150, 4000, 16_000, 64_000];
/// Bytes of a text in a context.
const TEXT: usize = 500;

/// The number of agents that make calls, of [`AGENTS`] agents with delegations.
pub(crate) async fn agents(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let started = filled("agents", &format!("CALL pg_temp.agents({AGENTS})"), folder).await?;
    let mut curve = Curve::new("agents that make calls, of 100,000", SHAPE);
    for count in CALLING {
        let calls = (1..=count).map(|number| started.evaluate(&bot(number)));
        curve.add(thousands(count.into()), calls.collect(), started.server.meter());
    }
    curve.measure(arguments, report).await
}

/// Delegations of other agents. Each agent has one.
pub(crate) async fn delegations(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let mut curve = Curve::new("delegations of a tenant, of which the calls use one", SHAPE);
    let mut servers = Vec::new();
    for (name, count) in DELEGATIONS {
        let started = filled(name, &format!("CALL pg_temp.agents({count})"), folder).await?;
        let calls = vec![started.evaluate(product::SUBJECT)];
        curve.add(thousands(count.max(1).into()), calls, started.server.meter());
        servers.push(started);
    }
    curve.measure(arguments, report).await
}

/// Delegations of the agent that makes the calls, all of them for the action.
pub(crate) async fn held(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let mut sql = vec![format!("CALL pg_temp.agents({})", HELD.len())];
    sql.extend((1..).zip(HELD).map(|(number, count)| {
        format!("CALL pg_temp.delegations('{}', {})", bot(number), count - 1)
    }));
    let started = filled("held", &sql.join(";"), folder).await?;
    let mut curve = Curve::new("delegations of one agent for one action", SHAPE);
    for (number, count) in (1..).zip(HELD) {
        let calls = vec![started.evaluate(&bot(number))];
        curve.add(thousands(count.into()), calls, started.server.meter());
    }
    curve.measure(arguments, report).await
}

/// The number of calling tenants, in a service with a thousand tenants. Each connection belongs to one
/// tenant.
pub(crate) async fn tenants(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let made = format!("CALL pg_temp.tenants('tenant-', {TENANTS})");
    let started = filled("tenants", &made, folder).await?;
    let owner = Owner::new(started.address, folder, "tenants")?;
    let mut curve = Curve::new("tenants that make calls, of 1,000", Shape::new(256, 1));
    for count in CALLING_TENANTS {
        let mut calls = Vec::new();
        for number in 1..=count {
            calls.push(call_of(&format!("tenant-{number}"), &owner).await?);
        }
        curve.add(thousands(count.into()), calls, started.server.meter());
    }
    curve.measure(arguments, report).await
}

/// Policies of a tenant: all of them apply to the request, or only one.
pub(crate) async fn policies(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let mut sql = vec![format!("CALL pg_temp.tenants('policies-', {})", POLICIES.len())];
    sql.extend((1_u32..).zip(POLICIES).map(|(number, (count, action))| {
        format!("CALL pg_temp.policies('policies-{number}', {count}, '{action}')")
    }));
    let names = POLICIES.map(|(count, action)| match action {
        "payment" => (count + 1).to_string(),
        _ => format!("{}, 1 of them for the action", count + 1),
    });
    each_tenant(
        "policies",
        "policies for the action",
        &sql.join(";"),
        Vec::from(names),
        arguments,
        folder,
        report,
    )
    .await
}

/// Statements of a policy that applies to the request.
pub(crate) async fn statements(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let mut sql = vec![format!("CALL pg_temp.tenants('statements-', {})", STATEMENTS.len())];
    sql.extend(
        (1_u32..).zip(STATEMENTS).map(|(number, count)| {
            format!("CALL pg_temp.statements('statements-{number}', {count})")
        }),
    );
    let names = STATEMENTS.map(|count| count.to_string());
    each_tenant(
        "statements",
        "statements of a policy",
        &sql.join(";"),
        Vec::from(names),
        arguments,
        folder,
        report,
    )
    .await
}

/// Measures a curve with a tenant for each point.
async fn each_tenant(
    name: &'static str,
    title: &'static str,
    sql: &str,
    points: Vec<String>,
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let started = filled(name, sql, folder).await?;
    let owner = Owner::new(started.address, folder, name)?;
    let mut curve = Curve::new(title, SHAPE);
    for (number, point) in (1_u32..).zip(points) {
        let call = call_of(&format!("{name}-{number}"), &owner).await?;
        curve.add(point, vec![call], started.server.meter());
    }
    curve.measure(arguments, report).await
}

/// Bytes of a request's context. Policies read none of the added texts.
pub(crate) async fn context(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let started = product::start("context", "strict", folder).await?;
    let mut curve = Curve::new("context", SHAPE);
    for bytes in CONTEXT {
        let context = with_texts(bytes);
        let size = context.clone().done().len();
        let key = Some(started.key.as_str());
        let call = product::evaluate_for(started.address, key, product::SUBJECT, &context);
        curve.add(
            format!("{}.{} kB", size / 1000, size % 1000 / 100),
            vec![call],
            started.server.meter(),
        );
    }
    curve.measure(arguments, report).await
}

/// Stored decisions, see lists.sql.
pub(crate) async fn stored(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let mut curve = Curve::new("stored decisions", SHAPE);
    let mut servers = Vec::new();
    for (name, count) in
        [("stored-none", 0), ("stored-few", 1_000_000), ("stored-many", arguments.decisions)]
    {
        let started = product::start(name, "strict", folder).await?;
        let database = database(name, folder).await?;
        if count > 0 {
            lists::fill(&database, count).await?;
        }
        database.stop().await?;
        let calls = vec![started.evaluate(product::SUBJECT)];
        curve.add(thousands(to_float(count)), calls, started.server.meter());
        servers.push(started);
    }
    curve.measure(arguments, report).await
}

/// Nodes that get calls. All three run, on one database.
pub(crate) async fn nodes(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let first = product::start("node-1", "strict", folder).await?;
    let database = database("node-1", folder).await?;
    let second = product::start_node("node-2", "node-1", &database, folder).await?;
    let third = product::start_node("node-3", "node-1", &database, folder).await?;
    let addresses = [first.address, second.1, third.1];
    let meters = [first.server.meter(), second.0.meter(), third.0.meter()];
    let mut curve = Curve::new("nodes that get calls, of three on one database", SHAPE);
    for count in 1..=addresses.len() {
        let calls = addresses[..count].iter().map(|&at| product::evaluate(at, Some(&first.key)));
        let processes = meters[..count].iter().flat_map(|meter| meter.processes.clone());
        let meter = Meter { processes: processes.collect() };
        curve.add(count.to_string(), calls.collect(), meter);
    }
    let measured = curve.measure(arguments, report).await;
    // The first node started the database and must be the last to stop.
    drop((second, third));
    database.stop().await?;
    measured
}

impl Started {
    fn evaluate(&self, subject: &str) -> Call {
        product::evaluate_for(self.address, Some(&self.key), subject, &product::context())
    }
}

fn bot(number: u32) -> String {
    format!("svc:agent:acme:bot-{number}")
}

/// Returns a call of a copy of the demonstration tenant.
async fn call_of(slug: &str, owner: &Owner) -> Result<Call, Fault> {
    let key = history::key(slug, owner).await?;
    let agent = format!("svc:agent:{slug}:invoice-bot");
    Ok(product::evaluate_for(owner.address, Some(&key), &agent, &product::context()))
}

fn with_texts(bytes: usize) -> Message {
    let text = "x".repeat(TEXT.min(bytes));
    (0..bytes.div_ceil(TEXT)).fold(product::context(), |context, number| {
        context.entry(1, &format!("text_{number}"), Value::Text(&text))
    })
}

/// Starts a server on a database in which these statements have run.
pub(crate) async fn filled(
    name: &'static str,
    sql: &str,
    folder: &Folder,
) -> Result<Started, Fault> {
    let started = product::start(name, "strict", folder).await?;
    let database = database(name, folder).await?;
    let mut db = Address::parse(&database.owner_url())?.connect().await?;
    db.batch_execute(&format!("{COPIES}; {sql}")).await?;
    db.batch_execute("VACUUM (ANALYZE)").await?;
    drop(db);
    // After this process has left the database, the service is its last user and stops it. The new
    // service then starts the database as its own child.
    database.stop().await?;
    drop(started);
    product::start(name, "strict", folder).await
}

/// Joins the database that a server started.
pub(crate) async fn database(name: &str, folder: &Folder) -> Result<Embedded, Fault> {
    let data_dir = folder.path().join(name);
    Ok(Embedded::start(Options { data_dir, ..Options::default() }).await?)
}
