//! Removes a person from archived versions of records.

use authority_evidence::archive::{Content, Object};
use authority_store::RunQueryDsl;
use diesel::{
    QueryableByName,
    sql_types::{Array, Integer, Jsonb, Text},
};

use super::{Erased, Rewriting};
use crate::{
    Error,
    format::{
        self,
        frames::{FrameWriter, lines},
        part::Made,
    },
    inspect,
};

/// Selects the lines with data of the person and rewrites them without that data. Also removes the
/// fields about people from the person's own principals.
const ERASE: &str = "
    SELECT v.place,
           (v.line || jsonb_build_object(
               'actor', CASE WHEN person_code($1, v.line ->> 'actor') IS NULL THEN v.line ->> 'actor' ELSE 'erased' END,
               'body', without_person($1, (v.line -> 'body')::text)::jsonb
                       - CASE WHEN ($1 -> 'principals') ? (v.line ->> 'entity_id')
                              THEN '{display_name,email,external_subject,notes,tags,metadata}'::text[]
                              ELSE '{}' END))::text AS line
    FROM (SELECT place, line::jsonb AS line FROM unnest($2, $3) AS v (place, line)) AS v
    WHERE person_code($1, v.line ->> 'actor') IS NOT NULL
       OR person_mentioned($1, (v.line -> 'body')::text)
       OR ($1 -> 'principals') ? (v.line ->> 'entity_id')";

#[derive(QueryableByName)]
pub(super) struct Line {
    #[diesel(sql_type = Integer)]
    place: i32,
    #[diesel(sql_type = Text)]
    line: String,
}

impl Rewriting<'_> {
    /// Rewrites the object without the person's data. Returns an empty list if it has none.
    pub(super) async fn versions(
        &self,
        object: &Object,
        erased: &mut Erased,
    ) -> Result<Vec<Object>, Error> {
        let (mut all, new) = self.changed(object).await?;
        if new.is_empty() {
            return Ok(Vec::new());
        }
        erased.versions += i64::try_from(new.len()).unwrap_or(i64::MAX);
        for Line { place, line } in new {
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            if let Some(old) = all.get_mut(place) {
                *old = line.into_bytes();
            }
        }
        let mut frames = FrameWriter::new().map_err(format::Error::from)?;
        all.iter().try_for_each(|line| frames.add(line)).map_err(format::Error::from)?;
        let (bytes, _) = frames.finish().map_err(format::Error::from)?;
        let made = Made::new(Content::Versions, object.part, bytes);
        Ok(vec![self.put(made, object).await?])
    }

    /// Reads the lines of an object. Returns all lines, and the rewritten lines that had data of
    /// the person.
    pub(super) async fn changed(
        &self,
        object: &Object,
    ) -> Result<(Vec<Vec<u8>>, Vec<Line>), Error> {
        let bytes = inspect::read(self.bucket, self.folder, object).await?;
        let all = tokio::task::spawn_blocking(move || lines(&bytes)).await?;
        let all = all.map_err(|why| Error::Damaged(object.name.clone(), why.to_string()))?;
        let found = all.iter().enumerate().filter(|(_, line)| self.person.needles.are_in(line));
        let (places, texts): (Vec<i32>, Vec<String>) = found
            .map(|(place, line)| {
                (
                    i32::try_from(place).unwrap_or(i32::MAX),
                    String::from_utf8_lossy(line).into_owned(),
                )
            })
            .unzip();
        let new = self.erase_lines(places, texts).await?;
        Ok((all, new))
    }

    async fn erase_lines(&self, places: Vec<i32>, texts: Vec<String>) -> Result<Vec<Line>, Error> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let person = self.person.parameter.clone();
        let read = self.eraser.store.read_tx(self.scope, async move |db| {
            let erase = diesel::sql_query(ERASE)
                .bind::<Jsonb, _>(&person)
                .bind::<Array<Integer>, _>(places)
                .bind::<Array<Text>, _>(texts);
            Ok::<_, Error>(erase.load(db).await?)
        });
        read.await
    }
}
