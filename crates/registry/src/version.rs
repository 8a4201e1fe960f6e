//! Entity tags: the version of a record that a client holds (RFC 9110, 8.8.3 and 13.1.1).

use authority_model::record::Record;
use tonic::{Response, metadata::MetadataMap};

use super::Error;

/// The time of the last write, to the microsecond, so that it changes with every write.
fn tag(record: &impl Record) -> Option<String> {
    let at = record.updated_at().or_else(|| record.created_at())?;
    Some(format!("\"{:x}\"", at.micros()))
}

/// The response with its record's tag.
pub(super) fn tagged<R: Record>(mut response: Response<R>) -> Response<R> {
    if let Some(tag) = tag(response.get_ref()).and_then(|tag| tag.parse().ok()) {
        response.metadata_mut().insert("etag", tag);
    }
    response
}

/// The versions that a change may start from; any if none is given.
#[derive(Clone, Debug, Default)]
pub(super) struct IfMatch(Option<String>);

impl IfMatch {
    pub(super) fn of(metadata: &MetadataMap) -> Self {
        // Several header lines form one list (RFC 9110, 5.2). A line that isn't text names no version.
        let lines = metadata.get_all("if-match").iter().map(|line| line.to_str());
        let lines: Vec<_> = lines.map(Result::unwrap_or_default).collect();
        Self((!lines.is_empty()).then(|| lines.join(",")))
    }

    pub(super) fn check(&self, record: &impl Record) -> Result<(), Error> {
        let Some(wanted) = &self.0 else { return Ok(()) };
        let tag = tag(record).unwrap_or_default();
        let holds = wanted.split(',').map(str::trim).any(|one| one == "*" || one == tag);
        if holds { Ok(()) } else { Err(Error::Changed) }
    }
}
