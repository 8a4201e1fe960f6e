//! Finds the route of a path in a tree of segments, with literals before wildcards.
//!
//! matchit supports neither `{id}:verb` nor a 404 and 405 in the form of the service.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::route::{Route, Segment};

#[derive(Default)]
pub(crate) struct Tree {
    /// Sorted by the literal.
    literals: Vec<(String, Tree)>,
    one: Option<Box<Tree>>,
    here: Vec<Leaf>,
    /// Routes that end in `**`.
    rest: Vec<Leaf>,
}

struct Leaf {
    route: &'static Route,
    /// The verb to split off a variable; empty if a literal contains it.
    verb: &'static str,
}

impl Tree {
    pub(crate) fn insert(&mut self, route: &'static Route) {
        let mut tree = self;
        let (mut verb, mut ends_in_rest) = (route.verb, false);
        for (place, segment) in route.segments.iter().enumerate() {
            match segment {
                Segment::Literal(text) => {
                    let mut text = (*text).to_owned();
                    if place + 1 == route.segments.len() && !verb.is_empty() {
                        text.push(':');
                        text.push_str(verb);
                        verb = "";
                    }
                    tree = tree.literal(text);
                }
                Segment::One => tree = tree.one.get_or_insert_default(),
                Segment::Rest => ends_in_rest = true,
            }
        }
        let leaves = if ends_in_rest { &mut tree.rest } else { &mut tree.here };
        leaves.push(Leaf { route, verb });
    }

    fn literal(&mut self, text: String) -> &mut Self {
        let found = self.literals.binary_search_by(|(literal, _)| literal.cmp(&text));
        let place = match found {
            Ok(place) => place,
            Err(place) => {
                self.literals.insert(place, (text, Self::default()));
                place
            }
        };
        &mut self.literals[place].1
    }

    /// Returns the route for a method and a path that is not decoded yet.
    pub(crate) fn find(&self, method: &str, path: &str) -> Option<&'static Route> {
        let method = if method == "HEAD" { "GET" } else { method };
        let mut wanted = |route: &'static Route| (route.method == method).then_some(route);
        self.walk("", segments(path), &mut wanted)
    }

    /// Returns all routes of a path, for any method.
    pub(crate) fn all(&self, path: &str) -> Vec<&'static Route> {
        let mut all = Vec::new();
        let mut each = |route| {
            all.push(route);
            None
        };
        self.walk("", segments(path), &mut each);
        all
    }

    /// Returns the verb of the path, if no route of the path has this verb. Also returns a route of
    /// the path without the verb.
    pub(crate) fn unknown_verb<'p>(&self, path: &'p str) -> Option<(&'static Route, &'p str)> {
        let last = path.rsplit('/').next().unwrap_or_default();
        let (_, verb) = last.rsplit_once(':').filter(|(before, _)| !before.is_empty())?;
        let is_word = verb.starts_with(|first: char| first.is_ascii_alphabetic())
            && verb.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
        let is_known = || self.all(path).iter().any(|route| route.verb == verb);
        if !is_word || is_known() {
            return None;
        }
        let without = path.strip_suffix(verb)?.strip_suffix(':')?;
        let route = self.at(segments(without))?;
        Some((route, verb))
    }

    /// Returns a route of the path, with any verb.
    fn at(&self, rest: Option<&str>) -> Option<&'static Route> {
        let Some(rest) = rest else {
            return self.here.first().map(|leaf| leaf.route);
        };
        let (head, tail) = match rest.split_once('/') {
            Some((head, tail)) => (head, Some(tail)),
            None => (rest, None),
        };
        self.children(head).into_iter().find_map(|tree| tree.at(tail))
    }

    /// Visits each route of the path, the most literal first, until a route is accepted.
    fn walk(
        &self,
        last: &str,
        rest: Option<&str>,
        take: &mut dyn FnMut(&'static Route) -> Option<&'static Route>,
    ) -> Option<&'static Route> {
        let Some(rest) = rest else {
            let with_verb = self.here.iter().filter(|leaf| !leaf.verb.is_empty());
            let with_verb = with_verb.filter(|leaf| has_verb(last, leaf.verb));
            let without = self.here.iter().chain(&self.rest).filter(|leaf| leaf.verb.is_empty());
            return with_verb.chain(without).find_map(|leaf| take(leaf.route));
        };
        let (head, tail) = match rest.split_once('/') {
            Some((head, tail)) => (head, Some(tail)),
            None => (rest, None),
        };
        self.children(head)
            .into_iter()
            .find_map(|tree| tree.walk(head, tail, take))
            .or_else(|| self.rest.iter().find_map(|leaf| take(leaf.route)))
    }
}

impl Tree {
    /// Returns the trees below a segment, starting with the tree of the literal.
    fn children(&self, head: &str) -> impl IntoIterator<Item = &Self> {
        let text = decode(head).unwrap_or(Cow::Borrowed(head));
        let literal = self.literals.binary_search_by(|(literal, _)| (**literal).cmp(&*text));
        let literal = literal.ok().and_then(|place| self.literals.get(place));
        let one = self.one.as_deref().filter(|_| !head.is_empty());
        literal.map(|(_, tree)| tree).into_iter().chain(one)
    }
}

fn segments(path: &str) -> Option<&str> {
    path.strip_prefix('/').filter(|rest| !rest.is_empty())
}

/// Ids may contain colons: only a known verb is split off, and only if it is not percent-encoded.
fn has_verb(segment: &str, verb: &str) -> bool {
    segment.rsplit_once(':').is_some_and(|(id, end)| !id.is_empty() && end == verb)
}

/// Percent-decodes a text once; `None` if the bytes are not UTF-8.
pub(crate) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(raw).decode_utf8().ok()
}

/// Returns the text of a variable that covers the segments from..to of a path; `None` if it is not
/// UTF-8.
pub(crate) fn variable<'a>(
    route: &Route,
    (from, to): (u16, u16),
    path: &'a str,
) -> Option<Cow<'a, str>> {
    let (from, to) = (usize::from(from), usize::from(to));
    let mut path = path.strip_prefix('/').unwrap_or(path);
    let ends_in_literal = matches!(route.segments.last(), Some(Segment::Literal(_)));
    if !route.verb.is_empty() && !ends_in_literal && to == route.segments.len() {
        path = path.rsplit_once(':').map_or(path, |(path, _)| path);
    }
    let open = route.segments.get(from..to).is_some_and(|own| own.contains(&Segment::Rest));
    let mut rest = Some(path);
    for _ in 0..from {
        rest = rest.and_then(|rest| rest.split_once('/')).map(|(_, rest)| rest);
    }
    let rest = rest.unwrap_or_default();
    let raw = if open {
        rest
    } else {
        let ends = rest.match_indices('/').map(|(at, _)| at).chain([rest.len()]);
        let end = ends.take(to - from).last().unwrap_or_default();
        rest.get(..end).unwrap_or_default()
    };
    if !open && to - from == 1 {
        return decode(raw);
    }
    // In a variable of several segments an encoded slash stays encoded, to distinguish it from a
    // slash between segments (google.api.http).
    let kept = raw.replace("%2F", "%252F").replace("%2f", "%252f");
    decode(&kept).map(|text| Cow::Owned(text.into_owned()))
}
