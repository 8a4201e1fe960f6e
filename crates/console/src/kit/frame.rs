//! The frame of every page in a session.

use authority_api::identity::CallerKind;
use authority_model::wire::Time;
use chrono::{DateTime, Utc};

use crate::{
    kit::{assets::VERSION, meanings, menu::Group, query::encoded, rpc, show::Moment, view::View},
    texts as t,
};

/// The sections of pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Approvals,
    Agents,
    Decisions,
    Policies,
    Stop,
    Records,
    Log,
    Tenant,
    None,
}

/// A link of the header.
pub(crate) struct Link {
    pub(crate) path: &'static str,
    pub(crate) label: &'static str,
    pub(crate) current: bool,
}

/// The message that a page's act was not done. It is first in the title and on the page, and has the
/// focus.
pub(crate) struct Failure {
    /// `Not stopped`.
    pub(crate) heading: String,
    pub(crate) text: String,
    /// The id of the field to correct.
    pub(crate) field: Option<&'static str>,
}

/// The header and the footer of a page.
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) failure: Option<Failure>,
    pub(crate) links: Vec<Link>,
    /// The label of the link to the stops, for people who may read or create them.
    pub(crate) stop: Option<&'static str>,
    /// Whether the person may stop something.
    pub(crate) may_stop: bool,
    /// The address of the link to the stops.
    pub(crate) stop_path: String,
    /// The target that the stop page proposes, if this page is about a target that can be stopped.
    pub(crate) stops: Option<String>,
    /// Whether this page is about stops.
    pub(crate) at_stop: bool,
    /// Whether the person may search.
    pub(crate) searches: bool,
    /// The kinds of records that the person may list.
    pub(crate) menu: Vec<Group>,
    /// Whether the page belongs to the records.
    pub(crate) of_records: bool,
    /// Who is signed in, as the history names them.
    pub(crate) person: String,
    pub(crate) role: String,
    /// The permissions of the role, in words.
    pub(crate) role_means: &'static str,
    /// The shown tenant. `None` if all tenants are shown.
    pub(crate) tenant: Option<String>,
    /// Whether the person may look at other tenants.
    pub(crate) chooses_tenant: bool,
    /// Whether the person can have channels for messages.
    pub(crate) has_messages: bool,
    pub(crate) csrf: String,
    /// The server's time, by which a script counts down.
    pub(crate) now: String,
    clock: DateTime<Utc>,
    /// When the session ends if it is not used.
    pub(crate) session_ends: String,
    pub(crate) version: &'static str,
}

/// The page with the current stops and possible targets.
const STOP: &str = "/console/stop";

/// The first page, which every role may open.
const OVERVIEW: &str = "/console";

/// The sections, and the operation that each needs.
const SECTIONS: [(Section, &str, &str, &str); 5] = [
    (Section::Approvals, "/console/approvals", t::APPROVALS, rpc::LIST_APPROVALS),
    (Section::Agents, "/console/agents", t::AGENTS, rpc::LIST_PRINCIPALS),
    (Section::Decisions, "/console/decisions", t::DECISIONS, rpc::LIST_DECISIONS),
    (Section::Policies, "/console/records/policies", t::POLICIES, rpc::LIST_POLICIES),
    (Section::Log, "/console/log", t::LOG, rpc::GET_CHECKPOINT),
];

impl View {
    pub(crate) fn frame(&self, title: impl Into<String>, section: Section) -> Frame {
        Frame::new(self, title.into(), section)
    }
}

impl Frame {
    /// A time of the API as the page shows it.
    pub(crate) fn at(&self, time: Option<Time>) -> Option<Moment> {
        Moment::of_time(time, self.clock)
    }

    /// Puts the message about a failed act before the page's other content.
    pub(crate) fn failed(
        mut self,
        heading: impl Into<String>,
        text: impl Into<String>,
        field: Option<&'static str>,
    ) -> Self {
        let heading = heading.into();
        self.title = format!("{heading}: {}", self.title);
        self.failure = Some(Failure { heading, text: text.into(), field });
        self
    }

    /// Puts the message before the page's other content if there is a text.
    pub(crate) fn failed_if(
        self,
        heading: impl Into<String>,
        text: Option<impl Into<String>>,
        field: Option<&'static str>,
    ) -> Self {
        match text {
            Some(text) => self.failed(heading, text, field),
            None => self,
        }
    }

    /// The element of the page's own heading. With a failure, the failure's heading is the `h1`.
    pub(crate) fn heading(&self) -> &'static str {
        if self.failure.is_some() { "h2" } else { "h1" }
    }

    /// Makes the header's Stop propose this record. `member` is the member of the stop form for its
    /// id.
    pub(crate) fn stopping(mut self, member: &str, id: &str, name: &str) -> Self {
        if self.may_stop && !id.is_empty() {
            self.stop_path = format!("{STOP}/confirm?{member}={}", encoded(id));
            self.stops = Some(name.to_owned());
        }
        self
    }

    /// Whether an owner must see the tenant next to a record, since the header does not show it.
    pub(crate) fn is_other(&self, tenant: &str) -> bool {
        self.chooses_tenant && self.tenant.as_deref() != Some(tenant)
    }

    /// Whether the person may open the list of this kind of records.
    pub(crate) fn lists(&self, kind: &str) -> bool {
        let path = format!("/console/records/{kind}");
        self.menu.iter().flat_map(|group| &group.entries).any(|entry| entry.path == path)
    }

    fn new(view: &View, title: String, section: Section) -> Self {
        let overview =
            Link { path: OVERVIEW, label: t::OVERVIEW, current: section == Section::Overview };
        let links = SECTIONS.iter().filter(|(.., needed)| view.may(needed));
        let links = links.map(|(of, path, label, _)| Link { path, label, current: *of == section });
        let (role, is_owner) = match &view.caller.kind {
            CallerKind::Owner { .. } => (t::kit::OWNER_ROLE.to_owned(), true),
            CallerKind::Member { role, .. } => (role.to_string(), false),
            CallerKind::Key { .. } | CallerKind::Anonymous => (String::new(), false),
        };
        Self {
            title,
            failure: None,
            links: [overview].into_iter().chain(links).collect(),
            stop: stop(view),
            may_stop: view.may(rpc::CREATE_STOP_SIGNAL),
            stop_path: STOP.to_owned(),
            stops: None,
            at_stop: section == Section::Stop,
            searches: view.may(rpc::SEARCH),
            menu: view.menu(),
            of_records: section == Section::Records,
            person: view.caller.actor.clone(),
            role_means: if is_owner { meanings::role("owner") } else { meanings::role(&role) },
            role,
            tenant: view.tenant().map(|tenant| tenant.slug().to_owned()),
            chooses_tenant: is_owner && view.may(rpc::LIST_TENANTS),
            has_messages: view.may(rpc::LIST_MESSAGE_CHANNELS),
            csrf: view.csrf().to_owned(),
            now: view.now_text(),
            clock: view.now,
            session_ends: view.session_ends(),
            version: &VERSION,
        }
    }
}

fn stop(view: &View) -> Option<&'static str> {
    let reads = view.may(rpc::LIST_STOP_SIGNALS);
    reads.then(|| if view.may(rpc::CREATE_STOP_SIGNAL) { t::kit::STOP } else { t::kit::STOPS })
}
