//! Finds the people who may call an operation, by the service's own rules.

use authority_model::access::RULES;

/// Describes the people who may call the operation with a method and a path.
pub(crate) fn who(method: &str, path: &str) -> Option<String> {
    let bindings = RULES.iter().flat_map(|(rpc, bindings)| bindings.iter().map(move |b| (rpc, b)));
    let fitting =
        bindings.filter(|(_, binding)| binding.verb == method && fits(binding.path, path));
    // `/decisions/{id}:report` is more specific than `/decisions/{id}`, and a literal segment more
    // than `{id}`.
    let place = |template: &str| (template.matches('{').count(), std::cmp::Reverse(template.len()));
    let (rpc, _) = fitting.min_by_key(|(_, binding)| place(binding.path))?;
    authority_console::who_may(rpc)
}

/// Whether a path, possibly with a proxy's prefix, matches a template.
fn fits(template: &str, path: &str) -> bool {
    let mut given = path.trim_end_matches('/').rsplit('/');
    let mut wanted = template.rsplit('/').filter(|segment| !segment.is_empty());
    !template.is_empty() && wanted.all(|wanted| given.next().is_some_and(|given| is(wanted, given)))
}

fn is(wanted: &str, given: &str) -> bool {
    match wanted.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((_, ending)) => given.strip_suffix(ending).is_some_and(|id| !id.is_empty()),
        None => wanted == given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_one_operation() {
        for (template, path, expected) in [
            ("/api/v1/policies/{id}/activate", "/api/v1/policies/svc:policy:1/activate", true),
            ("/api/v1/policies/{id}/activate", "/under/api/v1/policies/x/activate", true),
            ("/v1/decisions/{id}:report", "/v1/decisions/svc:decision:1:report", true),
            ("/v1/decisions/{id}:report", "/v1/decisions/:report", false),
            ("/v1/decisions/{id}", "/v1/decisions", false),
            ("", "/v1/decisions", false),
        ] {
            assert_eq!(fits(template, path), expected, "{template} {path}");
        }
        let owner = "the owner of the installation";
        assert_eq!(who("POST", "/api/v1/policies:validate").as_deref(), Some(owner));
        let activates = who("POST", "/api/v1/policies/svc:policy:acme:1/activate");
        assert_eq!(activates.as_deref(), Some(owner));
        let simulates = who("POST", "/api/v1/app/decisions:simulate").unwrap_or_default();
        assert!(simulates.contains("a tenant's admin"), "{simulates}");
        assert_eq!(who("GET", "/nowhere"), None);
    }
}
