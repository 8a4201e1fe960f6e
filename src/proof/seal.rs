//! The sealer: one writer of a node's logs, which seals together what was asked for meanwhile.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use authority_model::schema::{decisions, evidence_packs};
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    prelude::*,
    sql_types::{Array, BigInt, Bytea, Integer, Text, Timestamptz},
};
use diesel_async::RunQueryDsl;
use tokio::sync::{mpsc, oneshot};

use super::{
    Error, Proof,
    log::{Added, Log, Signed, broken},
    witness::Witness,
};
use crate::{
    clock::Clock,
    evidence::{
        digest_text, log,
        pack::{self, LogPlace, Sealing},
    },
    keys::Keys,
    store::{self, Db, Scope, Store},
};

/// How many decisions one transaction seals at most.
const MOST: usize = 2048;
/// How many may wait.
const QUEUE: usize = 4096;

/// A decision to be sealed, and who waits for its pack.
pub(super) struct Asked {
    pub(super) decision_id: String,
    /// Only where it is this tenant's.
    pub(super) within: Option<String>,
    pub(super) done: oneshot::Sender<Result<String, Refused>>,
}

/// Why a decision was not sealed. Cheap to tell everybody in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Unknown,
    /// The database does not answer.
    Away,
    /// The log cannot be continued.
    Broken,
}

/// Seals for this node.
pub(super) struct Sealer {
    pub(super) public_url: String,
    pub(super) clock: Clock,
    pub(super) store: Store,
    pub(super) keys: Keys,
    pub(super) witness: Witness,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(diesel::pg::Pg))]
struct Decision {
    id: String,
    tenant_id: String,
    record: Vec<u8>,
    kid: String,
    signature: Vec<u8>,
}

impl Proof {
    /// The pack of a decision; sealed now unless it was before.
    pub(super) async fn seal(
        &self,
        decision_id: String,
        within: Option<String>,
    ) -> Result<String, Error> {
        let (done, sealed) = oneshot::channel();
        let away = || Error::Store(store::Error::Unavailable("the sealer does not answer".into()));
        let asked = Asked { decision_id: decision_id.clone(), within, done };
        self.0.sealer.try_send(asked).map_err(|_| away())?;
        match sealed.await.unwrap_or(Err(Refused::Away)) {
            Ok(pack) => Ok(pack),
            Err(Refused::Unknown) => Err(Error::NotFound("decision", decision_id)),
            Err(Refused::Away) => Err(away()),
            Err(Refused::Broken) => Err(broken(&decision_id, &"see the service's log")),
        }
    }
}

impl Sealer {
    pub(super) fn start(sealer: Arc<Self>) -> mpsc::Sender<Asked> {
        let (queue, mut waiting) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            let mut asked = Vec::with_capacity(MOST);
            while waiting.recv_many(&mut asked, MOST).await > 0 {
                Self::answer(&sealer, std::mem::take(&mut asked)).await;
            }
        });
        queue
    }

    /// Each tenant's log in a transaction of its own: one that cannot go on stops no other.
    async fn answer(this: &Arc<Self>, asked: Vec<Asked>) {
        let found = this.find(&asked).await;
        if let Err(error) = &found {
            tracing::error!(%error, decisions = asked.len(), "cannot read what to seal");
        }
        let mut tenants: BTreeMap<String, Vec<Decision>> = BTreeMap::new();
        let mut waiting: HashMap<String, Vec<Asked>> = HashMap::new();
        let is_known = found.is_ok();
        for decision in found.unwrap_or_default() {
            tenants.entry(decision.tenant_id.clone()).or_default().push(decision);
        }
        for one in asked {
            waiting.entry(one.decision_id.clone()).or_default().push(one);
        }
        for (tenant_id, decisions) in tenants {
            let ids: Vec<String> = decisions.iter().map(|one| one.id.clone()).collect();
            let sealed = this.seal_tenant(tenant_id.clone(), decisions).await;
            if let Err(error) = &sealed {
                tracing::error!(%error, tenant = tenant_id, "could not seal");
            }
            for id in ids {
                for one in waiting.remove(&id).unwrap_or_default() {
                    let own = one.within.as_ref().is_none_or(|within| *within == tenant_id);
                    let pack = match &sealed {
                        _ if !own => Err(Refused::Unknown),
                        Ok(packs) => packs.get(&id).cloned().ok_or(Refused::Unknown),
                        Err(Error::Log(..)) => Err(Refused::Broken),
                        Err(_) => Err(Refused::Away),
                    };
                    let _ = one.done.send(pack); // who asked may have gone; the pack stays
                }
            }
        }
        let left = if is_known { Refused::Unknown } else { Refused::Away };
        for one in waiting.into_values().flatten() {
            let _ = one.done.send(Err(left));
        }
    }

    /// Those that exist, and are of the tenant that some asker may seal for.
    async fn find(&self, asked: &[Asked]) -> Result<Vec<Decision>, Error> {
        let wanted: HashSet<(String, Option<String>)> =
            asked.iter().map(|asked| (asked.decision_id.clone(), asked.within.clone())).collect();
        let scope = Scope::service();
        let read = self.store.read(&scope, async move |db| {
            let ids = wanted.iter().map(|(id, _)| id.as_str());
            let found: Vec<Decision> = decisions::table
                .filter(decisions::id.eq_any(ids))
                .order(decisions::id)
                .select(Decision::as_select())
                .load(db)
                .await?;
            let is_asked = |decision: &Decision| {
                let (id, tenant) = (decision.id.clone(), Some(decision.tenant_id.clone()));
                wanted.contains(&(id.clone(), None)) || wanted.contains(&(id, tenant))
            };
            Ok::<_, Error>(found.into_iter().filter(is_asked).collect())
        });
        read.await
    }

    /// Packs by decision.
    async fn seal_tenant(
        self: &Arc<Self>,
        tenant_id: String,
        decisions: Vec<Decision>,
    ) -> Result<HashMap<String, String>, Error> {
        let scope = Scope::service();
        let (sealer, now) = (Arc::clone(self), self.clock.now());
        let done = self
            .store
            .act(&scope, async move |db| sealer.transact(db, &tenant_id, &decisions, now).await);
        let (packs, signed) = done.await?;
        if let Some(signed) = signed {
            // After the commit, and before anybody who asked is answered.
            let kept = self.witness.keep(&signed.slug, &signed.checkpoint, &signed.note);
            kept.map_err(|why| broken(&signed.slug, &why))?;
        }
        Ok(packs)
    }

    async fn transact(
        &self,
        db: &mut Db,
        tenant_id: &str,
        decisions: &[Decision],
        now: DateTime<Utc>,
    ) -> Result<(HashMap<String, String>, Option<Signed>), Error> {
        // Read without a lock first: sealing again is common, and waits for nobody.
        let known = sealed(db, decisions).await?;
        if known.len() == decisions.len() {
            return Ok((known, None));
        }
        let mut log = Log::lock(db, self, tenant_id, now).await?;
        let mut known = sealed(db, decisions).await?;
        let open: Vec<&Decision> =
            decisions.iter().filter(|one| !known.contains_key(&one.id)).collect();
        let signed = self.add(db, &mut log, &open, now, &mut known).await?;
        Ok((known, signed))
    }

    async fn add(
        &self,
        db: &mut Db,
        log: &mut Log<'_>,
        open: &[&Decision],
        now: DateTime<Utc>,
        packs: &mut HashMap<String, String>,
    ) -> Result<Option<Signed>, Error> {
        let mut leaves: Vec<(Vec<u8>, Added)> = Vec::with_capacity(open.len());
        for decision in open {
            let leaf = pack::leaf(&Sealing {
                decision_id: &decision.id,
                record: &decision.record,
                kid: &decision.kid,
                signature: &decision.signature,
                sealed_at: now,
                issuer: &self.public_url,
            })?;
            let added = log.add(&leaf)?;
            leaves.push((leaf, added));
        }
        if !log.has_grown() {
            return Ok(None);
        }
        let signed = log.sign(db, now).await?;
        let mut insert = Insert::default();
        for (decision, (leaf, added)) in open.iter().zip(&leaves) {
            let proof = log.proof(added.index, &signed.note)?;
            let place = LogPlace {
                index: added.index,
                leaf_hash: digest_text(&added.leaf_hash),
                origin: log.origin.clone(),
                proof: proof.clone(),
            };
            packs.insert(decision.id.clone(), pack::whole(leaf, place)?);
            insert.id.push(pack::evidence_id(&decision.id));
            insert.decision.push(&decision.id);
            insert.index.push(i64::try_from(added.index).unwrap_or(i64::MAX));
            insert.body.push(leaf);
            insert.proof.push(proof);
        }
        insert.run(db, log, now).await?;
        Ok(Some(signed))
    }
}

/// New packs, as columns.
#[derive(Default)]
struct Insert<'a> {
    id: Vec<String>,
    decision: Vec<&'a str>,
    index: Vec<i64>,
    body: Vec<&'a [u8]>,
    proof: Vec<String>,
}

impl Insert<'_> {
    async fn run(self, db: &mut Db, log: &Log<'_>, now: DateTime<Utc>) -> QueryResult<usize> {
        diesel::sql_query(
            "INSERT INTO evidence_packs \
             (tenant_id, epoch, origin, sealed_at, id, decision_id, log_index, body, proof) \
             SELECT $1, $2, $3, $4, p.* FROM UNNEST($5, $6, $7, $8, $9) AS p",
        )
        .bind::<Text, _>(log.tenant_id)
        .bind::<Integer, _>(log.epoch)
        .bind::<Text, _>(&log.origin)
        .bind::<Timestamptz, _>(now)
        .bind::<Array<Text>, _>(self.id)
        .bind::<Array<Text>, _>(self.decision)
        .bind::<Array<BigInt>, _>(self.index)
        .bind::<Array<Bytea>, _>(self.body)
        .bind::<Array<Text>, _>(self.proof)
        .execute(db)
        .await
    }
}

/// The packs that there are of these decisions, by decision.
async fn sealed(db: &mut Db, decisions: &[Decision]) -> Result<HashMap<String, String>, Error> {
    let ids = decisions.iter().map(|decision| decision.id.as_str());
    let rows: Vec<(String, Row)> = evidence_packs::table
        .filter(evidence_packs::decision_id.eq_any(ids))
        .select((evidence_packs::decision_id, Row::as_select()))
        .load(db)
        .await?;
    rows.into_iter().map(|(id, row)| Ok((id, row.pack()?))).collect()
}

/// A stored pack: leaf, place, proof.
#[derive(Queryable, Selectable)]
#[diesel(table_name = evidence_packs, check_for_backend(diesel::pg::Pg))]
pub(super) struct Row {
    body: Vec<u8>,
    pub(super) origin: String,
    log_index: i64,
    proof: String,
}

impl Row {
    /// The pack, exactly as it was given out first.
    pub(super) fn pack(self) -> Result<String, Error> {
        let index = u64::try_from(self.log_index).unwrap_or_default();
        let leaf_hash = digest_text(&log::tree::leaf_hash(&self.body));
        let place = LogPlace { index, leaf_hash, origin: self.origin, proof: self.proof };
        Ok(pack::whole(&self.body, place)?)
    }
}
