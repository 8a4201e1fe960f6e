//! Measures the time until the console's pages begin to arrive, with many decisions stored.

use std::{net::SocketAddr, time::Instant};

use hdrhistogram::Histogram;
use reqwest::{
    Client, Response, StatusCode,
    header::{COOKIE, LOCATION, SET_COOKIE},
    redirect::Policy,
};

use crate::{Fault, meter::to_float, product::SUBJECT};

const DEMO: &str = "svc:tenant:acme";
/// The number of calls of each page.
const CALLS: usize = 200;
/// The lists. Three have a filter that makes the list of decisions slow in Postgres.
const PAGES: [&str; 9] = [
    "/console/approvals",
    "/console/decisions",
    "/console/decisions?outcome=deny",
    "/console/decisions?agent=rare",
    "/console/decisions?reason=x_none",
    "/console/records/principals",
    "/console/records/policies",
    "/console/log",
    "/console/stop",
];

/// A member of a tenant, signed in at the console by the development provider.
struct Browser {
    client: Client,
    base: String,
    cookies: Vec<String>,
}

/// Returns the milliseconds to the first byte of each page. An auditor of the tenant with the most
/// decisions reads the lists. The bench inserted these decisions without agents or valid contents.
/// The other pages are therefore read in the demonstration tenant. There an auditor reads the
/// decision `decision_id` and its agent. An approver reads the inbox, the request `approval_id` and
/// the confirmation page of that request.
pub(crate) async fn pages(
    address: SocketAddr,
    tenant_id: &str,
    decision_id: &str,
    approval_id: &str,
) -> Result<Vec<String>, Fault> {
    let mut notes = Vec::new();
    let auditor = Browser::signed_in(address, tenant_id, "auditor").await?;
    for path in PAGES {
        notes.push(auditor.times(path).await?);
    }
    let auditor = Browser::signed_in(address, DEMO, "auditor").await?;
    notes.push(auditor.times(&format!("/console/decisions/{decision_id}")).await?);
    notes.push(auditor.times(&format!("/console/agents/{SUBJECT}")).await?);
    let approver = Browser::signed_in(address, DEMO, "approver").await?;
    let request = format!("/console/approvals/{approval_id}");
    notes.push(approver.times(&request).await?);
    notes.push(approver.times("/console/approvals").await?);
    notes.push(approver.times(&format!("{request}/approve")).await?);
    Ok(notes)
}

impl Browser {
    async fn signed_in(address: SocketAddr, tenant_id: &str, role: &str) -> Result<Self, Fault> {
        let client = Client::builder().redirect(Policy::none()).build()?;
        let base = format!("http://{address}");
        let mut browser = Self { client, base, cookies: Vec::new() };
        let answer = browser.get("/console/sign-in?to=/console").await?;
        browser.keep(&answer);
        let to = location(&answer)?;
        let (provider, asked) = to.split_once('?').ok_or("the sign-in has no query")?;
        let person = [
            ("asked", asked),
            ("email", &format!("{role}@acme.example")),
            ("role", role),
            ("tenant_id", tenant_id),
        ];
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(person).finish();
        let answer = browser.client.post(browser.absolute(provider)).body(form).send().await?;
        let answer = browser.get(&location(&answer)?).await?;
        browser.keep(&answer);
        Ok(browser)
    }

    fn absolute(&self, to: &str) -> String {
        if to.starts_with('/') { format!("{}{to}", self.base) } else { to.to_owned() }
    }

    /// Stores the cookies that a response sets.
    fn keep(&mut self, answer: &Response) {
        let set = answer.headers().get_all(SET_COOKIE).iter();
        let pairs = set.filter_map(|line| line.to_str().ok()?.split(';').next());
        self.cookies.extend(pairs.map(str::to_owned));
    }

    async fn get(&self, path: &str) -> Result<Response, Fault> {
        let call = self.client.get(self.absolute(path));
        Ok(call.header(COOKIE, self.cookies.join("; ")).send().await?)
    }

    /// Returns the time to the head of a page's response, as text.
    async fn times(&self, path: &str) -> Result<String, Fault> {
        let mut took = Histogram::<u64>::new(3)?;
        for _ in 0..CALLS {
            let begun = Instant::now();
            let answer = self.get(path).await?;
            took.record(u64::try_from(begun.elapsed().as_micros())?)?;
            if answer.status() != StatusCode::OK {
                return Err(format!("{path}: {}", answer.status()).into());
            }
            answer.bytes().await?;
        }
        let millis = |quantile| to_float(took.value_at_quantile(quantile)) / 1000.0;
        let (half, most, worst) = (millis(0.5), millis(0.95), millis(1.0));
        Ok(format!("{path}: {half:.1} ms (p50), {most:.1} ms (p95), {worst:.1} ms (worst)"))
    }
}

fn location(answer: &Response) -> Result<String, Fault> {
    let to = answer.headers().get(LOCATION).ok_or("a response has no Location")?;
    Ok(to.to_str()?.to_owned())
}
