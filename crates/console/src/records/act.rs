//! The second step of each operation: a form of what its request takes, which says what it does, and sends it.

use askama::Template;
use authority_ids::TenantId;
use axum::{extract::Path, response::Response};
use http::StatusCode;
use prost_reflect::{DynamicMessage, Value as Proto};
use serde_json::{Map, Value};
use tonic::Status;

use super::{
    field::{Field, Filled},
    kinds::Kind,
    known,
    member::{Member, Written},
    message::{call, json, of_json, set_text},
    nowhere, one,
    operation::{Operation, Shape},
    outcome,
    shown::{Datum, Shown, Whole, title},
};
use crate::{
    form::{Posted, idempotency_key},
    frame::{Frame, Section},
    page::{page, see},
    problem::Problem,
    query::Pairs,
    view::View,
};

/// An operation of a kind, and the record that it is about.
pub(super) struct Act {
    pub(super) kind: &'static Kind,
    pub(super) operation: &'static Operation,
    pub(super) about: Option<About>,
}

pub(super) struct About {
    /// As operations take it.
    pub(super) id: String,
    title: String,
    /// Its members as they are now.
    members: Map<String, Value>,
    version: String,
    /// What people wrote of it, where the page says what it is that something is done to.
    shown: Vec<Shown>,
}

#[derive(Template)]
#[template(path = "record_form.html")]
struct FormPage<'a> {
    frame: Frame,
    act: &'a Act,
    action: String,
    back: String,
    fields: Vec<Field>,
    problem: Option<String>,
    /// What is wrong with no field of the form.
    others: Vec<(String, String)>,
    /// Sent twice, the form acts once.
    key: String,
    /// The version that the page showed.
    version: String,
}

pub(super) async fn make(view: View, Path((kind, word)): Path<(String, String)>) -> Response {
    view.answer(async { Act::make(&view, &kind, &word)?.empty_form(&view) }.await)
}

pub(super) async fn confirm(
    view: View,
    Path((kind, id, word)): Path<(String, String, String)>,
) -> Response {
    view.answer(async { Act::on(&view, &kind, &id, &word).await?.empty_form(&view) }.await)
}

pub(super) async fn made(
    Path((kind, word)): Path<(String, String)>,
    Posted { view, form }: Posted,
) -> Response {
    view.answer(async { Act::make(&view, &kind, &word)?.send(&view, &form).await }.await)
}

pub(super) async fn act(
    Path((kind, id, word)): Path<(String, String, String)>,
    Posted { view, form }: Posted,
) -> Response {
    view.answer(async { Act::on(&view, &kind, &id, &word).await?.send(&view, &form).await }.await)
}

impl Act {
    fn make(view: &View, kind: &str, word: &str) -> Result<Self, Status> {
        let kind = known(kind)?;
        let operation = kind.maker(word).ok_or_else(nowhere)?;
        permitted(view, operation)?;
        Ok(Self { kind, operation, about: None })
    }

    async fn on(view: &View, kind: &str, id: &str, word: &str) -> Result<Self, Status> {
        let kind = known(kind)?;
        let operation = kind.verb(word).ok_or_else(nowhere)?;
        permitted(view, operation)?;
        let read = one::read(view, kind, id).await?;
        let is_edit = operation.shape == Shape::Edit;
        let shown = if is_edit { Vec::new() } else { Whole::of(view, &read.message).written };
        let about = About {
            shown,
            id: kind.key_of(&read.message),
            title: title(&read.message),
            members: json(&read.message),
            version: read.version.unwrap_or_default(),
        };
        Ok(Self { kind, operation, about: Some(about) })
    }

    /// The members that a form for it has.
    fn members(&self) -> Vec<Member> {
        let mut members = Member::all(&self.operation.form());
        let shape = self.operation.shape;
        members.retain(|member| !self.kind.withholds(shape, &member.name));
        members.retain(|member| match shape {
            Shape::Edit => member.written == Written::Always,
            // A record is named by its id; requests that also take its parts take either.
            Shape::Verb => member.name != "id" && self.operation.word != "delete",
            _ => member.written != Written::ByTheService,
        });
        members
    }

    fn empty_form(&self, view: &View) -> Result<Response, Status> {
        let known = self.about.as_ref().filter(|_| self.operation.shape == Shape::Edit);
        let tenant = view.caller.tenant().map(TenantId::as_str).or(view.shown_tenant());
        let tenant = tenant.map(Value::from);
        let fields = self.members().into_iter().map(|member| {
            let value = match known {
                Some(about) => about.members.get(&member.name),
                None if member.name == "tenant_id" => tenant.as_ref(),
                None => None,
            };
            Field::of(member, value)
        });
        let version = self.about.as_ref().map(|about| about.version.clone());
        self.form(view, StatusCode::OK, fields.collect(), None, Vec::new(), version)
    }

    fn form(
        &self,
        view: &View,
        status: StatusCode,
        fields: Vec<Field>,
        problem: Option<String>,
        others: Vec<(String, String)>,
        version: Option<String>,
    ) -> Result<Response, Status> {
        let back = match &self.about {
            Some(about) => self.kind.address(&about.id),
            None => format!("/console/records/{}", self.kind.path),
        };
        let action = match &self.about {
            Some(_) => format!("{back}/{}", self.operation.word),
            None => format!("{back}/new/{}", self.operation.word),
        };
        let form = FormPage {
            frame: view.frame(self.question(), Section::Records),
            act: self,
            action,
            back,
            fields,
            problem,
            others,
            key: idempotency_key()?,
            version: version.unwrap_or_default(),
        };
        Ok(page(status, &form))
    }

    /// What it does, as its page says.
    fn about(&self) -> &str {
        match self.operation.shape {
            Shape::Edit => "What you leave as it is stays so, whoever else changes it meanwhile.",
            _ => &self.operation.about,
        }
    }

    /// `Revoke “support desk”?`
    fn question(&self) -> String {
        let label = &self.operation.label;
        match &self.about {
            Some(about) if self.operation.shape == Shape::Edit => {
                format!("{label} “{}”", about.title)
            }
            Some(about) => format!("{label} “{}”?", about.title),
            None if self.operation.shape == Shape::Create => format!("{label}: {}", self.kind.one),
            None => label.clone(),
        }
    }

    async fn send(&self, view: &View, form: &Pairs) -> Result<Response, Status> {
        let mut filled = Filled::read(self.members(), form);
        let version = form.text("version").to_owned();
        let wrong = "Nothing was changed: something here is not what it must be.";
        let request = if filled.is_readable() {
            let request = self.request(&filled);
            request.map_err(|problems| filled.note(problems))
        } else {
            Err(Vec::new())
        };
        let request = match request {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(see(&self.unchanged())),
            Err(others) => {
                let (status, problem) = (StatusCode::BAD_REQUEST, Some(wrong.to_owned()));
                return self.form(view, status, filled.fields, problem, others, Some(version));
            }
        };
        let mut headers = Vec::new();
        if !form.text("key").is_empty() {
            headers.push(("idempotency-key", form.text("key")));
        }
        if !version.is_empty() {
            headers.push(("if-match", version.as_str()));
        }
        match call(view, self.operation, &request, &headers).await {
            Ok(answered) => {
                let known = self.about.as_ref().map(|about| about.id.as_str());
                let message = &answered.message;
                Ok(outcome::page_of(view, self.kind, self.operation, known, message))
            }
            Err(status) => {
                let problem = Problem::of(&status);
                if !is_for_the_form(problem.status) {
                    return Err(status);
                }
                let others = filled.note(problem.members);
                let text = Some(format!("Nothing was changed: {}.", problem.message));
                self.form(view, problem.status, filled.fields, text, others, Some(version))
            }
        }
    }

    /// The request, `None` if it would change nothing.
    fn request(&self, filled: &Filled) -> Result<Option<DynamicMessage>, Vec<(String, String)>> {
        let operation = self.operation;
        let changed = self.changed(filled);
        if operation.shape == Shape::Edit && changed.is_empty() {
            return Ok(None);
        }
        let values = filled.values.clone().into_iter();
        let values =
            values.filter(|(name, _)| operation.shape != Shape::Edit || changed.contains(name));
        let mut message = of_json(&operation.form(), values.collect())?;
        if let Some(state) = self.kind.first_state().filter(|_| operation.shape == Shape::Create) {
            set_text(&mut message, "state", state);
        }
        let mut request = match &operation.body {
            Some(body) => {
                let mut request = DynamicMessage::new(operation.input.clone());
                request.set_field(body, Proto::Message(message));
                request
            }
            None => message,
        };
        if let Some(about) = &self.about {
            self.kind.name_in(&mut request, &about.id);
        }
        if operation.shape == Shape::Edit {
            set_mask(&mut request, changed);
        }
        Ok(Some(request))
    }

    /// The members whose value is not the record's.
    fn changed(&self, filled: &Filled) -> Vec<String> {
        let is_set = |value: &&Value| !matches!(value, Value::Null | Value::Bool(false));
        let now = |name: &str| {
            let about = self.about.as_ref()?;
            about.members.get(name).filter(is_set)
        };
        let names = filled.fields.iter().map(|field| &field.member.name);
        let differs = |name: &&String| now(name) != filled.values.get(*name).filter(is_set);
        names.filter(differs).cloned().collect()
    }

    fn unchanged(&self) -> String {
        let about = self.about.as_ref();
        about.map_or_else(String::new, |about| self.kind.address(&about.id))
    }
}

/// Names the members of the request's record that it changes.
fn set_mask(request: &mut DynamicMessage, names: Vec<String>) {
    let names = Proto::List(names.into_iter().map(Proto::String).collect());
    if let Some(Proto::Message(mask)) = request.get_field_by_name_mut("update_mask") {
        mask.set_field_by_name("paths", names);
    }
}

fn permitted(view: &View, operation: &Operation) -> Result<(), Status> {
    if view.may(&operation.rpc) {
        return Ok(());
    }
    Err(Status::permission_denied("your role may not do this"))
}

/// Whether a refusal is about what was written, so that the form shows it.
fn is_for_the_form(status: StatusCode) -> bool {
    use StatusCode as S;
    [S::BAD_REQUEST, S::CONFLICT, S::PRECONDITION_FAILED, S::UNPROCESSABLE_ENTITY].contains(&status)
}
