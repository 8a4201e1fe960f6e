//! The Cedar entities of a request. Requests that share their facts also share these.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use cedar_policy_core::{ast::EntityUIDEntry, entities::Entities};

/// The principal, the action and the resource of a request, with their entities.
pub(crate) struct RequestEntities {
    /// Principal, action and resource.
    pub(crate) scope: [EntityUIDEntry; 3],
    pub(crate) entities: Entities,
}

/// A cell in facts that many requests share. It keeps the entities that were made first, with the
/// texts that they were made from. A request with other texts does not get them.
///
/// The cell is not part of the facts: it does not count in comparisons, and a copy of the facts has
/// an empty cell.
#[derive(Default)]
pub struct SharedEntities(OnceLock<Made>);

struct Made {
    of: Box<[Option<Box<str>>]>,
    entities: Arc<RequestEntities>,
}

impl Made {
    fn is_of<'t>(&self, mut texts: impl Iterator<Item = Option<&'t str>>) -> bool {
        let mut of = self.of.iter().map(Option::as_deref);
        texts.all(|text| of.next() == Some(text)) && of.next().is_none()
    }
}

impl SharedEntities {
    /// Returns the kept entities if they were made from `texts`. Otherwise makes them.
    pub(crate) fn get_or_make<'t>(
        &self,
        texts: impl Iterator<Item = Option<&'t str>> + Clone,
        make: impl FnOnce() -> Option<RequestEntities>,
    ) -> Option<Arc<RequestEntities>> {
        if let Some(made) = self.0.get().filter(|made| made.is_of(texts.clone())) {
            return Some(Arc::clone(&made.entities));
        }
        let entities = Arc::new(make()?);
        let of = texts.map(|text| text.map(Into::into)).collect();
        // Another request may have been first; its entities stay.
        let _ = self.0.set(Made { of, entities: Arc::clone(&entities) });
        Some(entities)
    }
}

impl Clone for SharedEntities {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for SharedEntities {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for SharedEntities {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("SharedEntities")
    }
}
