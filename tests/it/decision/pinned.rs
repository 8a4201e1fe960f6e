//! A tool with a definition that is not pinned never makes its action freer.
//!
//! In random worlds, a tool of the tenant loses its pin, gets another pin, or belongs to no MCP
//! server. Whichever tool a request names, the decision without a pin is never freer.

use std::sync::Arc;

use authority_decision::{
    Decision, Draft, Facts, Gathered, Reason, Request, decide,
    facts::{Definition, Tool, Used, Uses},
};
use proptest::{collection::vec, prelude::any};

use super::{
    agree::runner,
    naive,
    worlds::{self, DIGESTS, World},
};

/// Returns the world in which the tool has this definition, with the facts for the draft.
fn with(world: &World, draft: &Draft, id: &str, definition: Option<&Definition>) -> World {
    let changed = |tool: &Arc<Tool>| {
        if tool.id == id {
            Arc::new(Tool { definition: definition.cloned(), ..Tool::clone(tool) })
        } else {
            Arc::clone(tool)
        }
    };
    let used = |uses: &mut Uses| {
        if let Used::Tool(tool) = &mut uses.used {
            *tool = changed(tool);
        }
    };
    let mut gathered = Gathered::clone(&world.facts.gathered);
    gathered.uses.iter_mut().for_each(used);
    gathered.chain_denials.iter_mut().for_each(|row| used(&mut row.denial));
    let facts = Facts { gathered: gathered.into(), ..world.facts.clone() };
    let tools = world.tools.iter().map(changed).collect();
    let mut all = World { draft: draft.clone(), facts, at: world.at, tools };
    all.facts = all.facts_with_tools(&all.facts, draft);
    all
}

/// Returns how free a decision is.
fn freedom(decision: Decision) -> u8 {
    match decision {
        Decision::Deny => 0,
        Decision::RequireApproval => 1,
        Decision::AllowWithConstraints => 2,
        Decision::Allow => 3,
    }
}

fn decided(world: &World) -> (Decision, Reason) {
    let verdict = decide(&Request::new(world.draft.clone()).unwrap(), &world.facts, world.at);
    (verdict.decision, verdict.reason_code)
}

/// Whether the request names the tool, or names none and the tool performs its action.
fn binds(world: &World, id: &str) -> bool {
    let Some(tool) = world.tools.iter().find(|tool| tool.id == id) else { return false };
    match &world.draft.tool_id {
        Some(named) => *named == id,
        None => tool.live && naive::any_matches(&tool.actions, &world.draft.action),
    }
}

#[test]
fn an_unpinned_tool_never_makes_its_action_freer() {
    let outcome = runner(1_500).run(&vec(any::<u8>(), 0..700), |bytes| {
        let world = worlds::draw(&bytes);
        for id in ["tool-1", "tool-2", "tool-3"] {
            for named in [None, Some("tool-1"), Some("tool-2"), Some("tool-3")] {
                let tool_id = named.map(Into::into);
                let draft = Draft { tool_id, ..world.draft.clone() };
                let unpinned = with(&world, &draft, id, Some(&Definition::Unpinned));
                let (without, reason) = decided(&unpinned);
                if binds(&unpinned, id) {
                    assert_eq!(without, Decision::Deny, "{id} {named:?} {reason}");
                }
                let pinned = DIGESTS.map(|digest| Some(Definition::Pinned(digest.to_owned())));
                for definition in [None].into_iter().chain(pinned) {
                    let (decision, _) = decided(&with(&world, &draft, id, definition.as_ref()));
                    assert!(freedom(without) <= freedom(decision), "{id} {named:?} {reason}");
                }
            }
        }
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_pinned_tool_is_only_permitted_with_its_digest() {
    let outcome = runner(1_500).run(&vec(any::<u8>(), 0..700), |bytes| {
        let world = worlds::draw(&bytes);
        let [pinned, other] = DIGESTS.map(str::to_owned);
        for digest in [None, Some(other)] {
            let draft = Draft { tool_definition_digest: digest, ..world.draft.clone() };
            let definition = Definition::Pinned(pinned.clone());
            let world = with(&world, &draft, "tool-1", Some(&definition));
            if binds(&world, "tool-1") {
                assert_eq!(decided(&world).0, Decision::Deny);
            }
        }
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
}
