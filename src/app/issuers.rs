//! The trusted issuers of tokens, from the settings.

use std::{collections::BTreeMap, sync::Arc};

use authority_api::identity::{
    Algorithm, ClaimPath, ClaimRules, Issuer, JwksClient, JwksSettings, JwksSource, KeySource,
    People,
    dev_provider::{AUDIENCE, ISSUER},
};
use authority_config::{Config, FurtherIssuer, SigningAlgorithm};
use authority_ids::TenantId;
use authority_keys::Keys;
use authority_process::clock::Clock;

/// The issuer of the settings, under its names there.
struct Named<'c> {
    /// The section of its settings.
    place: String,
    /// The name in `identity.issuers`; `None` for the first issuer.
    name: Option<&'c str>,
    settings: FurtherIssuer,
}

/// Returns the configured issuers. Each has its own keys: an issuer that fails doesn't affect the
/// others.
///
/// # Errors
/// A setting is invalid. The text names it.
pub(super) fn configured(config: &Config, clock: &Clock) -> Result<Vec<Issuer>, String> {
    let identity = &config.identity;
    let first = identity.issuer.as_ref().map(|issuer| Named {
        place: "identity".to_owned(),
        name: None,
        settings: FurtherIssuer {
            issuer: issuer.clone(),
            audience: identity.audience.clone().unwrap_or_default(),
            jwks_url: identity.jwks_url.clone(),
            // Without a list, the only issuer speaks for all tenants.
            tenants: if identity.tenants.is_empty() {
                vec!["*".to_owned()]
            } else {
                identity.tenants.clone()
            },
            algorithms: identity.algorithms.clone(),
            role_claim: identity.role_claim.clone(),
            tenant_claim: identity.tenant_claim.clone(),
            groups_claim: identity.groups_claim.clone(),
            roles: identity.roles.clone(),
            are_one: None,
        },
    });
    let further = identity.issuers.iter().map(|(name, settings)| Named {
        place: format!("identity.issuers.{name}"),
        name: Some(name),
        settings: settings.clone(),
    });
    let made = first.into_iter().chain(further).map(|named| named.issuer(config, clock));
    let mut issuers = made.collect::<Result<Vec<_>, _>>()?;
    let needs_email = are_several(&issuers);
    for issuer in &mut issuers {
        issuer.needs_email = needs_email;
    }
    Ok(issuers)
}

/// Whether one person could have accounts at several issuers that are not one.
///
/// The lists of tenants don't matter: the owner may act in each tenant.
fn are_several(issuers: &[Issuer]) -> bool {
    let mut people =
        issuers.iter().map(|issuer| issuer.people.of.as_ref().unwrap_or(&issuer.issuer));
    let first = people.next();
    people.any(|other| Some(other) != first)
}

/// The built-in provider of development. It can issue tokens for anyone.
pub(super) fn development(keys: &Keys) -> Issuer {
    let keys = keys.clone();
    let keys = KeySource::local(move || keys.token_jwks());
    Issuer::new(ISSUER, vec![AUDIENCE.to_owned()], keys)
}

impl Named<'_> {
    fn issuer(self, config: &Config, clock: &Clock) -> Result<Issuer, String> {
        let claims = self.claims()?;
        let tenants = self.tenants()?;
        let keys = self.keys(clock)?;
        let Self { place, name, settings } = self;
        let FurtherIssuer { issuer, audience, algorithms, are_one, .. } = settings;
        if issuer == ISSUER {
            return Err(format!(
                "`{place}.issuer` is the issuer of the built-in identity provider"
            ));
        }
        let is_owners = config.identity.owner_issuer.as_deref() == name;
        let owner_algorithms = config.identity.owner_algorithms.iter().copied();
        let owner_algorithms = owner_algorithms.filter(|one| is_owners && algorithms.contains(one));
        Ok(Issuer {
            audiences: Some(audience).into_iter().filter(|audience| !audience.is_empty()).collect(),
            algorithms: algorithms.iter().copied().map(algorithm).collect(),
            owner_algorithms: owner_algorithms.map(algorithm).collect(),
            tenants,
            claims,
            people: people(config, name, are_one),
            ..Issuer::new(issuer, Vec::new(), KeySource::Remote(keys))
        })
    }

    fn keys(&self, clock: &Clock) -> Result<JwksClient, String> {
        let FurtherIssuer { issuer, jwks_url, algorithms, .. } = &self.settings;
        let (setting, source) = match jwks_url {
            Some(url) => ("jwks_url", JwksSource::Url(url.clone())),
            None => ("issuer", JwksSource::Issuer(issuer.clone())),
        };
        let algorithms = algorithms.iter().copied().map(algorithm).collect();
        let settings = JwksSettings { algorithms, ..JwksSettings::of(source) };
        JwksClient::new(settings, clock.clone())
            .map_err(|fault| format!("`{}.{setting}`: {fault}", self.place))
    }

    fn tenants(&self) -> Result<Option<Arc<[TenantId]>>, String> {
        let slugs = &self.settings.tenants;
        if slugs.iter().any(|slug| slug == "*") {
            return Ok(None);
        }
        let tenant = |slug: &String| {
            TenantId::from_slug(slug).map_err(|_| {
                format!("`{}.tenants`: `{slug}` is not the slug of a tenant", self.place)
            })
        };
        slugs.iter().map(tenant).collect::<Result<_, _>>().map(Some)
    }

    fn claims(&self) -> Result<ClaimRules, String> {
        let FurtherIssuer { role_claim, tenant_claim, groups_claim, roles, .. } = &self.settings;
        let role = self.path("role_claim", role_claim.as_deref())?;
        let tenant = self.path("tenant_claim", tenant_claim.as_deref())?;
        let groups = self.path("groups_claim", groups_claim.as_deref())?;
        // A group that is named `owner` would otherwise give this role.
        let has_groups = |role: &ClaimPath| role.names_groups() || groups.as_ref() == Some(role);
        if role.as_ref().is_some_and(has_groups) {
            return Err(format!(
                "`{0}.role_claim` names groups: set `{0}.groups_claim`, and `{0}.roles` for the role of each group",
                self.place
            ));
        }
        self.check_groups(groups.is_some(), roles)?;
        let mut rules = ClaimRules::new(role, tenant, groups);
        for (group, role) in roles {
            rules.map(group, role).map_err(|remedy| {
                format!(
                    "`{}.roles`: the group `{group}` has the role `{role}`; {remedy}",
                    self.place
                )
            })?;
        }
        Ok(rules)
    }

    fn check_groups(&self, is_set: bool, roles: &BTreeMap<String, String>) -> Result<(), String> {
        let place = &self.place;
        match (is_set, roles.is_empty()) {
            (true, true) => {
                Err(format!("`{place}.groups_claim` needs `{place}.roles`: the role of each group"))
            }
            (false, false) => Err(format!(
                "`{place}.roles` needs `{place}.groups_claim`: the claim with the groups"
            )),
            _ => Ok(()),
        }
    }

    fn path(&self, setting: &str, text: Option<&str>) -> Result<Option<ClaimPath>, String> {
        let path = text.map(ClaimPath::parse).transpose();
        let path = path.map_err(|remedy| format!("`{}.{setting}`: {remedy}", self.place))?;
        // Anyone can enter an address that is not theirs at some providers.
        if text.is_some_and(|text| ["email", "/email"].contains(&text)) {
            return Err(format!(
                "`{}.{setting}` is `email`, which may be unverified and may change; use `sub` or a claim that only the \
                 identity provider sets",
                self.place
            ));
        }
        Ok(path)
    }
}

/// How people of the issuer with this name are identified.
fn people(config: &Config, name: Option<&str>, are_one: Option<String>) -> People {
    let name_of = |url: &str| {
        let mut all = config.identity.issuers.iter();
        all.find(|(_, known)| known.issuer == url).map(|(name, _)| name.clone())
    };
    let prefix = match &are_one {
        Some(url) => name_of(url),
        None => name.map(str::to_owned),
    };
    People { of: are_one, prefix }
}

fn algorithm(one: SigningAlgorithm) -> Algorithm {
    match one {
        SigningAlgorithm::Rs256 => Algorithm::RS256,
        SigningAlgorithm::Es256 => Algorithm::ES256,
        SigningAlgorithm::EdDSA => Algorithm::EdDSA,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "https://id.example.org";

    fn config(change: impl FnOnce(&mut Config)) -> Config {
        let mut config = Config::default();
        config.identity.issuer = Some(FIRST.to_owned());
        config.identity.audience = Some("authority".to_owned());
        change(&mut config);
        config
    }

    fn further(name: &str, tenant: &str, are_one: Option<&str>) -> (String, FurtherIssuer) {
        let settings = FurtherIssuer {
            issuer: format!("https://{name}.example.org"),
            audience: "authority".to_owned(),
            tenants: vec![tenant.to_owned()],
            are_one: are_one.map(str::to_owned),
            ..FurtherIssuer::default()
        };
        (name.to_owned(), settings)
    }

    #[test]
    fn tokens_need_an_address_if_a_person_could_have_two_accounts() {
        for (others, expected) in [
            (vec![], false),
            (vec![further("new", "*", Some(FIRST))], false),
            (vec![further("okta", "acme", None)], true),
            (vec![further("okta", "acme", None), further("new", "*", Some(FIRST))], true),
            // The owner of the first issuer can act in each tenant.
            (vec![further("okta", "globex", None)], true),
        ] {
            let config = config(|config| {
                config.identity.tenants = vec!["acme".to_owned()];
                config.identity.issuers = others.into_iter().collect();
            });
            let issuers = configured(&config, &Clock::default()).unwrap();
            for issuer in issuers {
                assert_eq!(issuer.needs_email, expected, "{}", issuer.issuer);
            }
        }
    }

    #[test]
    fn a_role_claim_has_no_groups() {
        for (role, groups, works) in [
            ("roles", "groups", true),
            ("roles", "roles", false),
            ("/roles", "roles", false),
            ("/a~1b", "a/b", false),
            ("cognito:groups", "groups", false),
            ("memberOf", "groups", false),
        ] {
            let config = config(|config| {
                config.identity.role_claim = Some(role.to_owned());
                config.identity.groups_claim = Some(groups.to_owned());
                config.identity.roles = BTreeMap::from([("a".to_owned(), "admin".to_owned())]);
            });
            let told = configured(&config, &Clock::default()).err();
            assert_eq!(told.is_none(), works, "{role}, {groups}: {told:?}");
            if let Some(told) = told {
                assert!(told.contains("`identity.role_claim`"), "{told}");
            }
        }
    }
}
