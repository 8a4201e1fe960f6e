//! What the relay waits for: lists of tools, and decisions about a client's responses.

use std::{collections::HashSet, sync::Arc, time::Duration};

use crate::mcp::{
    definition::{Definition, Page, page},
    event::{CallId, Grants},
    message::Id,
};

/// The most pages that are kept, and the largest, in bytes.
const MOST_KEPT: usize = 8;
const LARGEST_KEPT: usize = 256 * 1024;

/// Why the server's tools are listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Purpose {
    Call(CallId),
    /// For a list of the client.
    Client,
    /// To report changes.
    Observe,
}

/// The relay's own request for the server's tools, which asks for one page after the other.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) running: Option<Running>,
    /// Purposes that came after the running one had begun: its answer may be older than they are.
    pub(super) queued: Vec<Purpose>,
    /// The latest different pages and their texts. Nearly every list is the same as the one before.
    kept: Vec<(String, Page)>,
}

impl Listing {
    /// Reads a page of the server's tools. A page with the same bytes has the same tools.
    pub(super) fn read(&mut self, text: &str) -> Result<Page, String> {
        if let Some((_, page)) = self.kept.iter().find(|(kept, _)| kept == text) {
            return Ok(page.clone());
        }
        let read = page(text)?;
        if text.len() <= LARGEST_KEPT {
            self.kept.truncate(MOST_KEPT - 1);
            self.kept.insert(0, (text.to_owned(), read.clone()));
        }
        Ok(read)
    }
}

pub(super) struct Running {
    pub(super) id: Id,
    pub(super) began_at: Duration,
    pub(super) purposes: Vec<Purpose>,
    pub(super) found: Vec<Arc<Definition>>,
}

/// A client's `tools/list`, and what it still waits for.
pub(super) struct ListRequest {
    pub(super) id: Id,
    pub(super) stateless: bool,
    pub(super) definitions: Option<Vec<Arc<Definition>>>,
    pub(super) grants: Option<Grants>,
    /// Whether the record was read after the request.
    pub(super) has_record: bool,
}

/// A client's response to a request of the server. It is forwarded once each running call permits it.
pub(super) struct WaitingAnswer {
    pub(super) line: Vec<u8>,
    pub(super) waits_for: HashSet<CallId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_whose_list_always_differs_takes_no_more_memory() {
        let mut listing = Listing::default();
        for place in 0..100 {
            let text = format!(r#"{{"tools":[{{"name":"t{place}"}}]}}"#);
            let name = listing.read(&text).unwrap().definitions[0].name.clone();
            assert_eq!(name, format!("t{place}"));
        }
        let large = format!(r#"{{"tools":[],"x":"{}"}}"#, "x".repeat(LARGEST_KEPT));
        assert!(listing.read(&large).unwrap().definitions.is_empty());
        assert_eq!(listing.kept.len(), MOST_KEPT);
        assert!(listing.read("{}").is_err() && listing.read("{}").is_err());
    }
}
