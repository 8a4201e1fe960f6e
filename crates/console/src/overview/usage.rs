//! The decisions of the last 24 hours and 30 days: by outcome, the reasons for denials, and the
//! agents that were denied most.

use authority_model::{
    proto::runtime::{
        ListUsageRequest, ListUsageResponse, RankUsageRequest, RankUsageResponse, UsageRank,
    },
    wire::Time,
};
use chrono::{DurationRound, SecondsFormat, TimeDelta};

use super::chart::{CLASSES, Chart, Counts};
use crate::{
    kit::{prelude::*, text::reason},
    texts::decisions::{ALLOWED, DENIED, HELD},
};

/// The number of reasons and agents shown.
const TOP: i32 = 5;

/// The outcomes in the order of the counts: the word of the filter and the label.
const OUTCOMES: [(&str, &str); 3] =
    [("allow", ALLOWED), ("require_approval", HELD), ("deny", DENIED)];

/// A span of time that the page shows.
struct Span {
    label: &'static str,
    /// The word of the API for the length of a bar.
    period: &'static str,
    bar: TimeDelta,
    bars: i32,
    /// How a bar's beginning is written.
    format: &'static str,
}

#[rustfmt::skip] // a line for each span
static SPANS: [Span; 2] = [
    Span { label: t::overview::LAST_DAY, period: "hour", bar: TimeDelta::hours(1), bars: 24, format: "%-d %b, %H:00" },
    Span { label: t::overview::LAST_MONTH, period: "day", bar: TimeDelta::days(1), bars: 30, format: "%-d %b" },
];

/// A number of decisions, and the list of them.
pub(crate) struct Linked {
    pub(crate) label: String,
    /// The class of its outcome.
    pub(crate) class: &'static str,
    pub(crate) count: i64,
    pub(crate) address: String,
}

/// A row of the table with the chart's numbers.
pub(crate) struct UsageRow {
    pub(crate) begins: String,
    pub(crate) counts: Vec<Linked>,
}

/// The decisions of a span of time.
pub(crate) struct Shown {
    pub(crate) label: &'static str,
    pub(crate) totals: Vec<Linked>,
    pub(crate) chart: Chart,
    pub(crate) first: String,
    pub(crate) rows: Vec<UsageRow>,
    pub(crate) reasons: Vec<Linked>,
    /// Empty on the page of an agent.
    pub(crate) agents: Vec<Linked>,
}

impl Shown {
    pub(crate) fn is_empty(&self) -> bool {
        self.totals.iter().all(|total| total.count == 0)
    }
}

/// The decisions of all shown spans. A span that could not be read is missing.
pub(crate) struct Usage {
    pub(crate) spans: Vec<Shown>,
    pub(crate) is_unread: bool,
    /// The time up to which decisions are counted.
    pub(crate) counted_until: Option<Moment>,
}

/// The decisions of the shown tenants. `None` if the role may not read usage.
pub(super) async fn of_tenant(view: &View) -> Option<Usage> {
    of(view, None).await
}

/// The decisions of the last 24 hours. `None` if the role may not read usage, or if it could not be
/// read.
pub(crate) async fn last_day(view: &View) -> Option<Shown> {
    if !view.may(rpc::LIST_USAGE) || !view.may(rpc::RANK_USAGE) {
        return None;
    }
    read(view, &SPANS[0], None).await.ok().map(|(shown, _)| shown)
}

/// The decisions of one agent. `None` if the role may not read usage.
pub(crate) async fn of_agent(view: &View, agent: &str) -> Option<Usage> {
    of(view, Some(agent)).await
}

async fn of(view: &View, agent: Option<&str>) -> Option<Usage> {
    if !view.may(rpc::LIST_USAGE) || !view.may(rpc::RANK_USAGE) {
        return None;
    }
    let (day, month) = tokio::join!(read(view, &SPANS[0], agent), read(view, &SPANS[1], agent));
    let mut usage = Usage { spans: Vec::new(), is_unread: false, counted_until: None };
    for span in [day, month] {
        match span {
            Ok((shown, counted_until)) => {
                usage.spans.push(shown);
                usage.counted_until = Some(Moment::of(counted_until, view.now));
            }
            Err(_) => usage.is_unread = true,
        }
    }
    Some(usage)
}

/// The list of decisions between two times that a number counts.
struct Decisions<'a> {
    agent: Option<&'a str>,
    since: DateTime<Utc>,
    until: DateTime<Utc>,
}

impl Decisions<'_> {
    /// The address of the list with further filters.
    fn address(&self, filters: &[(&str, &str)]) -> String {
        let text = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let (since, until) = (text(self.since), text(self.until));
        let agent = self.agent.map(|agent| ("agent", agent));
        let times = [("since", since.as_str()), ("until", until.as_str())];
        let members = agent.into_iter().chain(filters.iter().copied()).chain(times);
        let members = members.map(|(name, value)| format!("{name}={}", encoded(value)));
        format!("/console/decisions?{}", members.collect::<Vec<_>>().join("&"))
    }

    /// The numbers by outcome, each with its list.
    fn by_outcome(&self, counts: Counts) -> Vec<Linked> {
        let outcomes = OUTCOMES.into_iter().zip(CLASSES).zip(counts);
        let linked = outcomes.map(|(((word, label), class), count)| Linked {
            label: label.to_owned(),
            class,
            count,
            address: self.address(&[("outcome", word)]),
        });
        linked.collect()
    }
}

async fn read(
    view: &View,
    span: &Span,
    agent: Option<&str>,
) -> Result<(Shown, DateTime<Utc>), Status> {
    let now = view.now.duration_trunc(span.bar).unwrap_or(view.now);
    let begins = now - span.bar * (span.bars - 1);
    let listed = ListUsageRequest {
        tenant_id: view.shown_tenant().map(String::from),
        since: Some(begins.into()),
        period: Some(span.period.to_owned()),
        subject: agent.map(str::to_owned),
        all_tenants: true,
        ..ListUsageRequest::default()
    };
    let reasons = ranked(&listed, "reason_code");
    let agents = ranked(&listed, "subject");
    let most_denied = async {
        match agent {
            Some(_) => Ok(RankUsageResponse::default()),
            None => view.calls.call(&agents).await,
        }
    };
    let (listed, reasons, agents) =
        tokio::try_join!(view.calls.call(&listed), view.calls.call(&reasons), most_denied)?;
    // Each response was counted up to its own time.
    let until =
        |counted: Option<Time>| counted.and_then(Time::moment).unwrap_or(begins).max(begins);
    let counted_to = |until| Decisions { agent, since: begins, until };
    let until_ranked = [&reasons, &agents].map(|ranked| until(ranked.counted_until));
    let until = until(listed.counted_until);
    let decisions = counted_to(until);
    let [of_reasons, of_agents] = until_ranked.map(counted_to);
    let bars = bars(span, begins, &listed);
    let sum = bars.iter().fold([0; 3], |sum: Counts, (_, counts)| added(sum, *counts));
    let counts: Vec<Counts> = bars.iter().map(|(_, counts)| *counts).collect();
    let rows = bars.iter().map(|(at, counts)| {
        let until = until.clamp(*at, *at + span.bar);
        let of_bar = Decisions { agent, since: *at, until };
        UsageRow { begins: at.format(span.format).to_string(), counts: of_bar.by_outcome(*counts) }
    });
    let shown = Shown {
        label: span.label,
        totals: decisions.by_outcome(sum),
        chart: Chart::of(&counts),
        first: begins.format(span.format).to_string(),
        rows: rows.collect(),
        reasons: reasons.ranks.iter().map(|rank| of_reason(&of_reasons, rank)).collect(),
        agents: agents.ranks.iter().map(|rank| denied_agent(view, &of_agents, rank)).collect(),
    };
    Ok((shown, until))
}

/// Ranks the denials among these counts by a field.
fn ranked(listed: &ListUsageRequest, field: &str) -> RankUsageRequest {
    RankUsageRequest {
        tenant_id: listed.tenant_id.clone(),
        since: listed.since,
        period: listed.period.clone(),
        subject: listed.subject.clone(),
        decision: Some("deny".to_owned()),
        rank_by: Some(field.to_owned()),
        limit: Some(TOP),
        ..RankUsageRequest::default()
    }
}

/// The counts of each bar, the oldest first. A bar without decisions is not listed by the API.
fn bars(
    span: &Span,
    begins: DateTime<Utc>,
    listed: &ListUsageResponse,
) -> Vec<(DateTime<Utc>, Counts)> {
    let counts = |at: DateTime<Utc>| {
        let here = listed.usage.iter().filter(|one| one.starts_at == Some(at.into()));
        here.map(|one| [one.allow, one.require_approval, one.deny]).fold([0; 3], added)
    };
    (0..span.bars).map(|bar| begins + span.bar * bar).map(|at| (at, counts(at))).collect()
}

fn added(one: Counts, other: Counts) -> Counts {
    std::array::from_fn(|index| one[index].saturating_add(other[index]))
}

fn of_reason(decisions: &Decisions<'_>, rank: &UsageRank) -> Linked {
    let sentence = reason(&rank.value);
    Linked {
        label: if sentence.is_empty() { rank.value.clone() } else { sentence },
        class: "denied",
        count: rank.count,
        address: decisions.address(&[("outcome", "deny"), ("reason", &rank.value)]),
    }
}

fn denied_agent(view: &View, decisions: &Decisions<'_>, rank: &UsageRank) -> Linked {
    let shows_all = view.tenant().is_none();
    Linked {
        label: if shows_all { rank.value.clone() } else { short(&rank.value).to_owned() },
        class: "denied",
        count: rank.count,
        address: decisions.address(&[("agent", &rank.value), ("outcome", "deny")]),
    }
}

#[cfg(test)]
mod tests {
    use authority_model::proto::runtime::UsageCount;

    use super::*;

    #[test]
    fn bars_without_decisions_are_empty() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let count = |starts_at: &str, allow, deny| UsageCount {
            starts_at: Some(at(starts_at).into()),
            allow,
            deny,
            ..UsageCount::default()
        };
        let usage = vec![count("2026-11-24T10:00:00Z", 3, 1), count("2026-11-23T12:00:00Z", 2, 0)];
        let listed = ListUsageResponse { usage, ..ListUsageResponse::default() };
        let bars = bars(&SPANS[0], at("2026-11-23T11:00:00Z"), &listed);
        assert_eq!(bars.len(), 24);
        assert_eq!(bars[0], (at("2026-11-23T11:00:00Z"), [0, 0, 0]));
        assert_eq!(bars[1], (at("2026-11-23T12:00:00Z"), [2, 0, 0]));
        assert_eq!(bars[23], (at("2026-11-24T10:00:00Z"), [3, 0, 1]));
    }

    #[test]
    fn a_numbers_address_has_its_times_and_filters() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let decisions = Decisions {
            agent: Some("svc:agent:acme:a"),
            since: at("2026-11-24T10:00:00Z"),
            until: at("2026-11-24T10:30:01.5Z"),
        };
        assert_eq!(
            decisions.address(&[("outcome", "deny")]),
            "/console/decisions?agent=svc%3Aagent%3Aacme%3Aa&outcome=deny\
             &since=2026-11-24T10%3A00%3A00.000Z&until=2026-11-24T10%3A30%3A01.500Z"
        );
    }
}
