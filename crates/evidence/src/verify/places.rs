//! Checks the completeness of an export by the places of its decisions in the log.

use std::collections::BTreeMap;

use authority_ids::TenantId;

use super::{
    export::{ExportFault, Exported},
    fault::{Fault, need},
    file::verify,
    read,
    trust::{Trust, Valid},
};
use crate::bundle::BUNDLE_KIND;

/// The leaves of a log that belong to an export: all from the first to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSpan {
    pub origin: String,
    pub first: u64,
    pub last: u64,
}

/// The places of an export's decisions in the log. A gap is a decision missing from the export.
///
/// The places are kept as spans. The service seals decisions nearly in the order of their ids.
/// Therefore only a few spans exist at a time.
#[derive(Default)]
pub struct LogPlaces {
    lines: u64,
    /// By origin: each span's last index by its first index.
    spans: BTreeMap<String, BTreeMap<u64, u64>>,
}

impl LogPlaces {
    /// Verifies the next pack or bundle. It must belong to the export's next decision.
    ///
    /// # Errors
    /// The pack is not valid, is of another decision, or has no place of its own in the tenant's
    /// log.
    pub fn pack(
        &mut self,
        text: &[u8],
        exported: &Exported,
        trust: &Trust,
    ) -> Result<(), ExportFault> {
        self.lines += 1;
        let added = self.add(text, exported, trust);
        added.map_err(|fault| ExportFault::Pack { line: self.lines, fault })
    }

    fn add(&mut self, text: &[u8], exported: &Exported, trust: &Trust) -> Result<(), Fault> {
        let document = read::strict(text)?;
        let is_bundle = document["kind"] == BUNDLE_KIND;
        let (pack, at) = if is_bundle { (&document["pack"], "pack.") } else { (&document, "") };
        let (id, line) = (&exported.decision_id, exported.line);
        let what = format!("must be `{id}`, the decision of line {line} of the export");
        let same = pack["decision_id"] == id.as_str();
        need(same, &format!("{at}decision_id"), &what)?;
        let is_trusted = verify(text, trust)? == Valid::Trusted;
        let what = "the log's key is not known: pass --checkpoint-key, or a JWK set with it";
        need(is_trusted, &format!("{at}log.proof"), what)?;
        let origin = pack["log"]["origin"].as_str().unwrap_or_default();
        let slug = origin.rsplit_once("/log/").and_then(|(_, rest)| rest.split('/').next());
        let own = slug.and_then(|slug| TenantId::from_slug(slug).ok());
        let own = own.is_some_and(|tenant| tenant.as_str() == exported.tenant_id);
        need(own, &format!("{at}log.origin"), "is not the tenant's log")?;
        let index = pack["log"]["index"].as_u64().unwrap_or_default();
        let is_new = insert(self.spans.entry(origin.to_owned()).or_default(), index);
        need(is_new, &format!("{at}log.index"), "is also the index of another pack")
    }

    /// Returns the spans, one for each epoch of the log.
    ///
    /// # Errors
    /// A leaf between the first and the last is missing.
    pub fn finish(self) -> Result<Vec<LogSpan>, ExportFault> {
        let whole = self.spans.into_iter().map(|(origin, spans)| {
            let leaves: u64 = spans.iter().map(|(first, last)| last - first + 1).sum();
            let first = spans.keys().next().copied().unwrap_or_default();
            let last = spans.values().next_back().copied().unwrap_or_default();
            let count = last + 1 - first - leaves;
            if count > 0 {
                let first = spans.values().next().map_or(0, |last| last + 1);
                return Err(ExportFault::Missing { origin, first, count });
            }
            Ok(LogSpan { origin, first, last })
        });
        whole.collect()
    }
}

/// Adds an index, and merges spans that then touch. Returns whether the index is new.
fn insert(spans: &mut BTreeMap<u64, u64>, index: u64) -> bool {
    let before = spans.range(..=index).next_back().map(|(first, last)| (*first, *last));
    if before.is_some_and(|(_, last)| last >= index) {
        return false;
    }
    let last = spans.remove(&(index + 1)).unwrap_or(index);
    let first = before.filter(|(_, last)| last + 1 == index).map_or(index, |(first, _)| first);
    spans.insert(first, last);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(indexes: &[u64]) -> LogPlaces {
        let mut spans = BTreeMap::new();
        for index in indexes {
            assert!(insert(&mut spans, *index), "{index}");
        }
        LogPlaces { lines: 0, spans: BTreeMap::from([("a/log/acme".to_owned(), spans)]) }
    }

    #[test]
    fn a_missing_index_is_found_in_any_order() {
        let origin = || "a/log/acme".to_owned();
        for indexes in [[3, 4, 5, 6], [6, 5, 4, 3], [4, 6, 3, 5], [3, 5, 4, 6]] {
            let whole = vec![LogSpan { origin: origin(), first: 3, last: 6 }];
            assert_eq!(places(&indexes).finish(), Ok(whole), "{indexes:?}");
        }
        for (indexes, first, count) in
            [([3, 4, 6], 5, 1), ([9, 3, 4], 5, 4), ([0, 2, 4], 1, 2), ([7, 4, 5], 6, 1)]
        {
            let missing = ExportFault::Missing { origin: origin(), first, count };
            assert_eq!(places(&indexes).finish(), Err(missing), "{indexes:?}");
        }
        let mut spans = BTreeMap::from([(3, 6), (8, 8)]);
        assert!([3, 5, 6, 8].iter().all(|index| !insert(&mut spans, *index)));
        assert_eq!(spans, BTreeMap::from([(3, 6), (8, 8)]));
    }
}
