//! Measures the time until the console's pages begin to arrive, with many decisions stored.

use std::{net::SocketAddr, time::Instant};

use hdrhistogram::Histogram;
use reqwest::{
    Client, Response, StatusCode,
    header::{COOKIE, LOCATION, SET_COOKIE},
    redirect::Policy,
};

use crate::{Fault, meter::to_float, product::SUBJECT, row::Report};

pub(crate) const DEMO: &str = "svc:tenant:acme";
/// The number of calls of each page.
const CALLS: usize = 200;
/// The longest time of 95 % of the calls of a page, in milliseconds.
const GOAL: f64 = 50.0;
/// The overview, the lists and a search by a fact. Three lists have a filter that makes the list of
/// decisions slow in Postgres.
const PAGES: [&str; 11] = [
    "/console",
    "/console/approvals",
    "/console/decisions",
    "/console/decisions?outcome=deny",
    "/console/decisions?agent=rare",
    "/console/decisions?reason=x_none",
    "/console/search?q=RE-1",
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

/// Reports the milliseconds to the first byte of each page. An auditor of the tenant with the most
/// decisions reads the lists. The bench inserted these decisions without agents or valid contents.
/// The other pages are therefore read in the demonstration tenant. There an auditor reads the
/// decision `decision_id`, its agent, and lists that name policies or have facts. An approver reads
/// the inbox, the request `approval_id` and the confirmation page of that request.
pub(crate) async fn pages(
    address: SocketAddr,
    tenant_id: &str,
    decision_id: &str,
    approval_id: &str,
    report: &mut Report,
) -> Result<(), Fault> {
    let auditor = Browser::signed_in(address, tenant_id, "auditor").await?;
    for path in PAGES {
        auditor.times(path, report).await?;
    }
    let auditor = Browser::signed_in(address, DEMO, "auditor").await?;
    auditor.times(&format!("/console/decisions/{decision_id}"), report).await?;
    auditor.times(&format!("/console/agents/{SUBJECT}"), report).await?;
    auditor.times("/console/decisions?reason=policy_denied", report).await?;
    auditor.times("/console/decisions?fact=RE-1", report).await?;
    let approver = Browser::signed_in(address, DEMO, "approver").await?;
    let request = format!("/console/approvals/{approval_id}");
    approver.times(&request, report).await?;
    approver.times("/console/approvals", report).await?;
    approver.times(&format!("{request}/approve"), report).await?;
    Ok(())
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

    /// Reports the time to the head of a page's response.
    async fn times(&self, path: &str, report: &mut Report) -> Result<(), Fault> {
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
        let note = format!("{path}: {half:.1} ms (p50), {most:.1} ms (p95), {worst:.1} ms (worst)");
        if most > GOAL {
            report.short.push(format!("{note}; the goal is a p95 of {GOAL} ms"));
        }
        report.notes.push(note);
        Ok(())
    }
}

fn location(answer: &Response) -> Result<String, Fault> {
    let to = answer.headers().get(LOCATION).ok_or("a response has no Location")?;
    Ok(to.to_str()?.to_owned())
}
