//! The last step of a form that moves a record into a final state: the changes, the consequences,
//! and a name to type.

use super::{
    depends::Depends,
    ending::{self, Ending},
    field::SubmittedForm,
    step::Act,
};
use crate::kit::prelude::*;

#[derive(Template)]
#[template(path = "record_last.html")]
struct LastPage<'a> {
    frame: Frame,
    act: &'a Act,
    ending: Ending,
    action: String,
    /// The final state.
    word: String,
    /// The other changes of the form.
    others: Vec<(String, Vec<String>)>,
    /// The form's fields, to be sent again.
    sent: Vec<(String, String)>,
    question: String,
    /// The idempotency key: a form that is sent twice takes effect only once.
    key: String,
}

/// The field that marks a form after this step was shown.
const SHOWN: &str = "last";

impl Act {
    /// The final state into which the form moves the record, if any.
    fn final_word(&self, filled: &SubmittedForm) -> Option<String> {
        let changed = self.changed(filled);
        let fields = filled.fields.iter().filter(|field| changed.contains(&field.member.name));
        let words = fields.filter_map(|field| {
            let value = filled.values.get(&field.member.name)?;
            let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.kind.is_final(&field.member, &word).then_some(word)
        });
        let word = words.map(|word| if word == "true" { "revoked".to_owned() } else { word });
        word.into_iter().next()
    }

    /// The page that requires the name. `None` if the form needs no name or has it.
    pub(super) async fn last_step(
        &self,
        view: &View,
        form: &Pairs,
        filled: &SubmittedForm,
    ) -> Result<Option<Response>, Status> {
        let (Some(about), Some(word)) = (&self.about, self.final_word(filled)) else {
            return Ok(None);
        };
        let ending = Ending::of(view, self.kind, &word, &about.title, &about.members).await;
        let wrong = ending.problem(form.text(ending::NAME));
        if wrong.is_none() {
            return Ok(None);
        }
        let problem = wrong.filter(|_| form.one(SHOWN).is_some());
        let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let changed = self.changed(filled);
        let others = filled.fields.iter().filter(|field| {
            let is_it = matches!(field.member.name.as_str(), "state" | "status" | "revoke");
            !is_it && changed.contains(&field.member.name)
        });
        let is_sent = |name: &str| {
            name.starts_with("m.")
                || name.starts_with("given.")
                || ["shown", "version"].contains(&name)
        };
        let sent = form.iter().filter(|(name, _)| is_sent(name));
        let question = t::records::set_question(&about.title, &word);
        let frame = view.frame(question.clone(), Section::Records);
        let shown = LastPage {
            frame: frame.failed_if(t::records::NOT_CHANGED, problem, Some(ending::NAME)),
            question,
            act: self,
            ending,
            action: format!("{}/{}", self.address(), self.operation.word),
            others: others.map(|field| (field.member.label.clone(), field.written())).collect(),
            sent: sent.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            key: idempotency_key()?,
            word,
        };
        Ok(Some(page(status, &shown)))
    }
}
