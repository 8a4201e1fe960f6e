//! A new agent in four steps: the agent, its authority, its API key, and its first request.
//!
//! The form carries all values from step to step. The records are created together at the third
//! step. After a refusal, the form keeps the ids of the records that exist already
//! and continues there.

use authority_api::identity::CallerKind;
use authority_ids::PrincipalId;
use serde_json::json;

use super::first_request::FirstRequest;
use crate::{
    administration::records::{
        AGENT, Field, Layout, Picker, Place, Sentence, SubmittedForm, create, held, propose, read,
        tenant_of, without,
    },
    kit::{
        kinds::{Kind, Member, text},
        prelude::*,
    },
};

/// A step with a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Agent,
    Authority,
    Key,
}

/// The kinds of the records that the steps create, in this order.
const KINDS: [&str; 3] = ["principals", "delegations", "api-keys"];
/// The scopes of the agent's key: to request decisions, and to read them.
const SCOPES: [&str; 2] = ["runtime:write", "runtime:read"];

#[derive(Template)]
#[template(path = "agent_new.html")]
struct NewPage {
    frame: Frame,
    step: Step,
    /// The fields of this step.
    fields: Vec<Field>,
    pickers: Vec<Picker>,
    /// The values of the other steps.
    carried: Vec<(String, String)>,
    /// The records that exist already.
    made: Made,
    /// The name of the agent, once it has one.
    name: String,
    /// The result of the earlier steps, in a sentence.
    result: Option<String>,
    /// A warning about an authority without limits.
    warning: Option<&'static str>,
    /// Whether the person may register people.
    is_owner: bool,
    /// The subject of a person who has no delegation to pass on.
    lacking: Option<String>,
    key: String,
}

#[derive(Template)]
#[template(path = "agent_first.html")]
struct FirstPage {
    frame: Frame,
    id: String,
    name: String,
    result: String,
    secret: String,
    request: FirstRequest,
}

/// The ids of the records that exist already; empty if there is none.
#[derive(Clone, Default)]
struct Made {
    agent: String,
    delegation: String,
}

/// The form of all steps.
struct Draft {
    tenant: String,
    agent: SubmittedForm,
    authority: SubmittedForm,
    made: Made,
    sent: Pairs,
    key: String,
}

impl NewPage {
    /// The number and the name of the step.
    fn place(&self) -> (usize, &'static str) {
        match self.step {
            Step::Agent => (1, t::agents::THE_AGENT),
            Step::Authority => (2, t::agents::PERMISSIONS),
            Step::Key => (3, t::agents::A_KEY),
        }
    }

    /// Whether the tenant is not known yet.
    fn needs_tenant(&self) -> bool {
        !self.carried.iter().any(|(name, _)| name == "tenant")
    }

    /// Whether the next press creates the records.
    fn creates(&self) -> bool {
        self.step == Step::Key
    }

    /// The word of the step in the form.
    fn word(&self) -> &'static str {
        self.step.word()
    }

    /// Whether there is an earlier step that can still be changed.
    fn goes_back(&self) -> bool {
        match self.step {
            Step::Agent => false,
            Step::Authority => self.made.agent.is_empty(),
            Step::Key => self.made.delegation.is_empty(),
        }
    }
}

impl Step {
    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Authority => "authority",
            Self::Key => "key",
        }
    }

    fn parse(word: &str) -> Self {
        [Self::Authority, Self::Key]
            .into_iter()
            .find(|step| step.word() == word)
            .unwrap_or(Self::Agent)
    }
}

pub(super) async fn show(view: View, query: Pairs) -> Response {
    view.answer(shown(&view, &query).await)
}

async fn shown(view: &View, query: &Pairs) -> Result<Response, Status> {
    let mut draft = Draft::read(view, query.clone()).await?;
    let agent = query.text("agent");
    if agent.is_empty() {
        return draft.page(view, Step::Agent, None).await;
    }
    // An agent that exists already gets its authority and its key.
    let found = read(view, Kind::known("principals")?, agent).await?.message;
    draft.tenant = text(&found, "tenant_id");
    agent.clone_into(&mut draft.made.agent);
    draft.page(view, Step::Authority, None).await
}

pub(super) async fn send(Posted { view, form }: Posted) -> Response {
    view.answer_act(t::agents::NOT_CREATED, sent(&view, form).await)
}

async fn sent(view: &View, form: Pairs) -> Result<Response, Status> {
    let mut draft = Draft::read(view, form).await?;
    let (step, goes_back) = (Step::parse(draft.sent.text("step")), draft.sent.text("do") == "back");
    match step {
        Step::Key if goes_back => draft.page(view, Step::Authority, None).await,
        _ if goes_back => draft.page(view, Step::Agent, None).await,
        Step::Agent => {
            draft.check_name(view).await?;
            draft.next(view, step, Step::Authority).await
        }
        Step::Authority => draft.next(view, step, Step::Key).await,
        Step::Key => draft.create(view).await,
    }
}

/// The members of a step's record that its form has.
fn members(layout: &Layout, path: &str) -> Result<Vec<Member>, Status> {
    let kind = Kind::known(path)?;
    let mut members = layout.members(Member::all(&kind.record), kind);
    members.retain(|member| layout.has(&member.name) && member.name != "delegate_id");
    for member in &mut members {
        // The API does not require these, but an agent without them cannot act.
        let needed = ["name", "owner_principal_id", "delegator_id", "parent_id"];
        member.required |= needed.contains(&member.name.as_str());
    }
    Ok(members)
}

fn delegation(view: &View) -> Result<&'static Layout, Status> {
    Layout::of("delegation", view.caller.is_owner()).ok_or_else(no_page)
}

/// A missing value that the form requires.
fn note_missing(filled: &mut SubmittedForm) {
    let is_missing =
        |field: &&Field| field.member.required && !filled.values.contains_key(&field.member.name);
    let missing = filled.fields.iter().filter(is_missing);
    let missing = missing
        .map(|field| (field.member.name.clone(), t::records::IS_REQUIRED.to_owned()))
        .collect();
    filled.note(missing);
}

impl Draft {
    async fn read(view: &View, sent: Pairs) -> Result<Self, Status> {
        for path in KINDS {
            let create = Kind::known(path)?.maker("create").map(|create| create.rpc.as_str());
            if let Some(rpc) = create.filter(|rpc| !view.may(rpc)) {
                return Err(refused(view, rpc));
            }
        }
        let tenant = tenant_of(view, sent.one("tenant")).await.unwrap_or_default();
        let part = |name: &str| sent.text(name).to_owned();
        Ok(Self {
            tenant,
            agent: SubmittedForm::read(members(&AGENT, "principals")?, &sent, None),
            authority: SubmittedForm::read(members(delegation(view)?, "delegations")?, &sent, None),
            made: Made { agent: part("made_agent"), delegation: part("made_delegation") },
            key: idempotency_key()?,
            sent,
        })
    }

    /// The id of the agent, as it is or will be.
    fn agent_id(&self) -> String {
        if !self.made.agent.is_empty() {
            return self.made.agent.clone();
        }
        let name = self.agent.values.get("name").and_then(Value::as_str).unwrap_or_default();
        // The service refuses a name that cannot be a part of an id.
        PrincipalId::agent(short(&self.tenant), name).map_or_else(|_| name.to_owned(), String::from)
    }

    fn name(&self) -> String {
        short(&self.agent_id()).to_owned()
    }

    /// Checks that the name is free. Names of agents are never used again.
    async fn check_name(&mut self, view: &View) -> Result<(), Status> {
        if !self.agent.values.contains_key("name") {
            return Ok(());
        }
        let taken = match read(view, Kind::known("principals")?, &self.agent_id()).await {
            Ok(_) => true,
            Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => false,
            Err(status) => return Err(status),
        };
        if taken {
            let problem = t::agents::taken(self.name());
            self.agent.note(vec![("name".to_owned(), problem)]);
        }
        Ok(())
    }

    /// The next step, or this one again if a field is not valid.
    async fn next(mut self, view: &View, step: Step, next: Step) -> Result<Response, Status> {
        if step == Step::Agent && self.tenant.is_empty() {
            let problem = t::agents::CHOOSE_TENANT.to_owned();
            return self.page(view, step, Some(problem)).await;
        }
        let filled = if step == Step::Agent { &mut self.agent } else { &mut self.authority };
        note_missing(filled);
        if filled.is_readable() {
            return self.page(view, next, None).await;
        }
        self.page(view, step, Some(t::agents::INVALID.to_owned())).await
    }

    /// The page of a step. With a problem, its heading.
    async fn page(
        self,
        view: &View,
        step: Step,
        problem: Option<String>,
    ) -> Result<Response, Status> {
        let name = if self.agent.values.contains_key("name") || !self.made.agent.is_empty() {
            self.name()
        } else {
            String::new()
        };
        let warning = without(&self.authority.values).filter(|_| step == Step::Key);
        let (values, made) = (self.authority.values, self.made);
        let (mut agent, mut authority) = (self.agent.fields, self.authority.fields);
        AGENT.arrange(&mut agent);
        delegation(view)?.arrange(&mut authority);
        let tenant = (!self.tenant.is_empty()).then_some(self.tenant.as_str());
        // The third step has no fields. Its sentence has the names of the second one's records.
        let shown = if step == Step::Agent { &mut agent } else { &mut authority };
        let pickers = propose(view, tenant, shown).await;
        let result =
            (step == Step::Key).then(|| Sentence::new(&values, &authority).delegation(&name));
        let fields = match step {
            Step::Agent => agent,
            Step::Authority => authority,
            Step::Key => Vec::new(),
        };
        let is_shown = |sent: &str| {
            let of =
                |field: &Field| sent == field.name || sent.starts_with(&format!("{}.", field.name));
            fields.iter().any(of)
        };
        let carried =
            self.sent.iter().filter(|(sent, _)| sent.starts_with("m.") && !is_shown(sent));
        let carried = carried.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut carried: Vec<_> = carried.collect();
        carried.extend(tenant.map(|tenant| ("tenant".to_owned(), tenant.to_owned())));
        let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let frame = view.frame(t::agents::NEW, Section::Agents);
        let frame = frame.failed_if(t::NOT_CREATED, problem, None);
        let (is_owner, key) = (view.caller.is_owner(), self.key);
        let lacking = match &view.caller.kind {
            CallerKind::Member { subject, .. } if held(view).await.is_empty() => {
                Some(subject.clone())
            }
            _ => None,
        };
        let shown = NewPage {
            frame,
            step,
            fields,
            pickers,
            carried,
            made,
            name,
            result,
            warning,
            is_owner,
            lacking,
            key,
        };
        Ok(page(status, &shown))
    }

    /// Creates the records that do not exist yet. Each creation has its own key: a form
    /// that is sent twice creates each record once.
    async fn create(mut self, view: &View) -> Result<Response, Status> {
        let key = self.sent.text("key").to_owned();
        let tenant = Value::from(self.tenant.clone());
        let of = |values: &Map<String, Value>, more: Value| {
            let mut values = values.clone();
            values.insert("tenant_id".to_owned(), tenant.clone());
            values.extend(more.as_object().cloned().unwrap_or_default());
            values
        };
        if self.made.agent.is_empty() {
            let values = of(&self.agent.values, json!({"principal_class": "agent"}));
            match create(view, Kind::known("principals")?, values, &format!("{key}-agent")).await {
                Ok(made) => self.made.agent = text(&made.message, "id"),
                Err(status) => return self.refused(view, Step::Agent, &status, key).await,
            }
        }
        if self.made.delegation.is_empty() {
            let values = of(&self.authority.values, json!({"delegate_id": self.made.agent}));
            let kind = Kind::known("delegations")?;
            match create(view, kind, values, &format!("{key}-delegation")).await {
                Ok(made) => self.made.delegation = text(&made.message, "id"),
                Err(status) => return self.refused(view, Step::Authority, &status, key).await,
            }
        }
        let bound =
            json!({"label": self.name(), "scopes": SCOPES, "principal_ids": [self.made.agent]});
        let mut values = of(&Map::new(), bound);
        let end = self.authority.values.get("expires_at").cloned();
        values.extend(end.map(|end| ("expires_at".to_owned(), end)));
        match create(view, Kind::known("api-keys")?, values, &format!("{key}-key")).await {
            Ok(made) => self.first(view, text(&made.message, "secret")).await,
            Err(status) => self.refused(view, Step::Key, &status, key).await,
        }
    }

    /// The step of a refused record again, with the errors and the records that exist already.
    async fn refused(
        mut self,
        view: &View,
        step: Step,
        status: &Status,
        key: String,
    ) -> Result<Response, Status> {
        let problem = Problem::of(status);
        let exists = match step {
            Step::Agent => t::agents::NONE_CREATED.to_owned(),
            Step::Authority => t::agents::lacks_delegation(self.name()),
            Step::Key => t::agents::lacks_key(self.name()),
        };
        let mut text = t::agents::failed(&exists, problem.message.trim_end_matches('.'));
        if problem.status.is_server_error() {
            // Without an answer the record may exist. With the same key it is not created again.
            self.key = key;
            text = t::agents::unconfirmed(exists);
        }
        let filled = if step == Step::Agent { &mut self.agent } else { &mut self.authority };
        let others = filled.note(problem.members).into_iter();
        let others = others.map(|(member, problem)| format!(" {member}: {problem}."));
        text.extend(others);
        // After a lost answer, the form of the third step is sent again as it is.
        let step = if problem.status.is_server_error() { Step::Key } else { step };
        self.page(view, step, Some(text)).await
    }

    /// The key, and a request that the agent can send now.
    async fn first(self, view: &View, secret: String) -> Result<Response, Status> {
        let (id, name, mut fields) = (self.agent_id(), self.name(), self.authority.fields);
        let values = self.authority.values;
        delegation(view)?.arrange(&mut fields);
        propose(view, Some(&self.tenant), &mut fields).await;
        let request = FirstRequest::of(view, &self.tenant, &id, &values, &secret).await;
        let result = Sentence::new(&values, &fields).delegation(&name);
        let frame = view.frame(t::agents::ready(&name), Section::Agents);
        Ok(page(StatusCode::OK, &FirstPage { frame, id, name, result, secret, request }))
    }
}
