//! A thousand open streams: their memory, their latency, and a shutdown that they do not delay.

use authority_process::clock::Clock;
use std::time::{Duration, Instant};

use authority_model::proto::runtime::{
    StopConditionEvent, WatchStopConditionsRequest, runtime_service_client::RuntimeServiceClient,
};
use futures_util::future::join_all;
use serde_json::Value;
use tonic::{Code, Request, Streaming, metadata::MetadataValue, transport::Channel};

use super::{TENANT, asking, demo, nobody_watches, speed::committed};
use crate::{
    faults::process::{Folder, Service},
    support::{Answered, Client, only},
};

const STREAMS: usize = 1000;
const CONNECTIONS: usize = 8;
const MOST: usize = 100 << 20;
/// The drain may take ten seconds, but the streams must end sooner.
const PROMPT: Duration = Duration::from_secs(5);

/// Makes one decision for each stream.
async fn decisions(client: &Client) -> Vec<String> {
    let mut ids = Vec::new();
    for batch in 0..STREAMS / 100 {
        let amount = |place: usize| f64::from(u32::try_from(batch * 100 + place + 1).unwrap());
        let requests: Vec<_> = (0..100).map(|place| asking(amount(place), "DE")).collect();
        let answer = client.batch_evaluate(only("requests", &requests)).await.assert_status(200);
        let id = |result: &Value| result["answer"]["decision_id"].as_str().unwrap().to_owned();
        ids.extend(answer["results"].as_array().unwrap().iter().map(id));
    }
    ids
}

async fn open(
    mut grpc: RuntimeServiceClient<Channel>,
    token: &str,
    decision_id: String,
) -> Streaming<StopConditionEvent> {
    let mut request = Request::new(WatchStopConditionsRequest { decision_id });
    let bearer: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    let mut events = grpc.watch_stop_conditions(request).await.unwrap().into_inner();
    assert_eq!(events.message().await.unwrap().unwrap().kind, "heartbeat");
    events
}

/// Opens a stream for each decision, over a few connections.
async fn open_all(client: &Client, ids: &[String]) -> Vec<Streaming<StopConditionEvent>> {
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        let channel = Channel::from_shared(client.base.clone()).unwrap();
        channels.push(RuntimeServiceClient::new(channel.connect().await.unwrap()));
    }
    let mut streams = Vec::new();
    for some in ids.chunks(100) {
        let opened = some.iter().enumerate().map(|(place, id)| {
            open(channels[place % CONNECTIONS].clone(), &client.token, id.clone())
        });
        streams.extend(join_all(opened).await);
    }
    streams
}

/// The service runs in a separate process so that memory of the client and of other tests is not
/// counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_cost_little_and_end_with_the_service() {
    let folder = Folder::new("streams");
    let mut service = Service::start(&folder);
    let client = service.client.clone();
    let idle = service.memory();
    let ids = decisions(&client).await;
    let decided = service.memory();
    let streams = open_all(&client, &ids).await;
    let open = service.memory();
    // The streams first reuse memory that the decisions freed: the growth is measured from idle.
    let grown = open.saturating_sub(idle);
    println!(
        "{STREAMS} streams: {} KiB resident, {} KiB more than idle: {} KiB came with the \
         decisions and {} KiB with the streams",
        open >> 10,
        grown >> 10,
        decided.saturating_sub(idle) >> 10,
        open.saturating_sub(decided) >> 10
    );
    assert!(grown < MOST, "{} MiB", grown >> 20);

    let begun = Instant::now();
    let ended = tokio::spawn(join_all(streams.into_iter().map(async |mut events| {
        loop {
            match events.message().await {
                Ok(Some(event)) => assert_eq!(event.kind, "heartbeat"),
                Ok(None) => panic!("the stream ended without an error"),
                Err(status) => return status.code(),
            }
        }
    })));
    let stopped = tokio::task::spawn_blocking(move || {
        service.stop();
        begun.elapsed()
    });
    let codes = ended.await.unwrap();
    let (told, stopped) = (begun.elapsed(), stopped.await.unwrap());
    println!("{STREAMS} streams: all told of the stop in {told:?}; stopped in {stopped:?}");
    assert!(codes.iter().all(|code| *code == Code::Unavailable), "{codes:?}");
    assert!(told < PROMPT, "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_revocation_reaches_a_thousand_streams() {
    let (app, client, delegation) = demo().await;
    let streams = open_all(&client, &decisions(&client).await).await;
    assert_eq!(app.app.graph.watchers(&TENANT.parse().unwrap()), STREAMS);
    let told = tokio::spawn(join_all(streams.into_iter().map(async |mut events| {
        let event = events.message().await.unwrap().unwrap();
        (Clock::default().now(), event.stop_condition)
    })));
    assert_eq!(app.owner().revoke_delegation(&delegation, None).await.0, 200);
    let mut told = told.await.unwrap();
    assert!(told.iter().all(|(_, fired)| fired.as_deref() == Some("delegation.revoked")));
    told.sort_unstable();
    let committed = committed(&app).await;
    let taken = |place: usize| (told[place].0 - committed).num_milliseconds();
    let (first, median, last) = (taken(0), taken(STREAMS / 2), taken(STREAMS - 1));
    println!(
        "{STREAMS} streams: commit to message {first} ms first, {median} ms median, {last} ms last"
    );
    assert!(last < 1000, "{last} ms");
    nobody_watches(&app).await;
}
