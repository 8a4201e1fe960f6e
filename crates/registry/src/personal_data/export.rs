//! Exports the stored data of a person, page by page for each kind of item.

use std::collections::VecDeque;

use authority_model::{
    proto::programme::{ExportPersonalDataRequest, ExportPersonalDataResponse},
    wire::Json,
};
use diesel::sql_types::{BigInt, Jsonb, Nullable, Text};

use super::person::Person;
use crate::flow::prelude::*;
use authority_api::{error::ApiError, identity::Pages};
use authority_store as store;

/// A kind of item: its name and a query for a page. `$1` is the person, `$2` the only tenant or
/// null for all, `$3` the last position of the previous page and `$4` the number of rows to scan. A
/// row without `data` only reports the position that the scan has reached.
pub(super) struct Kind {
    word: &'static str,
    query: &'static str,
}

/// The kinds, in the order of the export.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        word: "lead",
        query: "SELECT id AS place, tenant_id, id, to_jsonb(leads) AS data FROM leads
            WHERE $2 IS NULL AND person_in_scope($1, tenant_id) AND id > $3
              AND ($1 -> 'emails') ? lower(btrim(submitter_email))
            ORDER BY id LIMIT $4",
    },
    Kind {
        word: "consultant",
        query: "SELECT id AS place, tenant_id, id, to_jsonb(consultants) AS data FROM consultants
            WHERE $2 IS NULL AND person_in_scope($1, tenant_id) AND id > $3
              AND ($1 -> 'emails') ? lower(btrim(email))
            ORDER BY id LIMIT $4",
    },
    Kind {
        word: "principal",
        query: "SELECT id AS place, tenant_id, id, to_jsonb(principals) AS data FROM principals
            WHERE ($2 IS NULL OR tenant_id = $2) AND id > $3
              AND (($1 -> 'principals') ? id OR ($1 -> 'subjects') ? external_subject
                   OR ($1 -> 'emails') ? lower(btrim(email)))
            ORDER BY id LIMIT $4",
    },
    Kind {
        word: "api_key",
        query: "SELECT id AS place, tenant_id, id, jsonb_build_object(
                'label', label, 'created_at', created_at, 'rotated_at', rotated_at) AS data
            FROM api_keys
            WHERE ($2 IS NULL OR tenant_id = $2) AND id > $3 AND EXISTS (
                SELECT FROM unnest(people || people_emails) AS name WHERE person_code($1, name) IS NOT NULL)
            ORDER BY id LIMIT $4",
    },
    Kind {
        word: "approval",
        query: "SELECT id AS place, tenant_id, id, jsonb_build_object(
                'action', action, 'subject', subject, 'state', state, 'created_at', created_at,
                'justification', justification) AS data
            FROM approvals
            WHERE ($2 IS NULL OR tenant_id = $2) AND id > $3 AND (
                person_mentioned($1, justification)
                OR EXISTS (SELECT FROM unnest(asker_emails) AS name WHERE person_code($1, name) IS NOT NULL)
                OR EXISTS (SELECT FROM unnest(requested_by) AS asker
                           WHERE person_code($1, asker ->> 'id') IS NOT NULL))
            ORDER BY id LIMIT $4",
    },
    Kind {
        word: "act",
        query: "SELECT concat_ws(' ', about, round, withdraws, person) AS place, tenant_id, about AS id,
                to_jsonb(approval_acts) - '{about,tenant_id,signature}'::text[] AS data
            FROM approval_acts
            WHERE ($2 IS NULL OR tenant_id = $2)
              AND concat_ws(' ', about, round, withdraws, person) COLLATE \"C\" > $3
              AND (person_code($1, person) IS NOT NULL OR person_mentioned($1, comment)
                   OR person_mentioned($1, record))
            ORDER BY concat_ws(' ', about, round, withdraws, person) COLLATE \"C\" LIMIT $4",
    },
    Kind {
        word: "report",
        query: "SELECT decision_id AS place, tenant_id, decision_id AS id, jsonb_build_object(
                'outcome', outcome, 'at', at, 'detail', detail, 'reported_by', reported_by) AS data
            FROM decision_reports
            WHERE ($2 IS NULL OR tenant_id = $2) AND decision_id > $3
              AND (person_code($1, reported_by) IS NOT NULL OR person_mentioned($1, detail))
            ORDER BY decision_id LIMIT $4",
    },
    Kind {
        word: "activation",
        query: "SELECT lpad(id::text, 19, '0') AS place, tenant_id, policy_id AS id, jsonb_build_object(
                'version', version, 'at', at, 'by', by, 'reason', reason) AS data
            FROM policy_activations
            WHERE ($2 IS NULL OR tenant_id = $2) AND lpad(id::text, 19, '0') > $3
              AND (person_code($1, by) IS NOT NULL OR person_mentioned($1, reason))
            ORDER BY policy_activations.id LIMIT $4",
    },
    // A page of decisions may contain no items. It then only reports the position that the scan has
    // reached.
    Kind {
        word: "context",
        query: "WITH page AS MATERIALIZED (
                SELECT id, tenant_id, subject, convert_from(context, 'UTF8') AS context FROM decisions
                WHERE ($2 IS NULL OR tenant_id = $2) AND id > $3 ORDER BY id LIMIT $4)
            SELECT id AS place, tenant_id, id, nullif(context, '')::jsonb AS data FROM page
            WHERE person_in_scope($1, tenant_id)
              AND (($1 -> 'principals') ? subject OR person_mentioned($1, context))
            UNION ALL
            SELECT max(id), '', '', NULL FROM page HAVING count(*) = $4
            ORDER BY place",
    },
];

/// The position that the export of a kind has reached.
#[derive(Clone, Debug, Default)]
pub(super) struct ExportPosition(String);

/// The number of rows that one query scans.
const PAGE: i64 = 1_000;

#[derive(QueryableByName)]
pub(super) struct ExportedRow {
    #[diesel(sql_type = Text)]
    place: String,
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Nullable<Jsonb>)]
    data: Option<Json>,
}

/// Returns a page of a kind and the start of the next page. The start is `None` after the last
/// page.
pub(super) async fn page(
    db: &mut Db,
    kind: &Kind,
    person: &Json,
    within: Option<&str>,
    from: ExportPosition,
) -> QueryResult<(Vec<ExportedRow>, Option<ExportPosition>)> {
    let mut found: Vec<ExportedRow> = diesel::sql_query(kind.query)
        .bind::<Jsonb, _>(person)
        .bind::<Nullable<Text>, _>(within)
        .bind::<Text, _>(from.0)
        .bind::<BigInt, _>(PAGE)
        .load(db)
        .await?;
    let goes_on = found.iter().any(|item| item.id.is_empty())
        || i64::try_from(found.len()).unwrap_or(i64::MAX) >= PAGE;
    let next = found.last().filter(|_| goes_on).map(|last| ExportPosition(last.place.clone()));
    found.retain(|item| item.data.is_some());
    Ok((found, next))
}

pub(super) async fn export(
    registry: &Registry,
    call: Request<ExportPersonalDataRequest>,
) -> Replies<ExportPersonalDataResponse> {
    let (caller, asked) = admitted(call)?;
    let person = registry
        .store
        .read_tx(&caller.scope(), async move |db| Person::find(db, (&asked).into()).await);
    let person = person.await?;
    let lines = Lines {
        registry: registry.clone(),
        caller: caller.clone(),
        within: person.within.clone(),
        person: person.parameter(&registry.keys.erased_names(), &[]),
        left: KINDS.iter().map(|kind| (kind, ExportPosition::default())).collect(),
        count: 0,
    };
    Ok(registry.exports.stream(caller, lines).await?)
}

struct Lines {
    registry: Registry,
    caller: Caller,
    person: Json,
    within: Option<String>,
    /// The kinds that are not finished.
    left: VecDeque<(&'static Kind, ExportPosition)>,
    count: i64,
}

impl Pages for Lines {
    type Line = ExportPersonalDataResponse;

    async fn next(&mut self) -> Result<Vec<Self::Line>, ApiError> {
        while let Some((kind, from)) = self.left.pop_front() {
            let (person, within) = (self.person.clone(), self.within.clone());
            let read = self.registry.store.read_tx(&self.caller.scope(), async move |db| {
                Ok::<_, store::Error>(page(db, kind, &person, within.as_deref(), from).await?)
            });
            let (found, next) = read.await?;
            if let Some(next) = next {
                self.left.push_front((kind, next));
            }
            if !found.is_empty() {
                self.count += i64::try_from(found.len()).unwrap_or_default();
                return Ok(found.into_iter().map(|item| line(kind, item)).collect());
            }
        }
        Ok(Vec::new())
    }

    fn end(&self) -> Self::Line {
        ExportPersonalDataResponse {
            end: true,
            count: Some(self.count),
            ..ExportPersonalDataResponse::default()
        }
    }
}

fn line(kind: &Kind, item: ExportedRow) -> ExportPersonalDataResponse {
    ExportPersonalDataResponse {
        kind: kind.word.to_owned(),
        tenant_id: Some(item.tenant_id).filter(|id| !id.is_empty()),
        id: item.id,
        data: item.data,
        ..ExportPersonalDataResponse::default()
    }
}
