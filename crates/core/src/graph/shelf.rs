//! Rows in memory, found by their own id and by what they hang on.

use std::{
    borrow::Borrow,
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    sync::Arc,
};

/// A row with an id of its own.
pub(super) trait Row {
    fn id(&self) -> &str;
}

/// A row that hangs on another: a delegation on its delegate, a grant on its resource.
pub(super) trait Hangs: Row {
    fn on(&self) -> &str;
}

/// Found by id without keeping the id twice: a million rows feel it.
struct ById<T>(Arc<T>);

impl<T: Row> Borrow<str> for ById<T> {
    fn borrow(&self) -> &str {
        self.0.id()
    }
}

impl<T: Row> Hash for ById<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl<T: Row> PartialEq for ById<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl<T: Row> Eq for ById<T> {}

/// Rows by id.
pub(super) struct Shelf<T>(HashSet<ById<T>>);

impl<T: Row> Default for Shelf<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<T: Row> Shelf<T> {
    pub(super) fn get(&self, id: &str) -> Option<&Arc<T>> {
        self.0.get(id).map(|row| &row.0)
    }

    /// Puts a row in the place of the one with its id; answers that one.
    pub(super) fn put(&mut self, row: Arc<T>) -> Option<Arc<T>> {
        self.0.replace(ById(row)).map(|was| was.0)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<T>> {
        self.0.take(id).map(|was| was.0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.iter().map(|row| &row.0)
    }
}

/// Rows by id and by what they hang on, in order of id there: what is gathered is hashed.
pub(super) struct Branches<T> {
    rows: Shelf<T>,
    by_stem: HashMap<Box<str>, Vec<Arc<T>>>,
}

impl<T: Hangs> Default for Branches<T> {
    fn default() -> Self {
        Self { rows: Shelf::default(), by_stem: HashMap::new() }
    }
}

impl<T: Hangs> Branches<T> {
    pub(super) fn get(&self, id: &str) -> Option<&Arc<T>> {
        self.rows.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.rows.iter()
    }

    /// All that hangs on `stem`, by id.
    pub(super) fn on(&self, stem: &str) -> &[Arc<T>] {
        self.by_stem.get(stem).map_or(&[], Vec::as_slice)
    }

    pub(super) fn put(&mut self, row: Arc<T>) {
        if let Some(was) = self.rows.put(Arc::clone(&row)) {
            self.cut(&was);
        }
        if let Some(rows) = self.by_stem.get_mut(row.on()) {
            let place = rows.partition_point(|other| other.id() < row.id());
            rows.insert(place, row);
        } else {
            self.by_stem.insert(row.on().into(), vec![row]);
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        if let Some(was) = self.rows.remove(id) {
            self.cut(&was);
        }
    }

    fn cut(&mut self, row: &T) {
        if let Some(rows) = self.by_stem.get_mut(row.on()) {
            rows.retain(|other| other.id() != row.id());
            if rows.is_empty() {
                self.by_stem.remove(row.on());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Leaf(&'static str, &'static str);

    impl Row for Leaf {
        fn id(&self) -> &str {
            self.0
        }
    }

    impl Hangs for Leaf {
        fn on(&self) -> &str {
            self.1
        }
    }

    #[test]
    fn a_row_that_moves_leaves_its_old_place() {
        let mut branches = Branches::default();
        for leaf in [Leaf("b", "x"), Leaf("a", "x"), Leaf("c", "y"), Leaf("b", "y")] {
            branches.put(Arc::new(leaf));
        }
        let on = |stem| branches.on(stem).iter().map(|leaf| leaf.0).collect::<Vec<_>>();
        assert_eq!((on("x"), on("y")), (vec!["a"], vec!["b", "c"]));
        assert_eq!(branches.get("b").map(|leaf| leaf.1), Some("y"));
        branches.remove("a");
        assert!(branches.on("x").is_empty());
    }
}
