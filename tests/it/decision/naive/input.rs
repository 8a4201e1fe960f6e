//! The naive evaluator's check of the input, with the few schemas of random worlds written out one
//! by one.

use authority_decision::input_schema::InputAt;

use super::*;

impl<'a> World<'a> {
    pub(super) fn input_is_bad(&self, way: &Way<'a>) -> bool {
        self.declared_otherwise() || self.typed_otherwise() || self.schema_broken(way)
    }

    fn has(&self, name: &str, kind: &str) -> bool {
        match self.ask.context.get(name) {
            None => true,
            Some(value) => match kind {
                "boolean" => value.is_boolean(),
                "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
                "object" => value.is_object(),
                _ => false,
            },
        }
    }

    /// Returns whether the input violates the tenant's `context_schema`.
    fn declared_otherwise(&self) -> bool {
        let Some(declared) = &self.graph.tenant.as_ref().unwrap().context_schema else {
            return false;
        };
        let declared = serde_json::to_value(declared).unwrap();
        let action = self.ask.action.as_str();
        if declared["payment.*"]["flagged"] == "no type" {
            return true;
        }
        if declared["payment.*"]["flagged"] == "boolean" {
            let payment = action.starts_with("payment.") && !self.has("flagged", "boolean");
            return payment || !self.has("note", "object");
        }
        if declared["*"]["flagged"] == "integer" {
            let kind = if action == "payment.execute" { "boolean" } else { "integer" };
            return !self.has("flagged", kind);
        }
        action == "report.read" && self.ask.context.get("note").is_none()
    }

    /// Returns whether the input violates a type that all tools for the action declare alike.
    /// Fields that the tenant declares are not checked here.
    fn typed_otherwise(&self) -> bool {
        let tools = self
            .tools
            .iter()
            .filter(|tool| tool.live && any_matches(&tool.actions, &self.ask.action));
        let names: Vec<Option<&str>> = tools
            .map(|tool| {
                let own = tool.input.as_ref().filter(|own| own.at == InputAt::Context);
                own.map(|own| own.sha256.as_str())
            })
            .collect();
        let has = |name: &str| names.contains(&Some(name));
        let declared = self.graph.tenant.as_ref().unwrap().context_schema.as_ref();
        let by_tenant =
            |name: &str| declared.is_some_and(|own| own.member(&self.ask.action, name).is_some());
        let note_in_all = names.iter().all(|name| *name == Some("schema-note"));
        (has("schema-flagged") && !by_tenant("flagged") && !self.has("flagged", "boolean"))
            || (has("schema-note")
                && !by_tenant("note")
                && (!self.has("note", "object")
                    || note_in_all && self.ask.context.get("note").is_none()))
            || self.arguments_required(&names)
    }

    /// Returns whether all of the tools require an argument. Requests of random worlds have no
    /// arguments.
    fn arguments_required(&self, names: &[Option<&str>]) -> bool {
        let tools = self
            .tools
            .iter()
            .filter(|tool| tool.live && any_matches(&tool.actions, &self.ask.action));
        let asks = |tool: &Arc<Tool>| {
            let own = tool.input.as_ref();
            own.is_some_and(|own| own.at == InputAt::Arguments && own.sha256 == "schema-note")
        };
        let each: Vec<bool> = tools.map(asks).collect();
        !names.is_empty() && each.into_iter().all(|asks| asks)
    }

    fn schema_broken(&self, way: &Way<'a>) -> bool {
        self.binding(way).into_iter().any(|tool| {
            let Some(own) = &tool.input else { return false };
            match (own.sha256.as_str(), own.at) {
                ("schema-flagged", InputAt::Context) => !self.has("flagged", "boolean"),
                ("schema-note", InputAt::Context) => {
                    !self.has("note", "object") || self.ask.context.get("note").is_none()
                }
                // Requests of random worlds have no arguments.
                ("schema-note", InputAt::Arguments) => true,
                ("schema-amount", InputAt::Context) => {
                    let others = ["flagged", "note"];
                    self.amount().is_some_and(|amount| amount > 2000.0)
                        || others.iter().any(|name| self.ask.context.contains_key(*name))
                }
                _ => false,
            }
        })
    }
}
