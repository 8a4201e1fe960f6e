//! The server's definitions of its tools, and the client's lists, which have the pinned tools only.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    Relay,
    pending::{ListRequest, Purpose, Running},
};
use crate::mcp::{
    call::{Era, Stage},
    definition::Definition,
    event::{Action, CallId, Grants},
    message::{INTERNAL, INVALID_PARAMS, Id, Request},
    record::ServerRecord,
    reply,
};

/// How long the server may take for a page of its tools.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most tools of a server.
const MOST_TOOLS: usize = 1_000;
/// How long a client may keep a list.
const TTL: Duration = Duration::from_secs(60);

impl Relay {
    pub(super) fn list_tools(&mut self, request: Request) {
        if request.params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
            self.refuse(&request.id, INVALID_PARAMS, "the list has one page");
            return;
        }
        let stateless = Era::of(&request.params) != Era::Session;
        self.lists.push(ListRequest {
            id: request.id,
            stateless,
            definitions: None,
            grants: None,
            has_record: false,
        });
        self.load_record();
        self.send(Action::LoadGrants);
        self.list_for(Purpose::Client);
    }

    /// Reports the server's definitions, once they are listed.
    pub(super) fn observe(&mut self) {
        if self.ready {
            self.list_for(Purpose::Observe);
        }
    }

    pub(super) fn list_for(&mut self, purpose: Purpose) {
        if self.listing.running.is_some() {
            self.listing.queued.push(purpose);
        } else {
            self.start_listing(vec![purpose]);
        }
    }

    fn start_listing(&mut self, purposes: Vec<Purpose>) {
        let id = self.own_id();
        let began_at = self.now;
        self.listing.running =
            Some(Running { id: id.clone(), began_at, purposes, found: Vec::new() });
        self.ask_for_page(&id, None);
    }

    fn ask_for_page(&mut self, id: &Id, cursor: Option<String>) {
        let mut params = Map::new();
        if let Some(meta) = &self.meta {
            params.insert("_meta".to_owned(), Value::Object(meta.clone()));
        }
        if let Some(cursor) = cursor {
            params.insert("cursor".to_owned(), Value::from(cursor));
        }
        self.send(Action::ToServer(reply::request(id, "tools/list", &params)));
    }

    /// Whether an answer of the server is for the relay's own request, which then takes it.
    pub(super) fn takes_page(&mut self, id: &Id, result: Option<&str>) -> bool {
        if self.listing.running.as_ref().is_none_or(|running| running.id != *id) {
            return matches!(id, Id::Text(text) if text.starts_with(&self.own));
        }
        let read = result.ok_or_else(|| "the server refuses".to_owned());
        let read = read.and_then(|text| self.listing.read(text));
        let Some(running) = &mut self.listing.running else { return true };
        match read {
            Err(why) => self.finish_listing(Err(why)),
            Ok(read) => {
                running.found.extend(read.definitions);
                let is_full = running.found.len() > MOST_TOOLS;
                for why in read.unreadable {
                    self.warn(format!("a tool of the server is hidden: {why}"));
                }
                match read.next {
                    Some(_) if is_full => {
                        self.finish_listing(Err(format!("the server has over {MOST_TOOLS} tools")));
                    }
                    Some(cursor) => {
                        let id = self.own_id();
                        if let Some(running) = &mut self.listing.running {
                            running.id = id.clone();
                        }
                        self.ask_for_page(&id, Some(cursor));
                    }
                    None => self.finish_listing(Ok(())),
                }
            }
        }
        true
    }

    fn finish_listing(&mut self, done: Result<(), String>) {
        let Some(running) = self.listing.running.take() else { return };
        let queued = std::mem::take(&mut self.listing.queued);
        if !queued.is_empty() {
            self.start_listing(queued);
        }
        if let Err(why) = &done {
            self.warn(format!("the server's tools can't be listed: {why}"));
        }
        let found = done.map(|()| running.found);
        self.report_changes(found.as_ref().map(Vec::as_slice).unwrap_or_default());
        for purpose in running.purposes {
            match (purpose, &found) {
                (Purpose::Call(call), found) => {
                    self.listed_for(call, found.as_deref().map_err(|_| ()));
                }
                (Purpose::Client, Ok(found)) => self.listed_for_client(found),
                (Purpose::Client, Err(_)) => self.fail_lists("the server's tools can't be listed"),
                (Purpose::Observe, _) => {}
            }
        }
    }

    pub(super) fn listing_tick(&mut self) {
        let now = self.now;
        let is_late = |running: &Running| now.saturating_sub(running.began_at) > TIMEOUT;
        if self.listing.running.as_ref().is_some_and(is_late) {
            self.finish_listing(Err("no answer".to_owned()));
        }
    }

    /// Reports definitions that differ from the newest that the service knows.
    fn report_changes(&mut self, found: &[Arc<Definition>]) {
        let Some(record) = self.record() else { return };
        let known = record.by_name();
        let is_new = |definition: &&Arc<Definition>| {
            known
                .get(definition.name.as_str())
                .is_none_or(|tool| tool.mcp.seen_digest != definition.digest)
        };
        let changed: Vec<_> = found.iter().filter(is_new).map(|one| one.value.clone()).collect();
        if !changed.is_empty() {
            self.send(Action::Observe(changed));
        }
    }

    fn listed_for(&mut self, id: CallId, found: Result<&[Arc<Definition>], ()>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let Stage::Listing { cite } = call.stage.clone() else { return };
        let crate::mcp::call::Kind::Tool { name, .. } = &call.kind else { return };
        let Ok(found) = found else {
            self.deny(
                id,
                "Denied: the server's tools can't be listed, so that its definition is unknown.",
            );
            return;
        };
        // Two tools with the same name can't be told apart.
        let mut same = found.iter().filter(|definition| definition.name == *name);
        let seen = match (same.next(), same.next()) {
            (Some(one), None) => Some(one.digest.clone()),
            _ => None,
        };
        call.stage = Stage::Record { seen, cite };
        if self.fresh_record().is_some() {
            self.judge_pin(id);
        } else {
            self.load_record();
        }
    }

    pub(super) fn record_read(&mut self, read: Result<Box<ServerRecord>, String>) {
        self.loading_since = None;
        match read {
            Ok(record) => {
                self.record = Some((record, self.now));
                for list in &mut self.lists {
                    list.has_record = true;
                }
                self.answer_lists();
            }
            Err(why) => {
                self.warn(format!("the record of the server can't be read: {why}"));
                self.fail_lists("the service can't be reached");
            }
        }
        let waiting =
            self.calls.iter().filter(|(_, call)| matches!(call.stage, Stage::Record { .. }));
        let waiting: Vec<_> = waiting.map(|(id, _)| *id).collect();
        for call in waiting {
            if self.fresh_record().is_some() {
                self.judge_pin(call);
            } else {
                self.unavailable(call, "the service can't be reached");
            }
        }
    }

    pub(super) fn grants_read(&mut self, read: &Result<Grants, String>) {
        match read {
            Ok(grants) => {
                for list in self.lists.iter_mut().filter(|list| list.grants.is_none()) {
                    list.grants = Some(grants.clone());
                }
                self.answer_lists();
            }
            Err(why) => {
                self.warn(format!("the agent's grants can't be read: {why}"));
                self.fail_lists("the service can't be reached");
            }
        }
    }

    fn listed_for_client(&mut self, found: &[Arc<Definition>]) {
        for list in self.lists.iter_mut().filter(|list| list.definitions.is_none()) {
            list.definitions = Some(found.to_vec());
        }
        self.answer_lists();
    }

    fn fail_lists(&mut self, why: &str) {
        for list in std::mem::take(&mut self.lists) {
            self.refuse(&list.id, INTERNAL, why);
        }
    }

    fn answer_lists(&mut self) {
        let Some(record) = self.fresh_record() else { return };
        let is_ready = |list: &ListRequest| {
            list.has_record && list.grants.is_some() && list.definitions.is_some()
        };
        let answers: Vec<_> = self
            .lists
            .iter()
            .filter(|list| is_ready(list))
            .map(|list| list.answer(record))
            .collect();
        self.lists.retain(|list| !is_ready(list));
        self.out.extend(answers.into_iter().map(Action::ToClient));
    }
}

impl ListRequest {
    /// The list: tools whose definition is the pinned one, and whose action the agent may perform.
    fn answer(&self, record: &ServerRecord) -> Vec<u8> {
        let known = record.by_name();
        let found = self.definitions.as_deref().unwrap_or_default();
        let shown = found.iter().filter_map(|definition| {
            let tool = known.get(definition.name.as_str()).filter(|_| record.is_active())?;
            let action = tool.action()?;
            let is_shown = tool.fault(Some(&definition.digest)).is_none()
                && self.grants.as_ref().is_some_and(|all| all.cover(action));
            is_shown.then(|| advised(&definition.value, &tool.advice))
        });
        let tools: Vec<_> = shown.collect();
        let mut result = json!({ "tools": tools });
        if self.stateless {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(TTL.as_millis().try_into().unwrap_or(0_u64));
            result["cacheScope"] = json!("private");
        }
        reply::result(&self.id, &result)
    }
}

/// Adds the policies' advice to the description of a tool.
fn advised<'a>(
    definition: &'a Map<String, Value>,
    advice: &[String],
) -> Cow<'a, Map<String, Value>> {
    let description = match definition.get("description") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text.as_str(),
        Some(_) => return Cow::Borrowed(definition),
    };
    if advice.is_empty() {
        return Cow::Borrowed(definition);
    }
    let advised = format!("{description}\n\nPolicies: {}", advice.join(" "));
    let mut definition = definition.clone();
    definition.insert("description".to_owned(), json!(advised.trim_start()));
    Cow::Owned(definition)
}
