//! Finds the name that a client probably meant.

use crate::route::{Route, Segment};

/// The most edits between a word and the suggestion for it.
const FARTHEST: usize = 2;
/// Longer paths get no suggestion, because a path is compared with every route.
const LONGEST_PATH: usize = 200;
/// The names that other APIs have for parameters of lists.
const SYNONYMS: [(&str, &str); 6] = [
    ("cursor", "page_token"),
    ("page", "page_token"),
    ("pagesize", "limit"),
    ("perpage", "limit"),
    ("offset", "page_token"),
    ("size", "limit"),
];

/// The text to append to a refusal of `name`, such as "; did you mean `limit`?"; empty without a near name.
pub fn suggestion<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> String {
    let plain = plain(name);
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == plain).map(|(_, ours)| *ours);
    let distance = |known: &str| {
        let known_plain = self::plain(known);
        if Some(known) == synonym || known_plain == plain {
            return 0;
        }
        // `events` for `event_types`, `agent` for `agent_id`.
        let begins = plain.len() >= 4 && known_plain.starts_with(plain.trim_end_matches('s'));
        if begins { 1 } else { strsim::osa_distance(&plain, &known_plain) }
    };
    let most = FARTHEST.min(plain.chars().count() / 3);
    let nearest = among.map(|known| (distance(known), known)).filter(|(far, _)| *far <= most);
    nearest.min().map_or(String::new(), |(_, known)| format!("; did you mean `{known}`?"))
}

/// Returns the route with the path nearest to an unknown path.
pub(crate) fn route<'r>(
    path: &str,
    method: &str,
    routes: impl Iterator<Item = &'r Route>,
) -> Option<&'r Route> {
    if path.len() > LONGEST_PATH {
        return None;
    }
    let given: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let near = routes.filter_map(|route| {
        let cost = path_distance(&given, route)?;
        Some((cost, route.method != method, route.path, route))
    });
    near.min_by_key(|(cost, other_method, path, _)| (*cost, *other_method, *path))
        .map(|(.., route)| route)
}

/// Returns the number of edits between the segments and a route's path; `None` if the route is too
/// far to be suggested. A prefix such as `/api` may be missing or superfluous.
fn path_distance(given: &[&str], route: &Route) -> Option<usize> {
    let wanted = route.path.split('/').filter(|segment| !segment.is_empty());
    let wanted: Vec<&str> = wanted.collect();
    if route.segments.contains(&Segment::Rest) {
        return None;
    }
    [(0, 0), (1, 0), (0, 1)]
        .into_iter()
        .filter_map(|(of_given, of_wanted)| {
            let (given, wanted) = (given.get(of_given..)?, wanted.get(of_wanted..)?);
            if given.len() != wanted.len() || given.is_empty() {
                return None;
            }
            let mut cost = of_given + of_wanted;
            let mut literals = 0;
            for (given, wanted) in given.iter().zip(wanted) {
                if wanted.starts_with('{') {
                    // `{id}:verb`.
                    let verb = wanted.rsplit_once("}:").map(|(_, verb)| verb);
                    let asked = given.rsplit_once(':').map(|(_, verb)| verb);
                    cost += verb
                        .map_or(0, |verb| strsim::osa_distance(verb, asked.unwrap_or_default()));
                    continue;
                }
                let far = strsim::osa_distance(&plain(given), &plain(wanted));
                if far > FARTHEST {
                    return None;
                }
                literals += 1;
                cost += far;
            }
            (literals > 0 && cost <= FARTHEST + 1).then_some(cost)
        })
        .min()
}

/// Removes the characters and the case in which spellings of a parameter's name differ.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
    letters.take(60).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let known = ["delegation_id", "event_types", "limit", "page_token", "state"];
        let suggestion = |name| suggestion(name, known.into_iter());
        for (given, meant) in [
            ("delegationId", "delegation_id"),
            ("events", "event_types"),
            ("page_size", "limit"),
            ("pageToken", "page_token"),
            ("cursor", "page_token"),
            ("stat", "state"),
            ("limt", "limit"),
        ] {
            assert_eq!(suggestion(given), format!("; did you mean `{meant}`?"), "{given}");
        }
        for given in ["", "x", "amount", "zzzzzzzz"] {
            assert_eq!(suggestion(given), "", "{given}");
        }
    }
}
