//! Versions of records that ended in a month, and the changes to authority in that month.

use authority_evidence::archive::{Content, Object};
use authority_store::{RunQueryDsl, Scope};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};

use super::{Archiver, Subject};
use crate::{
    Error,
    format::{self, frames::FrameWriter, part::Made},
};

/// The number of lines that a query reads.
const PAGE: i64 = 500;
/// An object with at least this many lines is full. The last page can add up to 499 lines.
const LINES: usize = 20_000;
/// An object with this many bytes of lines is full, because it is read back as a whole.
const BYTES: usize = 64 << 20;

const VERSIONS: &str = "
    SELECT version AS place, jsonb_build_object(
        'kind', 'svc.archive.version.v1', 'version', version, 'table_name', table_name, 'entity_id', entity_id,
        'actor', actor, 'valid_from', valid_from, 'valid_to', valid_to, 'body', body)::text AS line
    FROM archived_versions($1, $2) WHERE version > $3 ORDER BY version LIMIT $4";

const CHANGES: &str = "
    SELECT seq AS place, jsonb_build_object(
        'kind', 'svc.archive.change.v1', 'sequence', seq, 'tenant_revision', tenant_revision,
        'table_name', table_name, 'entity_id', entity_id, 'at', at)::text AS line
    FROM archived_changes($1, $2) WHERE seq > $3 ORDER BY seq LIMIT $4";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = BigInt)]
    place: i64,
    #[diesel(sql_type = Text)]
    line: String,
}

impl Archiver {
    /// Writes the month's history. Returns the written objects.
    pub(super) async fn write_history(&self, subject: &Subject) -> Result<Vec<Object>, Error> {
        let mut objects = self.write_lines(subject, Content::Versions, VERSIONS).await?;
        objects.extend(self.write_lines(subject, Content::Changes, CHANGES).await?);
        Ok(objects)
    }

    async fn write_lines(
        &self,
        subject: &Subject,
        content: Content,
        query: &'static str,
    ) -> Result<Vec<Object>, Error> {
        let (mut objects, mut after) = (Vec::new(), 0);
        loop {
            let mut frames = FrameWriter::new().map_err(format::Error::from)?;
            while frames.lines() < LINES && frames.read_bytes() < BYTES {
                self.unless_stopping()?;
                let lines = self.read_lines(subject, query, after).await?;
                if lines.is_empty() {
                    break;
                }
                for Line { place, line } in lines {
                    frames.add(line.as_bytes()).map_err(format::Error::from)?;
                    after = place;
                    if frames.read_bytes() >= BYTES {
                        break;
                    }
                }
            }
            let entries = u64::try_from(frames.lines()).unwrap_or(u64::MAX);
            if entries == 0 {
                return Ok(objects);
            }
            let part = u32::try_from(objects.len()).unwrap_or(u32::MAX).saturating_add(1);
            let (bytes, _) = frames.finish().map_err(format::Error::from)?;
            let made = Made::new(content, part, bytes);
            objects.push(Object {
                bytes: u64::try_from(made.bytes.len()).unwrap_or(u64::MAX),
                content,
                entries,
                first_id: None,
                last_id: None,
                name: made.name.clone(),
                part,
                sha256: authority_evidence::digest_text(&made.sha256),
            });
            self.parts.bucket.put(&subject.path(&made.name), made.bytes).await?;
        }
    }

    async fn read_lines(
        &self,
        subject: &Subject,
        query: &'static str,
        after: i64,
    ) -> Result<Vec<Line>, Error> {
        let subject = subject.clone();
        let read = self.parts.store.read_tx(&Scope::service(), async move |db| {
            let lines = diesel::sql_query(query)
                .bind::<Text, _>(subject.tenant_id.as_str())
                .bind::<Text, _>(subject.month.to_string())
                .bind::<BigInt, _>(after)
                .bind::<BigInt, _>(PAGE);
            Ok::<_, Error>(lines.load(db).await?)
        });
        read.await
    }
}
