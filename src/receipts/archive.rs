//! The data of a receipt for an archived decision.

use authority_archive::Archived;
use authority_store::{Error, Store};

use super::read::{Decision, Pack, Read, Report, scope};
use authority_api::error::ApiError;

/// Reads a receipt's data. Related data of the decision is still in the tables. Data that was added
/// to the decision before it was archived is in the archive.
pub(super) async fn read(store: &Store, archived: Archived) -> Result<Read, ApiError> {
    let (entry, summary, stored) = (archived.entry()?, archived.summary()?, archived.stored()?);
    let decision = Decision {
        id: entry.decision_id,
        tenant_id: summary.tenant_id,
        subject: summary.subject,
        record: stored.sealed.record,
        kid: stored.kid,
        signature: stored.signature,
        evaluated_at: summary.evaluated_at,
        approval_id: entry.approval_id.map(String::from),
    };
    let pack = Pack {
        origin: summary.log_origin.to_owned(),
        log_index: summary.log_index,
        sealed_at: summary.sealed_at,
    };
    let report = entry.report.map(|report| Report { outcome: report.outcome, at: report.at });
    let beside =
        store.read_tx(&scope(), async move |db| Ok::<_, Error>(Read::beside(db, decision).await?));
    let beside = beside.await?;
    let archived_pack = Some(archived.pack()?.to_owned());
    let report = beside.report.or(report);
    Ok(Read { pack: Some(pack), archived_pack, report, ..beside })
}
