//! Tests of the order of calls, without a clock.

use super::*;

/// The queue's length in these tests.
const MOST: usize = 1000;
const ONE: Size = Size { decisions: 1, bytes: 100 };

fn tenant(slug: &str) -> TenantId {
    TenantId::from_slug(slug).unwrap()
}

/// Enters `count` calls and returns the waiting ones.
#[track_caller]
fn enter(
    turns: &mut Turns<()>,
    slug: &str,
    size: Size,
    count: usize,
) -> Vec<oneshot::Receiver<()>> {
    let tenant_id = tenant(slug);
    let mut waiting = Vec::new();
    for number in 0..count {
        match turns.enter(&tenant_id, size, MOST) {
            Entered::Working { .. } => {}
            Entered::Waiting(place) => waiting.push(place),
            Entered::Full => panic!("{slug}: {number} of {count} entered"),
        }
    }
    waiting
}

/// Completes `done` decisions of a tenant. Returns the tenants of the next calls.
fn served(turns: &mut Turns<()>, slug: &str, done: usize) -> Vec<String> {
    for _ in 0..done {
        turns.leave(&tenant(slug), ONE);
    }
    std::iter::from_fn(|| turns.next()).map(|(id, _)| id.slug().to_owned()).collect()
}

fn count(served: &[String], slug: &str) -> usize {
    served.iter().filter(|one| *one == slug).count()
}

#[test]
fn a_call_of_a_tenant_without_any_does_not_wait_for_a_flood() {
    let mut turns = Turns::default();
    let flood = enter(&mut turns, "flood", ONE, WORKING + MOST);
    assert_eq!(flood.len(), MOST);
    assert!(enter(&mut turns, "polite", ONE, FEW).is_empty());
    // These calls have places. The next call waits and is among the first to be served.
    let _polite = enter(&mut turns, "polite", ONE, 1);
    let next = served(&mut turns, "flood", QUANTUM + FEW + 1);
    assert_eq!(count(&next, "polite"), 1, "{next:?}");
}

#[test]
fn tenants_share_equally_whatever_they_ask() {
    let mut turns = Turns::default();
    let _flood = enter(&mut turns, "flood", ONE, WORKING + 700);
    let _other = enter(&mut turns, "other", ONE, FIRST + 150);
    let _batches = enter(&mut turns, "batches", Size { decisions: 50, bytes: 100 }, 2);
    let next = served(&mut turns, "flood", WORKING);
    let (flood, other) = (count(&next, "flood"), count(&next, "other"));
    assert!(flood.abs_diff(other) <= QUANTUM, "{flood} and {other}");
    assert_eq!(count(&next, "batches"), 1, "a hundred decisions in two calls, with one new call");
}

#[test]
fn a_full_queue_refuses_the_tenant_with_the_longest_sub_queue() {
    let mut turns = Turns::default();
    let mut flood = enter(&mut turns, "flood", ONE, WORKING + MOST);
    assert!(turns.is_full_for(&tenant("flood"), MOST));
    assert!(matches!(turns.enter(&tenant("flood"), ONE, MOST), Entered::Full));
    assert!(!turns.is_full_for(&tenant("polite"), MOST));
    let polite = enter(&mut turns, "polite", ONE, FEW + MOST / 2);
    // The first calls have places. The further calls displaced only the last calls of the flood,
    // until both tenants have the same number of calls.
    assert!(turns.is_full_for(&tenant("polite"), MOST));
    let refused = flood.iter_mut().filter_map(|place| place.try_recv().err());
    let refused = refused.filter(|why| *why == oneshot::error::TryRecvError::Closed).count();
    assert_eq!(refused, polite.len());
    let last = flood.last_mut().unwrap().try_recv().err();
    assert_eq!(last, Some(oneshot::error::TryRecvError::Closed));
    assert_eq!(flood[0].try_recv().err(), Some(oneshot::error::TryRecvError::Empty));
    assert_eq!(turns.queued(), MOST);
}

#[test]
fn a_queue_that_has_become_too_long_is_not_cut_for_one_call() {
    let mut turns = Turns::default();
    let mut flood = enter(&mut turns, "flood", ONE, WORKING + MOST);
    let _first = enter(&mut turns, "polite", ONE, FEW);
    let slower = MOST / 4;
    let entered = turns.enter(&tenant("polite"), ONE, slower);
    assert!(matches!(entered, Entered::Waiting(_)));
    let refused = flood.iter_mut().filter_map(|place| place.try_recv().err());
    let refused = refused.filter(|why| *why == oneshot::error::TryRecvError::Closed).count();
    assert_eq!((refused, turns.queued()), (1, MOST));
}

#[test]
fn a_batch_counts_with_its_size() {
    let mut turns = Turns::default();
    let hundred = Size { decisions: 100, bytes: 100 };
    let waiting = enter(&mut turns, "flood", hundred, WORKING.div_ceil(100) + MOST / 100);
    assert_eq!(waiting.len(), MOST / 100);
    assert!(matches!(turns.enter(&tenant("flood"), hundred, MOST), Entered::Full));
}

#[test]
fn bytes_are_bounded_too() {
    let mut turns = Turns::default();
    let large = Size { decisions: 1, bytes: 1 << 20 };
    let _waiting = enter(&mut turns, "large", large, BYTES >> 20);
    assert!(matches!(turns.enter(&tenant("large"), large, MOST), Entered::Full));
    assert!(turns.is_full_for(&tenant("large"), MOST), "its bodies need not be read");
    // All of these calls are in progress and can't be refused. The first calls of another tenant
    // have their own room.
    for number in 0..FIRST_BYTES >> 20 {
        let other = tenant(&format!("t{}", number / FEW));
        assert!(!turns.is_full_for(&other, MOST));
        assert!(matches!(turns.enter(&other, large, MOST), Entered::Working { .. }));
    }
    assert!(turns.is_full_for(&tenant("last"), MOST));
    assert!(matches!(turns.enter(&tenant("last"), large, MOST), Entered::Full));
}

#[test]
fn callers_that_have_left_take_no_place() {
    let mut turns = Turns::default();
    let left = enter(&mut turns, "flood", ONE, WORKING + MOST);
    drop(left);
    // All waiting callers have left.
    let stays = enter(&mut turns, "flood", ONE, 1);
    assert_eq!((stays.len(), turns.queued()), (1, 1));
    drop(stays);
    assert!(served(&mut turns, "flood", WORKING).is_empty());
    assert!(turns.tenants.is_empty() && turns.order.is_empty());
    assert_eq!((turns.queued, turns.working, turns.bytes), (0, 0, 0));
}
