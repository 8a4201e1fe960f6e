//! Limits the items on a page of a list.

use prost::Message;

/// The maximum size of the items on a page in bytes, as gRPC encodes them. gRPC clients accept
/// messages of at most 4 MiB.
pub const LARGEST: usize = 2 << 20;

/// Cuts a list down to a page of at most `size` items and [`LARGEST`] bytes.
///
/// The first item stays regardless of its size. Returns whether more items follow; the next page
/// begins after the last item kept.
pub fn cut<M: Message>(items: &mut Vec<M>, size: usize) -> bool {
    cut_by(items, size, M::encoded_len)
}

/// Like [`cut`], with a function that returns the encoded size of an item.
pub fn cut_by<T>(items: &mut Vec<T>, size: usize, encoded: impl Fn(&T) -> usize) -> bool {
    let mut room = LARGEST;
    let fits = |item: &&T| {
        let left = room.checked_sub(encoded(item));
        room = left.unwrap_or_default();
        left.is_some()
    };
    let fitting = items.iter().take(size).take_while(fits).count();
    let shown = fitting.max(1.min(size));
    let goes_on = shown < items.len();
    items.truncate(shown);
    goes_on
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(sizes: &[usize], size: usize) -> (usize, bool) {
        let mut items = sizes.to_vec();
        let goes_on = cut_by(&mut items, size, |bytes| *bytes);
        assert_eq!(items, sizes[..items.len()]);
        (items.len(), goes_on)
    }

    #[test]
    fn a_page_ends_with_its_items_or_its_bytes() {
        assert_eq!(page(&[], 3), (0, false));
        assert_eq!(page(&[1, 1, 1], 3), (3, false));
        assert_eq!(page(&[1, 1, 1, 1], 3), (3, true));
        assert_eq!(page(&[LARGEST - 1, 1], 3), (2, false));
        assert_eq!(page(&[LARGEST - 1, 2, 1], 3), (1, true));
        assert_eq!(page(&[1, LARGEST, 1], 3), (1, true));
    }

    #[test]
    fn the_first_item_is_shown_whatever_its_size() {
        assert_eq!(page(&[LARGEST + 1], 3), (1, false));
        assert_eq!(page(&[2 * LARGEST, 1], 3), (1, true));
        assert_eq!(page(&[1], 0), (0, true));
    }

    #[test]
    fn messages_count_as_they_are_encoded() {
        let text = "x".repeat(LARGEST / 2);
        let mut items = vec![text.clone(), text.clone(), text];
        assert!(cut(&mut items, 3));
        assert_eq!(items.len(), 1, "the page size includes the encoded lengths");
    }
}
