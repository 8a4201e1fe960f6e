//! Bounds the cost of a schema when it is written.
//!
//! Each byte of a context belongs to one value. Checking a byte takes one step for each schema that
//! applies to that value, and further steps for the schema's pattern, `enum` and `const`. `allOf`,
//! `anyOf` and `$ref` apply several schemas to one value, and each of these schemas may have a
//! schema for the same field. A schema that refers to itself may therefore double the cost at each
//! level of the context.

use std::collections::BTreeSet;

use super::node::{Among, Id, Node};
use crate::request::draft::DEEPEST;

/// The maximum number of steps per byte of a context: about 20 ms for a context of 256 KiB.
pub(crate) const MOST_STEPS: u64 = 64;
/// The maximum length of a chain of schemas that apply to one value.
const MOST_HERE: usize = 16;
/// The maximum number of schemas of fields and items in a document. A schema counts once for each
/// schema that applies it.
const MOST_BELOW: usize = 100_000;

/// A schema at fault, with the reason.
pub(super) type Costly = (Id, String);

/// Returns the maximum number of steps that a schema takes per byte of a context.
pub(super) fn of(nodes: &[Node]) -> Result<u64, Costly> {
    let mut own = vec![0_u64; nodes.len()];
    for id in order(nodes)? {
        let Some(node) = nodes.get(id) else { continue };
        let here = node.here().map(|one| at(&own, one)).fold(steps(node), u64::saturating_add);
        if here > MOST_STEPS {
            return Err((id, too_costly()));
        }
        if let Some(own) = own.get_mut(id) {
            *own = here;
        }
    }
    let below = below(nodes)?;
    // Goes from the greatest depth of a context to its root.
    let mut worst = own.clone();
    for _ in 1..DEEPEST {
        let sum = |ids: &Vec<Id>| ids.iter().map(|id| at(&worst, *id)).fold(0, u64::saturating_add);
        let deepest = |groups: &Vec<Vec<Id>>| groups.iter().map(sum).max().unwrap_or_default();
        worst = own.iter().zip(&below).map(|(own, groups)| (*own).max(deepest(groups))).collect();
    }
    let cost = at(&worst, 0);
    if cost > MOST_STEPS { Err((0, too_costly())) } else { Ok(cost) }
}

fn too_costly() -> String {
    format!(
        "could take over {MOST_STEPS} steps for each byte of a context: shorten its patterns or anchor them by `^` \
         and `$`, or apply fewer schemas to one value"
    )
}

/// Returns the steps of a schema's own keywords.
fn steps(node: &Node) -> u64 {
    let patterns = node.pattern.as_ref().map_or(0, |pattern| pattern.cost);
    let compared = node.among.as_ref().map_or(0, Among::cost) + u64::from(node.constant.is_some());
    patterns.saturating_add(compared).saturating_add(1)
}

fn at(steps: &[u64], id: Id) -> u64 {
    steps.get(id).copied().unwrap_or(u64::MAX)
}

/// Groups, for each schema, the schemas that it applies to one field or item.
fn below(nodes: &[Node]) -> Result<Vec<Vec<Vec<Id>>>, Costly> {
    let mut count = 0;
    let mut all = Vec::with_capacity(nodes.len());
    for id in 0..nodes.len() {
        let mut here = Vec::new();
        together(nodes, id, &mut here);
        let names: BTreeSet<&str> = here.iter().flat_map(|node| node.names()).collect();
        let named =
            names.iter().map(|name| of_all(&here, |node| node.property(name).or(node.additional)));
        let others = [of_all(&here, |node| node.additional), of_all(&here, |node| node.items)];
        let groups: BTreeSet<Vec<Id>> = named.chain(others).filter(|ids| !ids.is_empty()).collect();
        count += names.len() + groups.iter().map(Vec::len).sum::<usize>();
        if count > MOST_BELOW {
            return Err((id, format!("applies over {MOST_BELOW} schemas to members and items")));
        }
        all.push(groups.into_iter().collect());
    }
    Ok(all)
}

fn of_all(here: &[&Node], applied: impl Fn(&Node) -> Option<Id>) -> Vec<Id> {
    here.iter().filter_map(|node| applied(node)).collect()
}

/// Collects the schema and all schemas applied to the same value, once per application.
fn together<'n>(nodes: &'n [Node], id: Id, found: &mut Vec<&'n Node>) {
    let Some(node) = nodes.get(id) else { return };
    found.push(node);
    node.here().for_each(|next| together(nodes, next, found));
}

/// Orders the schemas. Each comes after the schemas that it applies to the same value.
fn order(nodes: &[Node]) -> Result<Vec<Id>, Costly> {
    let mut chains = vec![0_usize; nodes.len()];
    for id in 0..nodes.len() {
        chain(nodes, id, 0, &mut chains)?;
    }
    let mut order: Vec<Id> = (0..nodes.len()).collect();
    order.sort_by_key(|id| chains.get(*id));
    Ok(order)
}

/// Returns the length of the longest chain of schemas for one value, including this schema.
fn chain(nodes: &[Node], id: Id, above: usize, chains: &mut [usize]) -> Result<usize, Costly> {
    let known = chains.get(id).copied().unwrap_or_default();
    if above + known.max(1) > MOST_HERE {
        let problem = format!(
            "applies over {MOST_HERE} schemas to one value in a chain, or refers to itself"
        );
        return Err((id, problem));
    }
    if known > 0 {
        return Ok(known);
    }
    let mut longest = 0;
    for next in nodes.get(id).into_iter().flat_map(Node::here) {
        longest = longest.max(chain(nodes, next, above + 1, chains)?);
    }
    if let Some(own) = chains.get_mut(id) {
        *own = longest + 1;
    }
    Ok(longest + 1)
}
