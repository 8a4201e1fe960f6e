//! Removes a person from archived decisions.
//!
//! If a decision mentions the person, its context, its facts and the names in its report are
//! erased, as in the tables.

use authority_evidence::archive::{Manifest, Object};
use authority_store::RunQueryDsl;
use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Integer, Jsonb, Nullable, Text},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

use super::{Erased, Rewriting};
use crate::{
    Error,
    format::{self, entry::Entry, part::PartWriter},
    inspect::{Inspector, Target},
};

/// Selects the parts of each entry to erase. The rules are the same as for the tables.
const JUDGE: &str = "
    SELECT e.place,
           coalesce(e.context <> '' AND (($1 -> 'principals') ? e.subject OR person_mentioned($1, e.context)), false)
               AS context,
           person_mentioned($1, e.facts) AS facts,
           person_mentioned($1, e.blobs)
               OR EXISTS (SELECT FROM jsonb_array_elements_text($1 -> 'principals') AS principal
                          WHERE strpos(e.blobs, '\"id\":\"' || principal || '\",\"name\":') > 0) AS blobs,
           person_code($1, e.reporter) IS NOT NULL OR person_mentioned($1, e.detail) AS report,
           person_code($1, e.reporter) AS reporter
    FROM unnest($2, $3, $4, $5, $6, $7, $8)
         AS e (place, subject, context, facts, blobs, reporter, detail)";

#[derive(QueryableByName)]
pub(super) struct Judged {
    #[diesel(sql_type = Integer)]
    place: i32,
    #[diesel(sql_type = Bool)]
    context: bool,
    #[diesel(sql_type = Bool)]
    facts: bool,
    #[diesel(sql_type = Bool)]
    blobs: bool,
    #[diesel(sql_type = Bool)]
    report: bool,
    /// The code that replaces the reporter.
    #[diesel(sql_type = Nullable<Text>)]
    reporter: Option<String>,
}

impl Judged {
    pub(super) fn has_any(&self) -> bool {
        self.context || self.facts || self.blobs || self.report
    }
}

/// The input of a decision. It is in the bundle, or in `remains` if the bundle was erased.
#[derive(Default, Deserialize, Serialize)]
struct Basis<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    blobs: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    context: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    facts: Option<&'a RawValue>,
}

impl<'a> Basis<'a> {
    fn of(entry: &Entry<'a>) -> Result<Self, Error> {
        match entry.bundle.or(entry.remains) {
            Some(text) => Ok(serde_json::from_str(text.get()).map_err(format::Error::from)?),
            None => Ok(Self::default()),
        }
    }
}

/// The input arrays of [`JUDGE`], with one value for each entry.
#[derive(Default)]
struct Columns {
    places: Vec<i32>,
    subjects: Vec<String>,
    contexts: Vec<String>,
    facts: Vec<String>,
    blobs: Vec<String>,
    reporters: Vec<Option<String>>,
    details: Vec<Option<String>>,
}

impl Columns {
    fn add(&mut self, place: usize, line: &[u8]) -> Result<(), Error> {
        let entry = Entry::read(line)?;
        let basis = Basis::of(&entry)?;
        let text = |part: Option<&RawValue>| part.map(RawValue::get).unwrap_or_default().to_owned();
        self.places.push(i32::try_from(place).unwrap_or(i32::MAX));
        self.subjects.push(entry.summary()?.subject.into());
        self.contexts.push(text(basis.context));
        self.facts.push(text(basis.facts));
        self.blobs.push(text(basis.blobs));
        self.reporters.push(entry.report.as_ref().map(|report| report.reported_by.clone()));
        self.details.push(entry.report.and_then(|report| report.detail));
        Ok(())
    }
}

impl Rewriting<'_> {
    /// Rewrites the decisions and the index of a part without the person's data.
    ///
    /// Returns an empty list if the part has no data of the person.
    pub(super) async fn part(
        &self,
        manifest: &Manifest,
        decisions: &Object,
        index: &Object,
        erased: &mut Erased,
    ) -> Result<Vec<Object>, Error> {
        let (mut lines, judged) = self.judged(manifest, decisions, index).await?;
        let mut is_changed = false;
        for judged in judged {
            let place = usize::try_from(judged.place).unwrap_or(usize::MAX);
            let Some(line) = lines.get_mut(place) else { continue };
            if let Some(new) = without(line, judged, erased)? {
                (*line, is_changed) = (new, true);
            }
        }
        if !is_changed {
            return Ok(Vec::new());
        }
        let (tenant_id, number) = (manifest.tenant_id.clone(), decisions.part);
        let made = tokio::task::spawn_blocking(move || {
            let mut part = PartWriter::new(tenant_id, lines.len())?;
            lines.iter().try_for_each(|line| part.add(line))?;
            part.finish(number)
        });
        let Some(part) = made.await?? else { return Ok(Vec::new()) };
        Ok(vec![self.put(part.decisions, decisions).await?, self.put(part.index, index).await?])
    }

    /// Reads the lines of a part, and determines what to erase in each line.
    pub(super) async fn judged(
        &self,
        manifest: &Manifest,
        decisions: &Object,
        index: &Object,
    ) -> Result<(Vec<Vec<u8>>, Vec<Judged>), Error> {
        let lines = self.lines(manifest, decisions, index).await?;
        let mut columns = Columns::default();
        for (place, line) in lines.iter().enumerate() {
            if self.person.needles.are_in(line) {
                columns.add(place, line)?;
            }
        }
        let judged = self.judge(columns).await?;
        Ok((lines, judged))
    }

    async fn lines(
        &self,
        manifest: &Manifest,
        decisions: &Object,
        index: &Object,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&lines);
        let each = Arc::new(move |_: &_, line: &[u8]| {
            into.lock().push(line.to_vec());
            Ok(())
        });
        let inspector = Inspector { bucket: self.bucket, folder: self.folder, manifest };
        inspector.inspect(&Target::Part { decisions, index }, each).await?;
        Ok(std::mem::take(&mut *lines.lock()))
    }

    async fn judge(&self, columns: Columns) -> Result<Vec<Judged>, Error> {
        if columns.places.is_empty() {
            return Ok(Vec::new());
        }
        let person = self.person.parameter.clone();
        let read = self.eraser.store.read_tx(self.scope, async move |db| {
            let judge = diesel::sql_query(JUDGE)
                .bind::<Jsonb, _>(&person)
                .bind::<Array<Integer>, _>(columns.places)
                .bind::<Array<Text>, _>(columns.subjects)
                .bind::<Array<Text>, _>(columns.contexts)
                .bind::<Array<Text>, _>(columns.facts)
                .bind::<Array<Text>, _>(columns.blobs)
                .bind::<Array<Nullable<Text>>, _>(columns.reporters)
                .bind::<Array<Nullable<Text>>, _>(columns.details);
            Ok::<_, Error>(judge.load(db).await?)
        });
        read.await
    }
}

/// Returns the entry without the erased parts; `None` if the entry is unchanged.
fn without(line: &[u8], judged: Judged, erased: &mut Erased) -> Result<Option<Vec<u8>>, Error> {
    let mut entry = Entry::read(line)?;
    let pack = entry.pack_text()?;
    let mut basis = Basis::of(&entry)?;
    if !judged.has_any() {
        return Ok(None);
    }
    let is_part = judged.context || judged.facts || judged.blobs;
    if let Some(report) = entry.report.as_mut().filter(|_| judged.report) {
        report.reported_by = judged.reporter.unwrap_or_else(|| report.reported_by.clone());
        (report.detail, report.record) = (None, String::new());
        erased.reports += 1;
    }
    if judged.context {
        basis.context = None;
        erased.contexts += 1;
    }
    if judged.facts {
        basis.facts = None;
        erased.facts += 1;
    }
    if judged.facts || judged.blobs {
        erased.facts += i64::from(basis.blobs.is_some() && judged.blobs);
        basis.blobs = None;
    }
    let remains = serde_json::to_string(&basis).map_err(format::Error::from)?;
    let json = |text| serde_json::from_str::<&RawValue>(text).map_err(format::Error::from);
    if is_part {
        entry.bundle = None;
        entry.pack = Some(json(pack)?);
        entry.remains = Some(json(&remains)?);
    }
    Ok(Some(entry.write()?))
}
