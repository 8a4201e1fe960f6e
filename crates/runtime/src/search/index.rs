//! Indexes decisions by the values of declared facts, after they were committed
//! (`decision_cursor.rs`).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use authority_api::error::ApiError;
use authority_graph::Graph;
use authority_ids::TenantId;
use authority_keys::Keys;
use authority_presentation::{RolePath, SearchedFact};
use authority_process::worker::{Next, Worker};
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store, locks};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Bool, Bytea, Integer, Nullable, Text},
};

use crate::{
    decision_cursor::{DecisionCursor, Part},
    fact_query::{COLUMNS, code, context, key},
};

const EVERY: Duration = Duration::from_secs(10);
/// The maximum number of decisions indexed in one transaction, which blocks the erasure of contexts.
const PART: i64 = 2_000;
/// The maximum number of values of a role. An agent can't choose which values are left out, because
/// the smallest codes are stored.
const MOST: usize = 32;

const CURSOR: DecisionCursor = DecisionCursor { table: "fact_cursor", until: "indexed_until" };

const LOCK: &str = "SELECT pg_try_advisory_xact_lock($1) AS locked";

const ACTIONS: &str = "SELECT DISTINCT tenant_id, action FROM decisions WHERE id >= $1 AND id < $2";

const READ: &str = "SELECT id, tenant_id, action, context FROM decisions \
     WHERE id >= $1 AND id < $2 AND context <> '' \
       AND (tenant_id, action) IN (SELECT * FROM unnest($3, $4)) ORDER BY id";

const STORE: &str = "INSERT INTO decision_facts \
         (key, tenant_id, payee, account, document, recipient, target, amount) \
     SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)";

#[derive(QueryableByName)]
struct Locked {
    #[diesel(sql_type = Bool)]
    locked: bool,
}

#[derive(QueryableByName, PartialEq, Eq, Hash)]
struct ActionRow {
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    action: String,
}

#[derive(QueryableByName)]
struct DecisionRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(embed)]
    of: ActionRow,
    #[diesel(sql_type = Bytea)]
    context: Vec<u8>,
}

/// The declared roles of the actions to index.
type Roles = HashMap<ActionRow, BTreeSet<RolePath>>;

/// Maintains the index. Nodes take turns.
#[derive(Clone)]
pub struct FactIndex {
    store: Store,
    keys: Keys,
    graph: Arc<Graph>,
}

impl FactIndex {
    pub fn new(store: Store, keys: Keys, graph: Arc<Graph>) -> Self {
        Self { store, keys, graph }
    }

    pub(crate) fn worker(self) -> Worker {
        Worker::periodic("fact_index", EVERY, move || {
            let index = self.clone();
            async move {
                let has_more = index.round().await?;
                Ok::<_, ApiError>(if has_more { Next::After(Duration::ZERO) } else { Next::Usual })
            }
        })
    }

    /// Indexes a part of the settled decisions. Returns whether there is more.
    ///
    /// # Errors
    /// The database is unavailable, or the graph is too old. No decisions were indexed.
    pub async fn round(&self) -> Result<bool, ApiError> {
        let index = self.clone();
        let round = async move |db: &mut Db| index.run(db).await;
        self.store.write_tx(&Scope::service(), round).await
    }

    async fn run(&self, db: &mut Db) -> Result<bool, ApiError> {
        let Some(part) = CURSOR.next(db, PART).await.map_err(store::Error::from)? else {
            return Ok(false);
        };
        if !part.is_empty() {
            let lock = diesel::sql_query(LOCK).bind::<BigInt, _>(locks::FACT_INDEX);
            let lock: Locked = lock.get_result(db).await.map_err(store::Error::from)?;
            // Contexts of these decisions may be erased at the moment.
            if !lock.locked {
                return Ok(false);
            }
            let actions = actions(db, &part).await.map_err(store::Error::from)?;
            let roles = self.roles(actions)?;
            self.index(db, &part, &roles).await.map_err(store::Error::from)?;
        }
        if !part.has_more {
            CURSOR.look(db).await.map_err(store::Error::from)?;
        }
        Ok(part.has_more)
    }

    /// The roles that tools declare for the actions. Actions without roles are left out.
    fn roles(&self, actions: Vec<ActionRow>) -> Result<Roles, ApiError> {
        self.graph.fresh()?;
        let mut roles = Roles::new();
        for action in actions {
            let Ok(tenant_id) = TenantId::parse(&action.tenant_id) else { continue };
            let Some(handle) = self.graph.tenant(&tenant_id)? else { continue };
            let paths = handle.read().role_paths(&action.action);
            if !paths.is_empty() {
                roles.insert(action, paths);
            }
        }
        Ok(roles)
    }

    async fn index(&self, db: &mut Db, part: &Part, roles: &Roles) -> QueryResult<()> {
        if !roles.is_empty() {
            let read: Vec<DecisionRow> = diesel::sql_query(READ)
                .bind::<Text, _>(&part.from)
                .bind::<Text, _>(&part.until)
                .bind::<Array<Text>, _>(roles.keys().map(|of| &of.tenant_id).collect::<Vec<_>>())
                .bind::<Array<Text>, _>(roles.keys().map(|of| &of.action).collect::<Vec<_>>())
                .load(db)
                .await?;
            let mut rows = FactRows::default();
            for decision in &read {
                self.add(decision, roles, &mut rows);
            }
            rows.store(db).await?;
        }
        CURSOR.advance(db, &part.until).await
    }

    /// Adds the rows of a decision.
    fn add(&self, decision: &DecisionRow, roles: &Roles, rows: &mut FactRows) {
        let (Some(paths), Some(context)) = (roles.get(&decision.of), context(&decision.context))
        else {
            return;
        };
        let tenant_id = &decision.of.tenant_id;
        let mut codes: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
        for fact in SearchedFact::of_request(paths.iter(), &context) {
            let code = code(&self.keys, tenant_id, &fact);
            codes.entry(fact.role).or_default().insert(code);
        }
        let mut columns =
            COLUMNS.map(|role| codes.remove(role).unwrap_or_default().into_iter().take(MOST));
        loop {
            let row = columns.each_mut().map(Iterator::next);
            if row.iter().all(Option::is_none) {
                return;
            }
            rows.push(key(&decision.id), tenant_id, row);
        }
    }
}

async fn actions(db: &mut Db, part: &Part) -> QueryResult<Vec<ActionRow>> {
    let actions = diesel::sql_query(ACTIONS);
    actions.bind::<Text, _>(&part.from).bind::<Text, _>(&part.until).load(db).await
}

/// Rows of `decision_facts`, by column.
#[derive(Default)]
struct FactRows {
    keys: Vec<String>,
    tenant_ids: Vec<String>,
    codes: [Vec<Option<i32>>; COLUMNS.len()],
}

impl FactRows {
    fn push(&mut self, key: &str, tenant_id: &str, codes: [Option<i32>; COLUMNS.len()]) {
        self.keys.push(key.to_owned());
        self.tenant_ids.push(tenant_id.to_owned());
        for (column, code) in self.codes.iter_mut().zip(codes) {
            column.push(code);
        }
    }

    async fn store(self, db: &mut Db) -> QueryResult<()> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let [payee, account, document, recipient, target, amount] = self.codes;
        diesel::sql_query(STORE)
            .bind::<Array<Text>, _>(self.keys)
            .bind::<Array<Text>, _>(self.tenant_ids)
            .bind::<Array<Nullable<Integer>>, _>(payee)
            .bind::<Array<Nullable<Integer>>, _>(account)
            .bind::<Array<Nullable<Integer>>, _>(document)
            .bind::<Array<Nullable<Integer>>, _>(recipient)
            .bind::<Array<Nullable<Integer>>, _>(target)
            .bind::<Array<Nullable<Integer>>, _>(amount)
            .execute(db)
            .await
            .map(drop)
    }
}
