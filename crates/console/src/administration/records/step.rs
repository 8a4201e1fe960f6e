//! A chosen operation, with the data of its record.

use super::{
    call::read,
    ending::Ending,
    layout::Layout,
    milder,
    shown::{RecordView, Shown, name_links, titles},
};
use crate::kit::{
    kinds::{Kind, Member, Operation, Shape, Written, json},
    prelude::*,
};

/// An operation of a kind, and the record that it is about.
pub(super) struct Act {
    pub(super) kind: &'static Kind,
    pub(super) operation: &'static Operation,
    pub(super) about: Option<About>,
    /// Whether the person is the installation's owner.
    is_owner: bool,
}

pub(super) struct About {
    /// The id in the form that operations expect.
    pub(super) id: String,
    pub(super) title: String,
    /// Its members as they are now.
    pub(super) members: Map<String, Value>,
    pub(super) version: String,
    /// The members that people wrote, if the page describes the record that the operation changes.
    pub(super) shown: Vec<Shown>,
    /// The confirmation that comes first.
    pub(super) ending: Option<Ending>,
}

impl Act {
    pub(super) fn make(view: &View, kind: &str, word: &str) -> Result<Self, Status> {
        let kind = Kind::known(kind)?;
        let operation = kind.maker(word).ok_or_else(no_page)?;
        check(view, operation)?;
        Ok(Self { kind, operation, about: None, is_owner: view.caller.is_owner() })
    }

    pub(super) async fn on(view: &View, kind: &str, id: &str, word: &str) -> Result<Self, Status> {
        let kind = Kind::known(kind)?;
        let operation = kind.verb(word).ok_or_else(no_page)?;
        check(view, operation)?;
        let read = read(view, kind, id).await?;
        let is_edit = operation.shape == Shape::Edit;
        let mut shown =
            if is_edit { Vec::new() } else { RecordView::of(view, &read.message).written };
        name_links(view, shown.iter_mut().map(|shown| &mut shown.datum)).await;
        let title = titles(view, std::slice::from_ref(&read.message)).await.concat();
        let members = json(&read.message);
        let ending = if operation.ends_for_good() {
            let ending = Ending::of(view, kind, word, &title, &members).await;
            let milder = milder::of_record(view, operation, &kind.key_of(&read.message)).await;
            Some(Ending { milder, ..ending })
        } else {
            None
        };
        let about = About {
            shown,
            ending,
            id: kind.key_of(&read.message),
            title,
            members,
            version: read.version.unwrap_or_default(),
        };
        Ok(Self { kind, operation, about: Some(about), is_owner: view.caller.is_owner() })
    }

    /// The members of the operation's form.
    pub(super) fn members(&self) -> Vec<Member> {
        let mut members = Member::all(&self.operation.form());
        let shape = self.operation.shape;
        members.retain(|member| !self.kind.exception.withholds(shape, &member.name));
        members.retain(|member| match shape {
            Shape::Edit => member.written == Written::Always,
            // The address identifies the record, by its id or the parts of a link's key.
            Shape::Verb => member.name != "id" && self.operation.word != "delete",
            _ => member.written != Written::ByTheService,
        });
        if self.takes_reason() {
            let reason = members.iter_mut().find(|member| member.name == "reason");
            reason.into_iter().for_each(|reason| reason.required = true);
        }
        match self.layout() {
            Some(layout) => layout.members(members, self.kind),
            None => members,
        }
    }

    /// The hand-made form, if there is one for the operation.
    pub(super) fn layout(&self) -> Option<&'static Layout> {
        let creates = self.operation.shape == Shape::Create;
        Layout::of(&self.kind.singular, self.is_owner).filter(|_| creates)
    }

    /// Whether a reason is required.
    pub(super) fn takes_reason(&self) -> bool {
        self.ending().is_some_and(|ending| ending.grant.is_some())
    }

    pub(super) fn ending(&self) -> Option<&Ending> {
        self.about.as_ref()?.ending.as_ref()
    }
}

fn check(view: &View, operation: &Operation) -> Result<(), Status> {
    if view.may(&operation.rpc) {
        return Ok(());
    }
    Err(refused(view, &operation.rpc))
}
