//! Rules for the trusted issuers. Each has its own people and lists its tenants.

use super::{Config, FurtherIssuer, SigningAlgorithm};

/// The word for all tenants in a list of tenants.
const ALL: &str = "*";
/// Names that would make the people of an issuer look like other people.
const RESERVED: [&str; 2] = ["dev", "erased"];
const LONGEST_NAME: usize = 32;

impl Config {
    /// Settings of issuers that are wrong in any environment.
    pub(super) fn unfit_issuers(&self) -> Vec<String> {
        let identity = &self.identity;
        let mut faults: Vec<String> = Vec::new();
        faults.extend(unfit_algorithms("identity.algorithms", &identity.algorithms));
        faults.extend(unfit_algorithms("identity.owner_algorithms", &identity.owner_algorithms));
        faults.extend(unfit_tenants("identity.tenants", &identity.tenants));
        faults.extend(unfit_iss("identity.issuer", identity.issuer.as_deref().unwrap_or_default()));
        faults.extend(self.unknown_names());
        let issuer = identity.issuer.as_deref().filter(|issuer| !issuer.is_empty());
        if !identity.issuers.is_empty() {
            if issuer.is_none() {
                faults.push(
                    "`identity.issuers` needs `identity.issuer`: the first issuer".to_owned(),
                );
            }
            if identity.tenants.is_empty() {
                faults.push(
                    "`identity.issuers` needs `identity.tenants`: the slugs of the tenants that `identity.issuer` \
                     speaks for, or `*` for all"
                        .to_owned(),
                );
            }
        }
        let owners: &[SigningAlgorithm] = match &identity.owner_issuer {
            Some(name) => {
                identity.issuers.get(name).map_or(&[], |known| known.algorithms.as_slice())
            }
            None => &identity.algorithms,
        };
        if !identity.owner_algorithms.iter().any(|one| owners.contains(one)) {
            faults.push(
                "`identity.owner_algorithms` has no algorithm of the owner's issuer: no user could be the owner"
                    .to_owned(),
            );
        }
        for (name, further) in &identity.issuers {
            faults.extend(self.unfit_further(name, further));
        }
        faults
    }

    /// Names of issuers that are not in `identity.issuers`.
    fn unknown_names(&self) -> Vec<String> {
        let names = [
            ("identity.owner_issuer", &self.identity.owner_issuer),
            ("console.issuer", &self.console.issuer),
        ];
        let unknown = names.into_iter().filter_map(|(setting, name)| {
            let name = name.as_ref().filter(|name| !self.identity.issuers.contains_key(*name))?;
            Some(format!("`{setting}` is `{name}`, which is not a name in `identity.issuers`"))
        });
        unknown.collect()
    }

    fn unfit_further(&self, name: &str, further: &FurtherIssuer) -> Vec<String> {
        let place = format!("identity.issuers.{name}");
        let mut faults: Vec<String> = Vec::new();
        if !is_name(name) {
            faults.push(format!(
                "`{place}`: the name must have up to {LONGEST_NAME} lower-case letters, digits and hyphens, and must \
                 not be {}",
                RESERVED.join(" or ")
            ));
        }
        for (member, text) in [("issuer", &further.issuer), ("audience", &further.audience)] {
            if text.is_empty() {
                faults.push(format!("`{place}.{member}` is missing"));
            }
        }
        faults.extend(unfit_iss(&format!("{place}.issuer"), &further.issuer));
        faults.extend(unfit_algorithms(&format!("{place}.algorithms"), &further.algorithms));
        faults.extend(unfit_tenants(&format!("{place}.tenants"), &further.tenants));
        let is_owners = self.identity.owner_issuer.as_deref() == Some(name);
        if further.tenants.is_empty() && !is_owners {
            faults.push(format!(
                "`{place}.tenants` is missing: the slugs of the tenants that the issuer speaks for"
            ));
        }
        let others = self.identity.issuers.iter().filter(|(other, _)| *other != name);
        let mut others = others.map(|(_, other)| other.issuer.as_str());
        let is_twice = self.identity.issuer.as_deref() == Some(further.issuer.as_str())
            || others.any(|other| other == further.issuer);
        if is_twice && !further.issuer.is_empty() {
            faults.push(format!("`{place}.issuer` is `{}`, as another issuer is", further.issuer));
        }
        faults.extend(self.unfit_are_one(&place, further));
        faults
    }

    /// The people of an issuer can be the people of one other issuer, which has its own people.
    fn unfit_are_one(&self, place: &str, further: &FurtherIssuer) -> Option<String> {
        let url = further.are_one.as_deref()?;
        let known = self.identity.issuers.values().find(|known| known.issuer == url);
        let has_own = self.identity.issuer.as_deref() == Some(url)
            || known.is_some_and(|known| known.are_one.is_none());
        (!has_own || url == further.issuer).then(|| {
            format!(
                "`{place}.are_one` is `{url}`; it must be the URL of another configured issuer, which has no `are_one` \
                 itself"
            )
        })
    }
}

/// People are identified by the issuer, a `|` and the subject. An issuer must not look like the name of
/// a further issuer, which is a part of the subject.
fn unfit_iss(setting: &str, issuer: &str) -> Option<String> {
    if issuer.contains('|') {
        return Some(format!("`{setting}` is `{issuer}`; a URL has no `|`"));
    }
    has_form_of_name(issuer).then(|| {
        format!("`{setting}` is `{issuer}`, which is no URL; give the `iss` of the issuer's tokens")
    })
}

fn unfit_algorithms(setting: &str, algorithms: &[SigningAlgorithm]) -> Option<String> {
    algorithms.is_empty().then(|| format!("`{setting}` is empty; use RS256, ES256 or EdDSA"))
}

fn unfit_tenants(setting: &str, tenants: &[String]) -> Option<String> {
    (tenants.len() > 1 && tenants.iter().any(|tenant| tenant == ALL))
        .then(|| format!("`{setting}` has `*` for all tenants; list the tenants, or use `*` alone"))
}

fn is_name(name: &str) -> bool {
    has_form_of_name(name) && !RESERVED.contains(&name)
}

/// The functions for erasures know names by this form (`person_code` in migrations/).
fn has_form_of_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LONGEST_NAME
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConsoleClient, Environment};

    const FIRST: &str = "https://id.example.org";
    const OKTA: &str = "https://acme.okta.com/oauth2/default";

    /// A valid configuration with two issuers.
    fn two() -> Config {
        let mut config = Config::default();
        config.identity.issuer = Some(FIRST.to_owned());
        config.identity.audience = Some("authority".to_owned());
        config.identity.tenants = vec![ALL.to_owned()];
        config.identity.issuers.insert("okta".to_owned(), further(OKTA));
        config
    }

    fn further(issuer: &str) -> FurtherIssuer {
        FurtherIssuer {
            issuer: issuer.to_owned(),
            audience: "authority".to_owned(),
            tenants: vec!["acme".to_owned()],
            ..FurtherIssuer::default()
        }
    }

    fn faults(change: impl FnOnce(&mut Config)) -> String {
        let mut config = two();
        change(&mut config);
        config.validate().err().map(|fault| fault.to_string()).unwrap_or_default()
    }

    fn with(change: impl FnOnce(&mut FurtherIssuer)) -> String {
        faults(|config| change(config.identity.issuers.get_mut("okta").unwrap()))
    }

    #[test]
    fn one_issuer_needs_no_new_setting() {
        assert_eq!(faults(|config| config.identity.issuers.clear()), "");
        let alone = faults(|config| {
            config.identity.issuers.clear();
            config.identity.tenants.clear();
        });
        assert_eq!(alone, "");
    }

    #[test]
    fn each_issuer_names_its_tenants() {
        assert_eq!(faults(|_| {}), "");
        assert!(faults(|config| config.identity.tenants.clear()).contains("`identity.tenants`"));
        assert!(with(|okta| okta.tenants.clear()).contains("`identity.issuers.okta.tenants`"));
        let mixed = with(|okta| okta.tenants.push(ALL.to_owned()));
        assert!(mixed.contains("use `*` alone"), "{mixed}");
        // The owner belongs to no tenant.
        let owner = faults(|config| {
            config.identity.owner_issuer = Some("okta".to_owned());
            config.identity.issuers.get_mut("okta").unwrap().tenants.clear();
        });
        assert_eq!(owner, "");
    }

    #[test]
    fn an_issuer_is_complete_and_is_no_other() {
        for (told, fault) in [
            (with(|okta| okta.issuer.clear()), "`identity.issuers.okta.issuer` is missing"),
            (with(|okta| okta.audience.clear()), "`identity.issuers.okta.audience` is missing"),
            (with(|okta| okta.algorithms.clear()), "`identity.issuers.okta.algorithms` is empty"),
            (with(|okta| okta.issuer = FIRST.to_owned()), "as another issuer is"),
            (with(|okta| okta.issuer = "https://a|b".to_owned()), "has no `|`"),
            (
                faults(|config| config.identity.issuer = Some("https://a|b".to_owned())),
                "has no `|`",
            ),
            (with(|okta| okta.issuer = "staff".to_owned()), "is no URL"),
            (faults(|config| config.identity.issuer = Some("staff".to_owned())), "is no URL"),
            (faults(|config| config.identity.issuer = None), "needs `identity.issuer`"),
            (
                faults(|config| {
                    drop(config.identity.issuers.insert("b".to_owned(), further(OKTA)));
                }),
                "as another issuer is",
            ),
        ] {
            assert!(told.contains(fault), "{fault}: {told}");
        }
        let long = "a".repeat(33);
        for name in ["", "Okta", "a|b", "a.b", "dev", "erased", long.as_str()] {
            let told = faults(|config| {
                config.identity.issuers.insert(name.to_owned(), further("https://b.example"));
            });
            assert!(told.contains("the name must have"), "{name}: {told}");
        }
    }

    #[test]
    fn the_owner_has_one_issuer_and_its_algorithms() {
        let unknown = faults(|config| config.identity.owner_issuer = Some("entra".to_owned()));
        assert!(unknown.contains("`identity.owner_issuer` is `entra`"), "{unknown}");
        // The owner's tokens stay RS256 unless the settings permit another algorithm for the owner.
        let other = faults(|config| config.identity.algorithms = vec![SigningAlgorithm::Es256]);
        assert!(other.contains("`identity.owner_algorithms`"), "{other}");
        let set = faults(|config| {
            config.identity.algorithms = vec![SigningAlgorithm::Es256];
            config.identity.owner_algorithms = vec![SigningAlgorithm::Es256];
        });
        assert_eq!(set, "");
        assert!(faults(|config| config.identity.owner_algorithms.clear()).contains("is empty"));
    }

    #[test]
    fn people_are_one_with_the_people_of_one_other_issuer() {
        assert_eq!(with(|okta| okta.are_one = Some(FIRST.to_owned())), "");
        for url in ["", "https://unknown.example", OKTA, "okta"] {
            let told = with(|okta| okta.are_one = Some(url.to_owned()));
            assert!(told.contains("`identity.issuers.okta.are_one`"), "{url}: {told}");
        }
        let chain = faults(|config| {
            let third = FurtherIssuer {
                are_one: Some(OKTA.to_owned()),
                ..further("https://third.example")
            };
            config.identity.issuers.insert("third".to_owned(), third);
            config.identity.issuers.get_mut("okta").unwrap().are_one = Some(FIRST.to_owned());
        });
        assert!(chain.contains("`identity.issuers.third.are_one`"), "{chain}");
    }

    #[test]
    fn the_console_signs_people_in_at_a_configured_issuer() {
        let mut config = two();
        assert_eq!(config.sign_in_issuer(), Some(FIRST));
        config.console.issuer = Some("okta".to_owned());
        assert_eq!(config.sign_in_issuer(), Some(OKTA));
        let unknown = faults(|config| config.console.issuer = Some("entra".to_owned()));
        assert!(unknown.contains("`console.issuer` is `entra`"), "{unknown}");
    }

    #[test]
    fn each_issuer_for_sign_in_has_its_own_client() {
        let client = |id: &str| ConsoleClient { client_id: id.to_owned(), ..Default::default() };
        let with = |name: &str, id: &str, change: fn(&mut Config)| {
            faults(|config| {
                config.console.client_id = Some("console".to_owned());
                config.console.issuers.insert(name.to_owned(), client(id));
                change(config);
            })
        };
        assert_eq!(with("okta", "at-okta", |_| {}), "");
        for (told, fault) in [
            (with("entra", "a", |_| {}), "`entra` is not a name in `identity.issuers`"),
            (with("okta", "", |_| {}), "`console.issuers.okta.client_id` is missing"),
            (
                with("okta", "a", |config| config.console.issuer = Some("okta".to_owned())),
                "`console.issuer` is the same issuer",
            ),
            (
                with("okta", "a", |config| {
                    config.console.client_id = None;
                    config.console.enabled = Some(true);
                }),
                "`console.issuers` needs `console.client_id`",
            ),
            (
                with("okta", "a", |config| config.environment = Environment::Production),
                "production needs `console.issuers.okta.client_secret`",
            ),
        ] {
            assert!(told.contains(fault), "{fault}: {told}");
        }
        let mut config = two();
        assert!(config.sign_ins().is_empty());
        config.console.client_id = Some("console".to_owned());
        config.console.issuers.insert("okta".to_owned(), client("at-okta"));
        let found = config.sign_ins();
        let found = found.iter().map(|(name, issuer, at)| (*name, *issuer, &*at.client_id));
        let expected = [(None, FIRST, "console"), (Some("okta"), OKTA, "at-okta")];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
