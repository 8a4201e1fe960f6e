//! Rows in memory, indexed by id and by parent.

use std::{
    borrow::Borrow,
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    sync::Arc,
};

/// A row with an id of its own.
pub(super) trait IndexedRow {
    fn id(&self) -> &str;
}

/// A row with a parent: a delegation under its delegate, a grant under its resource.
pub(super) trait HasParent: IndexedRow {
    fn on(&self) -> &str;
}

/// Hashes a row by its id, which avoids storing the id twice. This matters for a million rows.
struct IdKeyed<T>(Arc<T>);

impl<T: IndexedRow> Borrow<str> for IdKeyed<T> {
    fn borrow(&self) -> &str {
        self.0.id()
    }
}

impl<T: IndexedRow> Hash for IdKeyed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl<T: IndexedRow> PartialEq for IdKeyed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl<T: IndexedRow> Eq for IdKeyed<T> {}

/// Rows by id.
pub(super) struct ById<T>(HashSet<IdKeyed<T>>);

impl<T: IndexedRow> Default for ById<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<T: IndexedRow> ById<T> {
    pub(super) fn get(&self, id: &str) -> Option<&Arc<T>> {
        self.0.get(id).map(|row| &row.0)
    }

    /// Replaces the row with the same id. Returns the old row.
    pub(super) fn put(&mut self, row: Arc<T>) -> Option<Arc<T>> {
        self.0.replace(IdKeyed(row)).map(|was| was.0)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<T>> {
        self.0.take(id).map(|was| was.0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.iter().map(|row| &row.0)
    }
}

/// Rows by id and by parent. The rows of a parent are in order of id: gathered facts are hashed,
/// and need a stable order.
pub(super) struct Indexed<T> {
    rows: ById<T>,
    by_parent: HashMap<Box<str>, Vec<Arc<T>>>,
}

impl<T: HasParent> Default for Indexed<T> {
    fn default() -> Self {
        Self { rows: ById::default(), by_parent: HashMap::new() }
    }
}

impl<T: HasParent> Indexed<T> {
    pub(super) fn get(&self, id: &str) -> Option<&Arc<T>> {
        self.rows.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.rows.iter()
    }

    /// Returns the rows of `parent`, in order of id.
    pub(super) fn on(&self, parent: &str) -> &[Arc<T>] {
        self.by_parent.get(parent).map_or(&[], Vec::as_slice)
    }

    pub(super) fn put(&mut self, row: Arc<T>) {
        if let Some(was) = self.rows.put(Arc::clone(&row)) {
            self.cut(&was);
        }
        if let Some(rows) = self.by_parent.get_mut(row.on()) {
            let place = rows.partition_point(|other| other.id() < row.id());
            rows.insert(place, row);
        } else {
            self.by_parent.insert(row.on().into(), vec![row]);
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        if let Some(was) = self.rows.remove(id) {
            self.cut(&was);
        }
    }

    fn cut(&mut self, row: &T) {
        if let Some(rows) = self.by_parent.get_mut(row.on()) {
            rows.retain(|other| other.id() != row.id());
            if rows.is_empty() {
                self.by_parent.remove(row.on());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Leaf(&'static str, &'static str);

    impl IndexedRow for Leaf {
        fn id(&self) -> &str {
            self.0
        }
    }

    impl HasParent for Leaf {
        fn on(&self) -> &str {
            self.1
        }
    }

    #[test]
    fn a_row_that_moves_leaves_its_old_place() {
        let mut branches = Indexed::default();
        for leaf in [Leaf("b", "x"), Leaf("a", "x"), Leaf("c", "y"), Leaf("b", "y")] {
            branches.put(Arc::new(leaf));
        }
        let on = |parent| branches.on(parent).iter().map(|leaf| leaf.0).collect::<Vec<_>>();
        assert_eq!((on("x"), on("y")), (vec!["a"], vec!["b", "c"]));
        assert_eq!(branches.get("b").map(|leaf| leaf.1), Some("y"));
        branches.remove("a");
        assert!(branches.on("x").is_empty());
    }
}
