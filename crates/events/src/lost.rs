//! Events that retention deleted before a cursor reached them.

/// A range of sequences in which events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The number of lost events. Other events in the range may have been sent.
    pub(crate) events: i64,
}

impl Lost {
    /// Returns the gap between a position and the next event of the log, if any.
    ///
    /// If `next` is `None`, the gap ends at `last`. Sequences are assigned without gaps and
    /// committed in order. A missing event was therefore deleted.
    pub(crate) fn before(position: i64, next: Option<i64>, last: i64) -> Option<Self> {
        let to = next.map_or(last, |next| next - 1);
        (to > position).then(|| Self { from: position + 1, to, events: to - position })
    }

    pub(crate) fn one(sequence: i64) -> Self {
        Self { from: sequence, to: sequence, events: 1 }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
            events: self.events + other.events,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_before_the_next_event_is_lost() {
        assert_eq!(Lost::before(0, Some(1), 9), None);
        assert_eq!(Lost::before(4, Some(8), 9), Some(Lost { from: 5, to: 7, events: 3 }));
        assert_eq!(Lost::before(4, None, 9), Some(Lost { from: 5, to: 9, events: 5 }));
        assert_eq!(Lost::before(9, None, 9), None);
        assert_eq!(Lost::one(9).and(Lost::one(2)), Lost { from: 2, to: 9, events: 2 });
    }
}
