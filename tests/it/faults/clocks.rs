//! A node with a wrong clock: it warns first and then refuses to decide.

use std::time::{Duration, Instant};

use authority_process::clock::Clock;
use chrono::TimeDelta;

use super::{figures::figure, process::allowed};
use crate::support::{Client, TestApp, Wishes};

/// Waits until an evaluate call has this status. Returns its decision or its error code.
async fn until(client: &Client, wanted: u16) -> String {
    let begun = Instant::now();
    loop {
        let (status, answer) = client.evaluate(allowed()).await;
        if status == wanted {
            return answer["decision"].as_str().unwrap_or_default().to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "still {status}: {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_too_far_from_the_databases_clock_is_not_ready_and_decides_nothing() {
    let right = TestApp::seeded().await;
    let demo = right.demo().await;
    for off in [120, -120] {
        let clock = Clock::wrong(TimeDelta::seconds(off));
        let node = right.beside(Wishes { clock: clock.clone(), ..Wishes::default() }).await;
        let client = node.client(&demo.api_key);
        // The node refuses from the start, because it measures its clock before the first response.
        let (status, answer) = client.evaluate(allowed()).await;
        assert_eq!((status, &answer["error"]), (503, &"unavailable".into()), "{off}: {answer}");
        let (status, answer) = client.get("/health/ready").await;
        assert_eq!(status, 503, "{answer}");
        assert!(super::readiness::fault(&answer, "clock").is_some(), "{answer}");

        // After the clock is corrected to 2 seconds off, within the limit of 5 seconds, the node
        // decides.
        clock.advance(TimeDelta::seconds(if off > 0 { -118 } else { 118 }));
        assert_eq!(until(&client, 200).await, "allow");
        let begun = Instant::now();
        while client.get("/health/ready").await.0 != 200 {
            assert!(begun.elapsed() < Duration::from_secs(20), "the node decides but is not ready");
        }
        // The node also notices a clock that becomes wrong while it runs.
        clock.advance(TimeDelta::seconds(off));
        let begun = Instant::now();
        until(&client, 503).await;
        let after = begun.elapsed().as_secs_f64();
        figure(&format!("a clock {off} s off"), &format!("no decisions after {after:.1} s"));
    }
}
