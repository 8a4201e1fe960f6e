//! The most recently used values, by their digest.

use std::sync::Arc;

use parking_lot::Mutex;

/// The number of cached values. An index has a few megabytes.
const MOST: usize = 16;

/// The [`MOST`] most recently used values, latest first.
pub(crate) struct Recent<T>(Mutex<Vec<(Vec<u8>, Arc<T>)>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Recent<T> {
    pub(crate) fn get(&self, digest: &[u8]) -> Option<Arc<T>> {
        let mut list = self.0.lock();
        let place = list.iter().position(|(known, _)| known == digest)?;
        list[..=place].rotate_right(1);
        list.first().map(|(_, value)| Arc::clone(value))
    }

    pub(crate) fn add(&self, digest: &[u8], value: Arc<T>) -> Arc<T> {
        let mut list = self.0.lock();
        list.retain(|(known, _)| known != digest);
        list.truncate(MOST - 1);
        list.insert(0, (digest.to_vec(), Arc::clone(&value)));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ones_that_were_used_last_stay() {
        let recent = Recent::default();
        for number in 0..16 {
            recent.add(&[number], Arc::new(number));
        }
        assert_eq!(recent.get(&[0]).as_deref(), Some(&0));
        recent.add(&[16], Arc::new(16));
        assert_eq!(recent.get(&[1]), None, "it was least recently used");
        assert_eq!(recent.get(&[0]).as_deref(), Some(&0));
        assert_eq!(recent.get(&[16]).as_deref(), Some(&16));
    }
}
