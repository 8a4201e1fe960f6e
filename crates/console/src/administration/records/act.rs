//! The second step of each operation: a form for the fields of its request. The form describes the
//! operation and sends it.

use authority_ids::TenantId;
use prost_reflect::DynamicMessage;

use super::{
    call::{call, read},
    doubts::{self, Doubt},
    ended::over,
    ending,
    field::SubmittedForm,
    form::{self, Content},
    milder, outcome,
    step::Act,
};
use crate::kit::{
    kinds::{Kind, Shape},
    prelude::*,
    unknown_names::unknown_actions,
};

pub(super) async fn make(
    view: View,
    Path((kind, word)): Path<(String, String)>,
    query: Pairs,
) -> Response {
    view.answer(async { Act::make(&view, &kind, &word)?.empty_form(&view, &query).await }.await)
}

pub(super) async fn confirm(
    view: View,
    Path((kind, id, word)): Path<(String, String, String)>,
) -> Response {
    let none = Pairs::default();
    view.answer(
        async { Act::on(&view, &kind, &id, &word).await?.empty_form(&view, &none).await }.await,
    )
}

pub(super) async fn made(
    Path((kind, word)): Path<(String, String)>,
    Posted { view, form }: Posted,
) -> Response {
    match Act::make(&view, &kind, &word) {
        Ok(act) => act.sent(&view, &form).await,
        Err(status) => view.answer(Err(status)),
    }
}

pub(super) async fn act(
    Path((kind, id, word)): Path<(String, String, String)>,
    Posted { view, form }: Posted,
) -> Response {
    match Act::on(&view, &kind, &id, &word).await {
        Ok(act) => act.sent(&view, &form).await,
        Err(status) => view.answer(Err(status)),
    }
}

impl Act {
    /// Returns the form again if a required confirmation is missing.
    fn unconfirmed(&self, filled: &SubmittedForm, form: &Pairs) -> Option<Content> {
        let content = Content::of(form.text("version"));
        if let Some(ending) = self.ending() {
            let named = ending.problem(form.text(ending::NAME));
            let field = named.is_some().then_some(ending::NAME);
            let is_missing = self.takes_reason() && !filled.values.contains_key("reason");
            let problem = named.or_else(|| is_missing.then(|| t::records::NEEDS_REASON.to_owned()));
            return problem.map(|problem| Content { problem: Some(problem), field, ..content });
        }
        None
    }

    /// The warning of a delegation's form, unless the person has seen and confirmed it.
    async fn doubt(&self, view: &View, filled: &SubmittedForm, form: &Pairs) -> Option<Doubt> {
        let is_new = self.operation.shape == Shape::Create;
        if self.kind.singular != "delegation" || !(is_new || self.operation.word == "narrow") {
            return None;
        }
        let doubt = Doubt::of(&filled.values, is_new, self.misspelt_actions(view, filled).await);
        doubt.filter(|doubt| form.text(doubts::CONFIRMED) != doubt.text)
    }

    /// Lists the rules that an edit loosens, unless the form has already shown them.
    async fn loosening(
        &self,
        view: &View,
        request: &DynamicMessage,
        form: &Pairs,
    ) -> Option<Doubt> {
        if self.operation.shape != Shape::Edit {
            return None;
        }
        // If the record has changed since, the form shows this change first.
        let version = [("if-match", form.text("version"))];
        let headers = if version[0].1.is_empty() { &[][..] } else { &version[..] };
        let milder = milder::of(view, self.operation, request, headers).await;
        let doubt = Doubt::of_milder(&milder);
        doubt.filter(|doubt| form.text(doubts::CONFIRMED) != doubt.text)
    }

    /// A warning for each action in the form that is new to the record, unknown, and similar to a
    /// known action.
    async fn misspelt_actions(&self, view: &View, filled: &SubmittedForm) -> Vec<String> {
        let of = |members: &Map<String, Value>| -> Vec<String> {
            let actions = members.get("actions").and_then(Value::as_array);
            actions
                .into_iter()
                .flatten()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect()
        };
        let has = self.about.as_ref().map(|about| of(&about.members)).unwrap_or_default();
        let mut new = of(&filled.values);
        new.retain(|action| !has.contains(action));
        let tenant = self.about.as_ref().map_or(&filled.values, |about| &about.members);
        let tenant = tenant.get("tenant_id").and_then(Value::as_str);
        let tenant = tenant.or(view.caller.tenant().map(TenantId::as_str));
        let Some(tenant) = tenant.filter(|_| !new.is_empty()) else { return Vec::new() };
        let unknown = unknown_actions(view, tenant, &new).await.into_iter();
        let misspelt = unknown.filter(|unknown| unknown.did_you_mean.is_some());
        misspelt.map(|unknown| unknown.warning).collect()
    }

    /// Errors for parties that do not exist. They come before the warning about the permissions of
    /// a new record.
    async fn unknown(&self, view: &View, filled: &SubmittedForm) -> Vec<(String, String)> {
        let ids = filled.values.iter().filter(|(name, _)| doubts::PARTIES.contains(&name.as_str()));
        let ids = ids.filter_map(|(name, value)| Some((name.clone(), value.as_str()?)));
        let read = ids.map(|(name, id)| async move {
            let found = match Kind::of_id(id).filter(|kind| kind.has_ids()) {
                Some(kind) => read(view, kind, id).await.map(|_| ()),
                None => Err(Status::not_found("not an id")),
            };
            let is_unknown = found.is_err_and(|status| status.code() == Code::NotFound);
            is_unknown.then(|| (name, t::kit::UNKNOWN_MEMBER.to_owned()))
        });
        some_at_once(read).await.into_iter().flatten().collect()
    }

    /// The page after the form was sent.
    async fn sent(&self, view: &View, form: &Pairs) -> Response {
        view.answer_act(&self.operation.undone(), self.send(view, form).await)
    }

    async fn send(&self, view: &View, form: &Pairs) -> Result<Response, Status> {
        let edited = self.about.as_ref().filter(|_| self.operation.shape == Shape::Edit);
        let record = edited.map(|about| &about.members);
        let mut filled = SubmittedForm::read(self.members(), form, record);
        let version = form.text("version");
        if !self.version().is_empty() && !is_one_tag(version) {
            // Without the version of the shown record, the form could replace values that the
            // person has not seen.
            return Ok(Notice::unreadable_form().response());
        }
        let is_readable = filled.is_readable();
        if is_readable && let Some(asked) = self.last_step(view, form, &filled).await? {
            return Ok(asked);
        }
        let unconfirmed = self.unconfirmed(&filled, form).filter(|_| is_readable);
        if let Some(content) = unconfirmed {
            let wrong = content.problem.is_some();
            let status = if wrong { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            let content = Content { fields: filled.fields, ..content };
            return self.form(view, status, content).await;
        }
        let request = if filled.is_readable() {
            // An edit may end a record immediately, but narrowing cannot be undone, and a renewal is
            // for a later end.
            let is_made = self.operation.shape != Shape::Edit
                || ["narrow", "renew"].contains(&self.operation.word.as_str());
            let over = over(&filled.values, view.now).filter(|_| is_made);
            let request = over.map_or_else(|| self.request(&filled), |over| Err(vec![over]));
            request.map_err(|problems| filled.note(problems))
        } else {
            Err(Vec::new())
        };
        let request = match request {
            Ok(Some(request)) => request,
            // The form changes no field.
            Ok(None) => return Ok(see(&self.address())),
            Err(others) => {
                let problem = Some(t::records::INVALID.to_owned());
                let fields = filled.fields;
                let content = Content { fields, problem, others, ..Content::of(version) };
                return self.form(view, StatusCode::BAD_REQUEST, content).await;
            }
        };
        let doubt = match self.doubt(view, &filled, form).await {
            None => self.loosening(view, &request, form).await,
            doubt => doubt,
        };
        if doubt.is_some() || self.previews(&filled, form) {
            return self.said_once_more(view, filled, version, doubt).await;
        }
        let mut headers = Vec::new();
        for (name, value) in [("idempotency-key", form.text("key")), ("if-match", version)] {
            if !value.is_empty() {
                headers.push((name, value));
            }
        }
        match call(view, self.operation, &request, &headers).await {
            Ok(answered) => {
                let known = self.about.as_ref().map(|about| about.id.as_str());
                let message = &answered.message;
                Ok(outcome::page_of(view, self.kind, self.operation, known, message))
            }
            Err(status) => self.refused(view, filled, version, status).await,
        }
    }

    /// Whether a hand-made form is first shown with its result. A form that was changed after that
    /// is shown again.
    fn previews(&self, filled: &SubmittedForm, form: &Pairs) -> bool {
        let result = form.one(form::RESULT);
        let differs = |result: &str| result != form::result(&filled.values);
        self.layout().is_some() && (form.text("do") == "preview" || result.is_some_and(differs))
    }

    /// The form again, with its result, with a warning to confirm, or with errors for unknown
    /// parties.
    async fn said_once_more(
        &self,
        view: &View,
        mut filled: SubmittedForm,
        version: &str,
        doubt: Option<Doubt>,
    ) -> Result<Response, Status> {
        let unknown = self.unknown(view, &filled).await;
        let content = Content::of(version);
        if unknown.is_empty() {
            let preview = self.layout().map(|_| filled.values);
            let content = Content { fields: filled.fields, doubt, preview, ..content };
            return self.form(view, StatusCode::OK, content).await;
        }
        filled.note(unknown);
        let problem = Some(t::records::INVALID.to_owned());
        let content = Content { fields: filled.fields, problem, ..content };
        self.form(view, StatusCode::BAD_REQUEST, content).await
    }

    /// The form again, with the person's input and the API's errors.
    async fn refused(
        &self,
        view: &View,
        mut filled: SubmittedForm,
        version: &str,
        status: Status,
    ) -> Result<Response, Status> {
        let problem = Problem::of(&status);
        if !is_for_the_form(problem.status) {
            return Err(status);
        }
        if problem.status == StatusCode::PRECONDITION_FAILED && self.version() != version {
            return self.moved(view, filled).await;
        }
        let others = filled.note(problem.members);
        let text = Some(t::because(problem.message));
        let fields = filled.fields;
        let content = Content { fields, problem: text, others, ..Content::of(version) };
        self.form(view, problem.status, content).await
    }

    /// The form again after another person changed the record. It has the current version of the
    /// record, and the current values of the fields that this person did not change. The fields
    /// that this person changed show the current value next to the input. If the form is sent
    /// again, it changes the current version.
    async fn moved(&self, view: &View, mut filled: SubmittedForm) -> Result<Response, Status> {
        let is_edit = self.operation.shape == Shape::Edit;
        if let (true, Some(about)) = (is_edit, &self.about) {
            filled.follow(&about.members);
            let changed = self.changed(&filled);
            filled.note_present(&changed, &about.members);
        }
        let problem = if is_edit { t::records::EDIT_MOVED } else { t::records::MOVED };
        let (fields, problem) = (filled.fields, Some(problem.to_owned()));
        let content = Content { fields, problem, moved: true, ..Content::of(self.version()) };
        self.form(view, StatusCode::PRECONDITION_FAILED, content).await
    }

    /// The address of the record's page, or of the list of its kind.
    pub(super) fn address(&self) -> String {
        match &self.about {
            Some(about) => self.kind.address(&about.id),
            None => format!("/console/records/{}", self.kind.path),
        }
    }
}

/// Whether `text` is a single entity tag: neither `*` nor a list (RFC 9110, section 13.1.1).
fn is_one_tag(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.contains('"'))
}

/// Whether a refusal is about the person's input. The form then shows it.
fn is_for_the_form(status: StatusCode) -> bool {
    use StatusCode as S;
    let all = [S::BAD_REQUEST, S::FORBIDDEN, S::CONFLICT, S::PRECONDITION_FAILED];
    all.contains(&status) || status == S::UNPROCESSABLE_ENTITY
}
