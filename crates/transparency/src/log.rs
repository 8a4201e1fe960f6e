//! A tenant's log in the database: locks, extends and signs it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Display,
};

use authority_ids::TenantId;
use authority_model::schema::{log_checkpoints, log_heads};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    prelude::*,
    sql_types::{Array, BigInt, Bytea, Integer, SmallInt, Text},
};
use serde_json::json;

use super::{Error, sealer::Sealer, witness::Prepared};
use authority_evidence::log::{
    note::{Checkpoint, LogKey, SignedCheckpoint, check_origin, signed},
    proof::InclusionProof,
    tree::{self, Frontier, Hash, NodeId},
};
use authority_keys::Purpose;
use authority_ledger::{
    log_nodes,
    log_origin::{epoch_of, origin},
};
use authority_store::{Db, RunQueryDsl, locks};

/// The `kind` of the first leaf of an epoch that follows another epoch.
const EPOCH_KIND: &str = "svc.log.epoch.v1";

/// The head of a log.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = log_heads, check_for_backend(diesel::pg::Pg))]
pub(super) struct LogHead {
    pub(super) epoch: i32,
    pub(super) origin: String,
    pub(super) size: i64,
    pub(super) root: Vec<u8>,
    pub(super) checkpoint: String,
}

/// Returns the newest epoch of the tenant's log.
pub(super) async fn head(db: &mut Db, tenant_id: &TenantId) -> QueryResult<Option<LogHead>> {
    let of_tenant = log_heads::table.filter(log_heads::tenant_id.eq(tenant_id.as_str()));
    let newest = of_tenant.order(log_heads::epoch.desc()).select(LogHead::as_select());
    newest.first(db).await.optional()
}

/// A log, locked by this transaction.
pub(super) struct Log<'a> {
    sealer: &'a Sealer,
    pub(super) tenant_id: &'a TenantId,
    pub(super) epoch: i32,
    pub(super) origin: String,
    frontier: Frontier,
    /// The hashes of the right edge and of the new complete subtrees.
    nodes: HashMap<NodeId, Hash>,
    /// The new subtrees of each level. Within a level, they are adjacent.
    new: BTreeMap<u8, Run>,
    /// The last known checkpoint of the previous epoch, if this transaction starts an epoch.
    follows: Option<Checkpoint>,
}

/// Adjacent subtrees of one level, stored in one row.
struct Run {
    first: u64,
    hashes: Vec<u8>,
}

/// Returns the largest checkpoint of the newest epoch.
///
/// A new epoch refers to this checkpoint. The number of the new epoch is higher than the epoch of
/// every known checkpoint.
fn latest<'a>(known: &[&'a Checkpoint], tenant_id: &TenantId) -> Option<&'a Checkpoint> {
    known.iter().copied().max_by_key(|one| (epoch_of(&one.origin, tenant_id), one.size))
}

/// Whether the log with this head continues its last known checkpoint.
pub(super) async fn continues(
    db: &mut Db,
    tenant_id: &TenantId,
    head: &LogHead,
    last: &Checkpoint,
) -> QueryResult<bool> {
    if last.origin != head.origin {
        // The checkpoint belongs to an earlier epoch, which the head's epoch follows, or to a later
        // epoch, which the database has lost.
        let before = epoch_of(&last.origin, tenant_id);
        return Ok(before.is_some_and(|before| before < head.epoch));
    }
    let size = u64::try_from(head.size).unwrap_or_default();
    if last.size >= size {
        return Ok(last.size == size && last.root.as_slice() == head.root);
    }
    let edge = tree::right_edge(last.size);
    let known = log_nodes::of_log(db, tenant_id, head.epoch, &edge).await?;
    let hashes = edge.iter().filter_map(|id| known.get(id).copied()).collect();
    Ok(Frontier::new(last.size, hashes).is_ok_and(|then| then.root() == last.root))
}

impl<'a> Log<'a> {
    /// Locks the tenant's log, or creates it.
    ///
    /// Starts a new epoch unless the log continues all known checkpoints: the last checkpoint that
    /// this node remembers, and the `seen` checkpoints from outside the service.
    pub(super) async fn lock(
        db: &mut Db,
        sealer: &'a Sealer,
        tenant_id: &'a TenantId,
        seen: &[Checkpoint],
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        // This lock serialises the creation of epochs. The lock on the head's row serialises
        // everything else.
        diesel::sql_query("SELECT pg_advisory_xact_lock($1, hashtext($2))")
            .bind::<Integer, _>(locks::DECISION_LOG)
            .bind::<Text, _>(tenant_id.as_str())
            .execute(db)
            .await?;
        let of_tenant = log_heads::table.filter(log_heads::tenant_id.eq(tenant_id.as_str()));
        let newest = of_tenant.order(log_heads::epoch.desc()).select(LogHead::as_select());
        let head = newest.for_update().first(db).await;
        let last = sealer.witness.last(tenant_id.slug()).map_err(|why| broken(tenant_id, &why))?;
        // `seen` can contain checkpoints that this service signed for other tenants. They do not
        // concern this log.
        let seen = seen.iter().filter(|one| epoch_of(&one.origin, tenant_id).is_some());
        let known: Vec<&Checkpoint> = last.iter().chain(seen).collect();
        let Some(head) = head.optional()? else {
            let follows = latest(&known, tenant_id).cloned();
            return Self::begin(db, sealer, tenant_id, 1, follows, now).await;
        };
        let size = u64::try_from(head.size).unwrap_or_default();
        let edge = tree::right_edge(size);
        let nodes = log_nodes::of_log(db, tenant_id, head.epoch, &edge).await?;
        let hashes: Vec<Hash> = edge.iter().filter_map(|id| nodes.get(id).copied()).collect();
        let frontier = Frontier::new(size, hashes).map_err(|why| broken(tenant_id, &why))?;
        let log = Self {
            sealer,
            tenant_id,
            epoch: head.epoch,
            origin: head.origin.clone(),
            frontier,
            nodes,
            new: BTreeMap::new(),
            follows: None,
        };
        if log.frontier.root().as_slice() != head.root {
            return Err(broken(tenant_id, &"its tree does not make its root"));
        }
        if !log.is_signed(&head.checkpoint) {
            return Err(broken(tenant_id, &"this service did not sign its tree"));
        }
        let mut left = Vec::new();
        for checkpoint in known {
            if !continues(db, tenant_id, &head, checkpoint).await? {
                left.push(checkpoint);
            }
        }
        match latest(&left, tenant_id) {
            Some(last) => {
                Self::begin(db, sealer, tenant_id, log.epoch + 1, Some(last.clone()), now).await
            }
            None => Ok(log),
        }
    }

    async fn begin(
        db: &mut Db,
        sealer: &'a Sealer,
        tenant_id: &'a TenantId,
        epoch: i32,
        follows: Option<Checkpoint>,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        // If the database has lost epochs, the epoch of the known checkpoint determines the next
        // number.
        let after = follows
            .as_ref()
            .and_then(|last| epoch_of(&last.origin, tenant_id))
            .map_or(epoch, |last| epoch.max(last + 1));
        let origin = origin(&sealer.public_url, tenant_id, after);
        check_origin(&origin).map_err(|why| broken(tenant_id, &why))?;
        let mut log = Self {
            sealer,
            tenant_id,
            epoch: after,
            origin,
            frontier: Frontier::default(),
            nodes: HashMap::new(),
            new: BTreeMap::new(),
            follows: None,
        };
        let named = follows.as_ref().map(Checkpoint::body);
        log.follows = follows;
        diesel::insert_into(log_heads::table)
            .values((
                log_heads::tenant_id.eq(tenant_id.as_str()),
                log_heads::epoch.eq(after),
                log_heads::origin.eq(&log.origin),
                log_heads::size.eq(0),
                log_heads::root.eq(&log.frontier.root()[..]),
                log_heads::checkpoint.eq(""),
                log_heads::follows.eq(&named),
                log_heads::signed_at.eq(now),
            ))
            .execute(db)
            .await?;
        if let Some(named) = named {
            let leaf = json!({"follows": named, "kind": EPOCH_KIND, "origin": log.origin});
            log.add(&serde_json_canonicalizer::to_vec(&leaf)?)?;
        }
        Ok(log)
    }

    /// Whether this service signed the head's note for this tree.
    ///
    /// Because of this check, write access to the tables is not enough to add a leaf.
    fn is_signed(&self, note: &str) -> bool {
        let (size, root) = (self.frontier.size(), self.frontier.root());
        if size == 0 {
            let name = origin(&self.sealer.public_url, self.tenant_id, self.epoch);
            return note.is_empty() && self.origin == name;
        }
        let Ok(signed) = SignedCheckpoint::parse(note) else { return false };
        signed.checkpoint == Checkpoint { origin: self.origin.clone(), size, root }
            && self.sealer.keys.log_key(&signed).is_some()
    }

    /// Whether the log has leaves to sign.
    pub(super) fn has_grown(&self) -> bool {
        !self.new.is_empty()
    }

    /// Adds a leaf. Returns its index.
    pub(super) fn add(&mut self, leaf: &[u8]) -> Result<u64, Error> {
        let index = self.frontier.size();
        let (nodes, new) = (&mut self.nodes, &mut self.new);
        let added = self.frontier.push(tree::leaf_hash(leaf), |id, hash| {
            nodes.insert(id, hash);
            let run =
                new.entry(id.level).or_insert_with(|| Run { first: id.index, hashes: Vec::new() });
            run.hashes.extend_from_slice(&hash);
        });
        added.map_err(|why| broken(self.tenant_id, &why))?;
        Ok(index)
    }

    /// Returns the number of leaves.
    pub(super) fn size(&self) -> i64 {
        number(self.frontier.size())
    }

    /// Stores the new nodes and signs the new head. `last` is the id of the decision in the last
    /// leaf.
    pub(super) async fn sign(
        &mut self,
        db: &mut Db,
        now: DateTime<Utc>,
        last: Option<&str>,
    ) -> Result<Signed, Error> {
        insert(db, self.tenant_id, self.epoch, &self.new).await?;
        let (size, root) = (self.frontier.size(), self.frontier.root());
        let checkpoint = Checkpoint { origin: self.origin.clone(), size, root };
        let signer = self.sealer.keys.signer(Purpose::Log);
        let key = LogKey { origin: self.origin.clone(), public_key: *signer.public_key() };
        let body = checkpoint.body();
        let note = signed(&body, &self.origin, key.id(), &signer.sign(body.as_bytes()));
        diesel::update(log_heads::table.find((self.tenant_id.as_str(), self.epoch)))
            .set((
                log_heads::size.eq(self.size()),
                log_heads::root.eq(&root[..]),
                log_heads::checkpoint.eq(&note),
                log_heads::signed_at.eq(now),
                log_heads::last_decision_id.eq(last),
            ))
            .execute(db)
            .await?;
        diesel::insert_into(log_checkpoints::table)
            .values((
                log_checkpoints::tenant_id.eq(self.tenant_id.as_str()),
                log_checkpoints::epoch.eq(self.epoch),
                log_checkpoints::size.eq(self.size()),
                log_checkpoints::note.eq(&note),
                log_checkpoints::issuer.eq(&self.sealer.public_url),
            ))
            .execute(db)
            .await?;
        let (slug, follows) = (self.tenant_id.slug().to_owned(), self.follows.take());
        let prepared = self.sealer.witness.prepare(&slug, &note);
        let prepared = prepared.map_err(|error| self.sealer.room.lacks(&error))?;
        Ok(Signed { slug, checkpoint, note, prepared, follows })
    }

    /// Returns the inclusion proof of an added leaf in the current tree.
    pub(super) fn proof(&self, index: i64, note: &str) -> Result<String, Error> {
        let index = u64::try_from(index).unwrap_or(u64::MAX);
        let path =
            tree::inclusion_path(index, self.frontier.size(), |id| self.nodes.get(&id).copied());
        let path = path.ok_or_else(|| broken(self.tenant_id, &"a subtree is missing"))?;
        Ok(InclusionProof { index, path, checkpoint_note: note.to_owned() }.write())
    }
}

/// A signed checkpoint that is not yet committed.
pub(super) struct Signed {
    pub(super) slug: String,
    pub(super) checkpoint: Checkpoint,
    pub(super) note: String,
    pub(super) prepared: Prepared,
    /// The last known checkpoint of the previous epoch, if this checkpoint is the first of its
    /// epoch.
    pub(super) follows: Option<Checkpoint>,
}

impl Signed {
    /// Warns operators that the tenant's log could not be continued.
    ///
    /// Call it after the new epoch is committed.
    pub(super) fn log_new_epoch(&self) {
        let Some(last) = &self.follows else { return };
        metrics::counter!("authority_log_epochs_total").increment(1);
        tracing::warn!(
            tenant.slug = self.slug,
            origin = self.checkpoint.origin,
            last.origin = last.origin,
            last.size = last.size,
            "started a new epoch of a log that does not continue its last signed checkpoint"
        );
    }
}

async fn insert(
    db: &mut Db,
    tenant_id: &TenantId,
    epoch: i32,
    new: &BTreeMap<u8, Run>,
) -> QueryResult<()> {
    let level: Vec<i16> = new.keys().map(|level| i16::from(*level)).collect();
    let first: Vec<i64> = new.values().map(|run| number(run.first)).collect();
    let hashes: Vec<&[u8]> = new.values().map(|run| run.hashes.as_slice()).collect();
    diesel::sql_query(
        "INSERT INTO log_nodes (tenant_id, epoch, level, first, hashes) \
         SELECT $1, $2, n.* FROM UNNEST($3, $4, $5) AS n",
    )
    .bind::<Text, _>(tenant_id.as_str())
    .bind::<Integer, _>(epoch)
    .bind::<Array<SmallInt>, _>(level)
    .bind::<Array<BigInt>, _>(first)
    .bind::<Array<Bytea>, _>(hashes)
    .execute(db)
    .await
    .map(drop)
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn broken(tenant_id: &TenantId, why: &impl Display) -> Error {
    Error::Log(tenant_id.to_string(), why.to_string())
}
