//! Exports: one at a time for each caller. An export ends when its caller's credential ends.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{Caller, CallerKind, Exports, Pages},
};
use futures_util::StreamExt as _;
use tonic::Code;

/// An export with this many pages of two lines each.
struct Counted(usize);

impl Pages for Counted {
    type Line = usize;

    async fn next(&mut self) -> Result<Vec<usize>, ApiError> {
        self.0 = self.0.saturating_sub(1);
        Ok(if self.0 == 0 { Vec::new() } else { vec![self.0, self.0] })
    }

    fn end(&self) -> usize {
        0
    }
}

fn caller(subject: &str) -> Caller {
    let (issuer, subject) = ("https://idp".to_owned(), subject.to_owned());
    let kind = CallerKind::Owner { issuer, subject, email: None };
    Caller { actor: "a".to_owned(), kind, until: None, authenticated_at: None }
}

#[tokio::test]
async fn a_caller_has_one_export_at_a_time() {
    let exports = Exports::new(Arc::new(|_| Ok(())));
    let first = exports.stream(caller("a"), Counted(3)).await.unwrap();
    let second = exports.stream(caller("a"), Counted(3)).await.err().unwrap();
    assert_eq!(second.code, ErrorCode::RateLimited);
    drop(exports.stream(caller("b"), Counted(3)).await.unwrap());
    let lines: Vec<_> = first.into_inner().map(Result::unwrap).collect().await;
    assert_eq!(lines, [2, 2, 1, 1, 0]);
    drop(exports.stream(caller("a"), Counted(1)).await.unwrap());
    // After a cancelled export, the caller can start another one.
    let left = exports.stream(caller("a"), Counted(3)).await.unwrap();
    drop(left);
    drop(exports.stream(caller("a"), Counted(3)).await.unwrap());
}

#[tokio::test]
async fn an_export_ends_with_its_callers_credential() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let exports = Exports::new(Arc::new(move |_| {
        let left = count.fetch_add(1, Ordering::Relaxed) < 3;
        if left { Ok(()) } else { Err(ApiError::plain(ErrorCode::Unauthenticated)) }
    }));
    let lines = exports.stream(caller("a"), Counted(usize::MAX)).await.unwrap();
    let lines: Vec<_> = lines.into_inner().collect().await;
    assert_eq!(lines.len(), 4);
    assert!(lines[..3].iter().all(Result::is_ok));
    assert_eq!(lines[3].as_ref().unwrap_err().code(), Code::Unauthenticated);
    // The credential is checked for each line. Lines of a page that is already in memory are not
    // sent.
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}
