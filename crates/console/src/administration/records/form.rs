//! The page of an operation's form: a description, the record, and the fields.

use authority_crypto::sha256;
use authority_ids::TenantId;

use super::{
    depends::Depends,
    doubts::{CONFIRMED, Doubt},
    field::{Field, Place},
    pickers::{self, Picker},
    sentence::Sentence,
    shown::Datum,
    step::Act,
};
use crate::kit::{
    kinds::{Member, Shape},
    prelude::*,
};

#[derive(Template)]
#[template(path = "record_form.html")]
struct FormPage<'a> {
    frame: Frame,
    act: &'a Act,
    /// `Revoke “support desk”?`
    question: String,
    action: String,
    back: String,
    content: Content,
    /// The result of a hand-made form.
    sentence: Option<String>,
    pickers: Vec<Picker>,
    /// The idempotency key: a form that is sent twice takes effect only once.
    key: String,
}

/// The content of a form.
pub(super) struct Content {
    pub(super) fields: Vec<Field>,
    pub(super) problem: Option<String>,
    /// The field with the problem, if it is not a field of the record.
    pub(super) field: Option<&'static str>,
    /// Errors that belong to no field of the form.
    pub(super) others: Vec<(String, String)>,
    /// Whether somebody changed the record after the form was opened.
    pub(super) moved: bool,
    /// A warning to confirm before the form is sent.
    pub(super) doubt: Option<Doubt>,
    /// The version of the record that the page shows.
    pub(super) version: String,
    /// The values, if the form shows their result in a sentence.
    pub(super) preview: Option<Map<String, Value>>,
}

/// The field with a digest of the values that the shown sentence describes.
pub(super) const RESULT: &str = "result";

/// The digest of a form's values.
pub(super) fn result(values: &Map<String, Value>) -> String {
    hex::encode(sha256(Value::from(values.clone()).to_string().as_bytes()))
}

impl Content {
    pub(super) fn of(version: &str) -> Self {
        Self {
            fields: Vec::new(),
            problem: None,
            field: None,
            others: Vec::new(),
            moved: false,
            doubt: None,
            version: version.to_owned(),
            preview: None,
        }
    }

    /// The digest of the values that the sentence describes; empty without a sentence.
    fn digest(&self) -> String {
        self.preview.as_ref().map(result).unwrap_or_default()
    }

    /// Whether a field that is closed at first has an error.
    fn opens_more(&self) -> bool {
        self.fields.iter().any(|field| field.place == Place::More && field.problem.is_some())
    }

    /// The tenant that the form names.
    fn tenant(&self) -> Option<String> {
        let field = self.fields.iter().find(|field| needs_tenant(&field.member))?;
        TenantId::parse(&field.text).ok().map(|id| id.as_str().to_owned())
    }

    /// The fields with errors, and the errors.
    fn troubles(&self) -> Vec<(&Field, String)> {
        self.fields.iter().filter_map(|field| Some((field, field.trouble()?))).collect()
    }
}

impl Act {
    /// The empty form. The form for a new target has the values of the list's filter.
    pub(super) async fn empty_form(&self, view: &View, query: &Pairs) -> Result<Response, Status> {
        let known = self.about.as_ref().filter(|_| self.operation.shape == Shape::Edit);
        let members = self.members();
        let tenant = match view.tenant() {
            Some(tenant) => Some(tenant.into()),
            None if known.is_none() && members.iter().any(needs_tenant) => {
                pickers::only_tenant(view).await
            }
            None => None,
        };
        let tenant = tenant.map(Value::from);
        let fields = members.into_iter().map(|member| {
            if let Some(about) = known {
                return Field::editing(member, &about.members);
            }
            if self.kind.exception.part_of == Some(member.name.as_str()) {
                let whole = Field::asked(&member, query).map(Value::from);
                return Field::of(member, whole.as_ref());
            }
            let tenant = tenant.as_ref().filter(|_| needs_tenant(&member));
            Field::of(member, tenant)
        });
        let content = Content { fields: fields.collect(), ..Content::of(self.version()) };
        self.form(view, StatusCode::OK, content).await
    }

    pub(super) fn version(&self) -> &str {
        self.about.as_ref().map_or("", |about| about.version.as_str())
    }

    pub(super) async fn form(
        &self,
        view: &View,
        status: StatusCode,
        mut content: Content,
    ) -> Result<Response, Status> {
        // The tenant is unknown only if the caller is the installation's owner.
        let is_needed = view.caller.tenant().is_none();
        for field in content.fields.iter_mut().filter(|field| needs_tenant(&field.member)) {
            field.member.required = is_needed;
        }
        content.fields.iter_mut().for_each(|field| field.explain(&self.kind.singular));
        let pickers = match self.layout() {
            Some(layout) => {
                layout.arrange(&mut content.fields);
                let tenant = self.tenant(view).map(str::to_owned).or_else(|| content.tenant());
                pickers::propose(view, tenant.as_deref(), &mut content.fields).await
            }
            None => pickers::fill(view, self.tenant(view), &mut content.fields).await,
        };
        let values = content.preview.as_ref();
        let sentence = values
            .and_then(|values| Sentence::new(values, &content.fields).of(&self.kind.singular));
        let back = self.address();
        let action = match &self.about {
            Some(_) => format!("{back}/{}", self.operation.word),
            None => format!("{back}/new/{}", self.operation.word),
        };
        let question = self.question();
        let frame = view.frame(question.clone(), Section::Records);
        let problem = content.problem.as_deref();
        let form = FormPage {
            frame: frame.failed_if(self.operation.undone(), problem, content.field),
            question,
            act: self,
            action,
            back,
            content,
            sentence,
            pickers,
            key: idempotency_key()?,
        };
        Ok(page(status, &form))
    }

    /// The tenant of the record, or otherwise the selected tenant.
    fn tenant<'a>(&'a self, view: &'a View) -> Option<&'a str> {
        let own = self.about.as_ref().and_then(|about| about.members.get("tenant_id")?.as_str());
        own.or(view.tenant().map(TenantId::as_str))
    }

    /// The description of the operation, as shown on its page.
    fn about(&self) -> &str {
        match self.operation.shape {
            Shape::Edit => t::records::EDIT_ABOUT,
            _ => self.layout().map_or(self.operation.about.as_str(), |layout| layout.lead),
        }
    }

    /// `Revoke “support desk”?`
    fn question(&self) -> String {
        let label = &self.operation.label;
        if let Some(grant) = self.ending().and_then(|ending| ending.grant.as_ref()) {
            return t::records::end_delegation(label, &grant.from.name, &grant.to.name);
        }
        match &self.about {
            Some(about) if self.operation.shape == Shape::Edit => {
                t::records::edit(label, &about.title)
            }
            Some(about) => t::records::question(label, &about.title),
            None if self.operation.shape == Shape::Create => {
                let usual = || t::records::create(label, &self.kind.one);
                self.layout().map_or_else(usual, |layout| layout.title.to_owned())
            }
            None => label.clone(),
        }
    }
}

/// Whether the installation's owner must name the tenant of a new record. A tenant is optional if its absence has a
/// meaning.
fn needs_tenant(member: &Member) -> bool {
    member.name == "tenant_id" && member.unset.is_none()
}
