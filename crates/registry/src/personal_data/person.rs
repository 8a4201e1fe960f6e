//! A person, found by every name under which their data is stored.

use std::collections::BTreeSet;

use authority_model::{
    proto::programme::{
        ErasePersonalDataRequest, ExportPersonalDataRequest, WithdrawConsentRequest,
    },
    wire::Json,
};
use diesel::sql_types::{Array, Nullable, Text};
use serde_json::{Map, Value, json};

use crate::flow::prelude::*;
use authority_crypto::ErasedNames;
use authority_ids::IdParts;

/// The name of a person in a request, given in exactly one way.
pub(super) struct Named {
    email: Option<String>,
    principal_id: Option<String>,
    external_subject: Option<String>,
    tenant_id: Option<String>,
}

impl From<&ExportPersonalDataRequest> for Named {
    fn from(asked: &ExportPersonalDataRequest) -> Self {
        Self {
            email: asked.email.clone(),
            principal_id: asked.principal_id.clone(),
            external_subject: asked.external_subject.clone(),
            tenant_id: asked.tenant_id.clone(),
        }
    }
}

impl From<&ErasePersonalDataRequest> for Named {
    fn from(asked: &ErasePersonalDataRequest) -> Self {
        Self {
            email: asked.email.clone(),
            principal_id: asked.principal_id.clone(),
            external_subject: asked.external_subject.clone(),
            tenant_id: asked.tenant_id.clone(),
        }
    }
}

impl From<&WithdrawConsentRequest> for Named {
    fn from(asked: &WithdrawConsentRequest) -> Self {
        Self {
            email: asked.email.clone(),
            principal_id: asked.principal_id.clone(),
            external_subject: asked.external_subject.clone(),
            tenant_id: asked.tenant_id.clone(),
        }
    }
}

/// A person and all of their names.
#[derive(Clone, Debug)]
pub(super) struct Person {
    /// The only tenant to process, or `None` for all.
    pub(super) within: Option<String>,
    /// The e-mail addresses, in lower case.
    pub(super) emails: BTreeSet<String>,
    /// The `sub` claims of their tokens.
    pub(super) subjects: BTreeSet<String>,
    /// Their principals, of class human.
    pub(super) principals: BTreeSet<String>,
}

/// Finds names that were recorded together. A request or key with several people is skipped,
/// because it is unknown which names belong together.
const TOGETHER: &str = "
    WITH identified (tenant_id, identity, email) AS (
        SELECT a.tenant_id, act ->> 'by', act ->> 'name'
        FROM approvals a CROSS JOIN LATERAL unnest(a.acts) AS act
        UNION ALL
        SELECT d.tenant_id, act ->> 'by', act ->> 'name'
        FROM delegations d CROSS JOIN LATERAL unnest(d.standing) AS act
        UNION ALL
        SELECT c.tenant_id, act ->> 'by', act ->> 'name' FROM reality_coupling_checks c
        CROSS JOIN LATERAL jsonb_array_elements(c.override -> 'by') AS act
        UNION ALL
        SELECT tenant_id, requested_by[1] ->> 'id', asker_emails[1] FROM approvals
        WHERE cardinality(requested_by) = 1 AND cardinality(asker_emails) = 1
        UNION ALL
        SELECT tenant_id, people[1], people_emails[1] FROM api_keys
        WHERE cardinality(people) = 1 AND cardinality(people_emails) = 1
        UNION ALL
        SELECT tenant_id, person, actor FROM state_proposals
        UNION ALL
        SELECT tenant_id, author, created_by FROM policy_versions WHERE author IS NOT NULL
    ), together (tenant_id, subject, email, principal_id) AS (
        SELECT tenant_id, external_subject, lower(btrim(email)), id FROM principals
        WHERE principal_class = 'human'
        UNION ALL
        SELECT tenant_id, substr(identity, strpos(identity, '|') + 1), lower(btrim(email)), NULL
        FROM identified
        UNION ALL
        SELECT tenant_id, subject, email, NULL FROM push_subscriptions
        UNION ALL
        SELECT tenant_id, subject, email, NULL FROM message_channels WHERE person IS NOT NULL
        UNION ALL
        SELECT tenant_id, person_subject, person_email, NULL FROM webhook_endpoints
        WHERE person_subject IS NOT NULL
    )
    SELECT DISTINCT subject, CASE WHEN email LIKE '%@%' THEN email END AS email, principal_id FROM together
    WHERE ($1 IS NULL OR tenant_id = $1)
      AND (email = ANY ($2) OR subject = ANY ($3) OR principal_id = ANY ($4))";

#[derive(QueryableByName)]
struct Together {
    #[diesel(sql_type = Nullable<Text>)]
    subject: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    email: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    principal_id: Option<String>,
}

/// The minimum length of a subject that is searched for in texts. Shorter subjects occur in
/// unrelated texts and are matched only behind an issuer.
const TELLING: usize = 8;

impl Person {
    /// Finds the person that a request names. All names that were recorded together with the given
    /// name are included.
    ///
    /// # Errors
    /// The person is not named in exactly one way, or the principal or tenant is unknown.
    pub(super) async fn find(db: &mut Db, named: Named) -> Result<Self, Error> {
        let mut person = Self::of(named)?;
        if let Some(tenant) = &person.within {
            use authority_model::schema::tenants;
            let known = tenants::table.find(tenant).select(tenants::id);
            let known: Option<String> = known.first(db).await.optional()?;
            known.ok_or_else(|| Error::unknown("tenant_id", tenant))?;
        }
        if let Some(id) = person.principals.iter().next().cloned() {
            person.limit_to_tenant_of(db, &id).await?;
        }
        // The second round finds the names recorded with the names from the first round.
        for _ in 0..2 {
            person.add_recorded(db).await?;
        }
        Ok(person)
    }

    fn of(named: Named) -> Result<Self, Error> {
        let Named { email, principal_id, external_subject, tenant_id } = named;
        let email = email.map(|email| email.trim().to_lowercase());
        let ways = [&email, &principal_id, &external_subject];
        if ways.iter().filter(|way| way.is_some()).count() != 1 {
            let text = "is required, or `principal_id` or `external_subject`; give exactly one";
            return Err(Error::field("email", text));
        }
        if email.as_ref().is_some_and(|email| !email.contains('@')) {
            return Err(Error::field("email", "must be an e-mail address"));
        }
        Ok(Self {
            within: tenant_id,
            emails: email.into_iter().collect(),
            subjects: external_subject.into_iter().collect(),
            principals: principal_id.into_iter().collect(),
        })
    }

    /// Limits the person to the principal's tenant. A principal belongs to one tenant.
    async fn limit_to_tenant_of(&mut self, db: &mut Db, id: &str) -> Result<(), Error> {
        use authority_model::schema::principals;
        let found: Option<String> = principals::table
            .filter(principals::id.eq(id))
            .filter(principals::principal_class.eq("human"))
            .select(principals::tenant_id)
            .first(db)
            .await
            .optional()?;
        let given = self.within.clone();
        match found.filter(|tenant| given.as_ref().is_none_or(|given| given == tenant)) {
            Some(tenant) => self.within = Some(tenant),
            None => {
                return Err(Error::NotFound {
                    kind: "principal of class human",
                    id: id.to_owned(),
                });
            }
        }
        Ok(())
    }

    async fn add_recorded(&mut self, db: &mut Db) -> QueryResult<()> {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
        let recorded: Vec<Together> = diesel::sql_query(TOGETHER)
            .bind::<Nullable<Text>, _>(&self.within)
            .bind::<Array<Text>, _>(list(&self.emails))
            .bind::<Array<Text>, _>(list(&self.subjects))
            .bind::<Array<Text>, _>(list(&self.principals))
            .load(db)
            .await?;
        for Together { subject, email, principal_id } in recorded {
            // The subject may be an API key, or the code of an erased person. Neither is a person's
            // name.
            let is_name = |name: &String| !name.is_empty() && !IdParts::begins(name);
            self.subjects.extend(subject.filter(is_name));
            self.emails.extend(email);
            self.principals.extend(principal_id);
        }
        Ok(())
    }

    /// Whether a text contains a name of the person.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        let telling = |subject: &&String| subject.len() >= TELLING;
        self.emails.iter().any(|email| lower.contains(email.as_str()))
            || self.subjects.iter().filter(telling).any(|subject| text.contains(subject.as_str()))
    }

    /// Whether the caller's token belongs to this person.
    pub(super) fn is(&self, caller: &Caller) -> bool {
        let identity = caller.identity();
        let subject = identity.split_once('|').map_or("", |(_, subject)| subject);
        let email = caller.email().map(|email| email.trim().to_lowercase());
        self.subjects.contains(subject) || email.is_some_and(|email| self.emails.contains(&email))
    }

    /// The person in the form that the database's functions expect. Tenants in `held` are
    /// skipped.
    pub(super) fn parameter(&self, names: &ErasedNames, held: &[String]) -> Json {
        let codes = |names: &mut dyn Iterator<Item = (String, Option<String>)>| {
            let known = names.filter_map(|(name, code)| Some((name, Value::String(code?))));
            Value::Object(known.collect())
        };
        let emails = &mut self.emails.iter().map(|email| (email.clone(), names.email(email)));
        // A `sub` may be an e-mail address.
        let subjects = self.subjects.iter().chain(&self.emails);
        let subjects = &mut subjects.map(|subject| (subject.clone(), names.subject(subject)));
        let person = json!({
            "within": self.within,
            "held": held,
            "emails": codes(emails),
            "subjects": codes(subjects),
            "principals": self.principals,
            "email_patterns": self.emails.iter().map(|email| email_pattern(email)).collect::<Vec<_>>(),
            "subject_patterns":
                self.subjects.iter().map(|subject| subject_pattern(subject)).collect::<Vec<_>>(),
        });
        match person {
            Value::Object(members) => Json(members),
            _ => Json(Map::new()),
        }
    }
}

/// Matches the address where it is not part of a longer address.
fn email_pattern(email: &str) -> String {
    format!(r"(?<![a-zA-Z0-9._%+-]){}(?![a-zA-Z0-9-])(?!\.[a-zA-Z0-9])", literal(&in_json(email)))
}

/// Matches the `sub` where it is a whole JSON string or follows an issuer. The JSON string may be
/// inside another string. After the name of a further issuer, it belongs to another person.
fn subject_pattern(subject: &str) -> String {
    let before = if subject.len() < TELLING { "[|]" } else { r#"["|]"# };
    let name = r#"(?<!["|][a-z0-9-]{1,32}[|])"#;
    format!(r#"(?<={before}){name}{}(?=\\?")"#, literal(&in_json(subject)))
}

/// Returns the text as it is written inside a JSON string.
fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns a regular expression that matches exactly this text.
fn literal(text: &str) -> String {
    let mut pattern = String::new();
    for each in text.chars() {
        if each.is_ascii() && !each.is_ascii_alphanumeric() {
            pattern.push('\\');
        }
        pattern.push(each);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_named_in_exactly_one_way() {
        let named = |email: Option<&str>, subject: Option<&str>| Named {
            email: email.map(str::to_owned),
            principal_id: None,
            external_subject: subject.map(str::to_owned),
            tenant_id: None,
        };
        assert!(Person::of(named(None, None)).is_err());
        assert!(Person::of(named(Some("ann@example.org"), Some("user_1"))).is_err());
        assert!(Person::of(named(Some("ann"), None)).is_err());
        let ann = Person::of(named(Some(" Ann@Example.org "), None)).unwrap();
        assert!(ann.is_named_in("asked by ANN@example.ORG"));
        assert!(!ann.is_named_in("asked by bob@example.org"));
    }

    #[test]
    fn a_pattern_takes_every_sign_for_itself() {
        assert_eq!(literal("a.b+c"), r"a\.b\+c");
        assert_eq!(in_json("a\"b"), "a\\\"b");
    }
}
