//! Entity tags: the version of a record that a client holds. See RFC 9110, 8.8.3 and 13.1.1.

use authority_model::record::Record;
use tonic::{Response, metadata::MetadataMap};

use super::error::Error;

/// The tag is the time of the last write in microseconds. It changes with every write.
fn tag(record: &impl Record) -> Option<String> {
    let at = record.updated_at().or_else(|| record.created_at())?;
    Some(format!("\"{:x}\"", at.micros()))
}

/// Returns the response with its record's tag.
pub(crate) fn tagged<R: Record>(mut response: Response<R>) -> Response<R> {
    if let Some(tag) = tag(response.get_ref()).and_then(|tag| tag.parse().ok()) {
        response.metadata_mut().insert("etag", tag);
    }
    response
}

/// The versions that a change may start from. If none is given, any version is accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct IfMatch(Option<String>);

impl IfMatch {
    pub(crate) fn of(metadata: &MetadataMap) -> Self {
        // Several header lines form one list (RFC 9110, 5.2). A line that isn't text matches no
        // version.
        let lines = metadata.get_all("if-match").iter().map(|line| line.to_str());
        let lines: Vec<_> = lines.map(Result::unwrap_or_default).collect();
        Self((!lines.is_empty()).then(|| lines.join(",")))
    }

    pub(crate) fn check(&self, record: &impl Record) -> Result<(), Error> {
        let Some(wanted) = &self.0 else { return Ok(()) };
        let is_tag = |one: &str| {
            let quoted = one.strip_prefix("W/").unwrap_or(one);
            one == "*" || (quoted.len() >= 2 && quoted.starts_with('"') && quoted.ends_with('"'))
        };
        if !wanted.split(',').map(str::trim).all(is_tag) {
            return Err(Error::field(
                "if-match",
                "must be an ETag in quotes, as responses have it",
            ));
        }
        let tag = tag(record).unwrap_or_default();
        // Compressing proxies mark tags as weak. A tag identifies a version, not bytes: both forms are
        // equal here.
        let strong = |one: &str| one.strip_prefix("W/").unwrap_or(one) == tag;
        let holds = wanted.split(',').map(str::trim).any(|one| one == "*" || strong(one));
        if holds { Ok(()) } else { Err(Error::Changed) }
    }
}
