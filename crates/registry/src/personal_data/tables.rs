//! Erases data in one transaction. It covers every table that can name a person, in this order.
//!
//! A name that decides who may act is replaced by its code. The same name is then still recognised
//! later. Any other name is replaced by `erased`. `$1` is the person, as `person.rs` writes it.

/// A statement and the kind under which its rows are counted.
pub(super) struct Statement {
    pub(super) kind: &'static str,
    pub(super) sql: &'static str,
}

/// Statements for acts, people behind requests and keys, and other references. [`OWN_RECORDS`] has
/// the person's own records.
pub(super) const STATEMENTS: &[Statement] = &[
    // An approval by an erased person permits no action.
    Statement {
        kind: "voided_approvals",
        sql: "UPDATE approvals SET state = 'void', updated_at = clock_timestamp()
            WHERE state IN ('pending', 'approved') AND person_in_scope($1, tenant_id)
              AND person_acted($1, acts)",
    },
    Statement {
        kind: "approvals",
        sql: "UPDATE approvals SET
                acts = ARRAY(SELECT erased_act($1, act) FROM unnest(acts) WITH ORDINALITY AS a (act, n)
                             ORDER BY n),
                requested_by = ARRAY(
                    SELECT CASE WHEN person_code($1, asker ->> 'id') IS NULL THEN asker
                                ELSE asker || jsonb_build_object('id', person_code($1, asker ->> 'id')) END
                    FROM unnest(requested_by) WITH ORDINALITY AS a (asker, n) ORDER BY n),
                asker_emails = ARRAY(SELECT coalesce(person_code($1, name), name)
                                     FROM unnest(asker_emails) WITH ORDINALITY AS a (name, n) ORDER BY n),
                justification = CASE WHEN person_mentioned($1, justification) THEN NULL ELSE justification END
            WHERE person_in_scope($1, tenant_id) AND (
                person_acted($1, acts)
                OR person_mentioned($1, justification)
                OR EXISTS (SELECT FROM unnest(acts) AS act WHERE person_mentioned($1, act ->> 'comment'))
                OR EXISTS (SELECT FROM unnest(requested_by) AS asker
                           WHERE person_code($1, asker ->> 'id') IS NOT NULL)
                OR EXISTS (SELECT FROM unnest(asker_emails) AS name
                           WHERE person_code($1, name) IS NOT NULL))",
    },
    // The signed text stays if it contains only digests.
    Statement {
        kind: "acts",
        sql: "UPDATE approval_acts SET
                person = coalesce(person_code($1, person), person),
                record = CASE WHEN record LIKE '%\"by_digest\":%' THEN record ELSE '' END,
                by_salt = CASE WHEN person_code($1, person) IS NULL THEN by_salt END,
                comment = NULL, comment_salt = NULL
            WHERE person_in_scope($1, tenant_id)
              AND (person_code($1, person) IS NOT NULL OR person_mentioned($1, comment)
                   OR person_mentioned($1, record))",
    },
    // A signed act that includes the delegation's creator becomes invalid when the creator is
    // erased.
    Statement {
        kind: "standing_approvals",
        sql: "UPDATE delegations SET updated_at = clock_timestamp(), standing = ARRAY(
                SELECT erased_act($1, act) FROM unnest(standing) WITH ORDINALITY AS a (act, n)
                WHERE NOT person_acted($1, ARRAY[act])
                  AND (person_code($1, created_by) IS NULL OR act ->> 'record' LIKE '%\"by_digest\":%')
                ORDER BY n)
            WHERE person_in_scope($1, tenant_id) AND (
                person_acted($1, standing)
                OR EXISTS (SELECT FROM unnest(standing) AS act WHERE person_mentioned($1, act ->> 'comment'))
                OR (person_code($1, created_by) IS NOT NULL AND EXISTS (
                    SELECT FROM unnest(standing) AS act
                    WHERE act ->> 'record' NOT LIKE '%\"by_digest\":%')))",
    },
    Statement {
        kind: "api_keys",
        sql: "UPDATE api_keys SET
                people = ARRAY(SELECT coalesce(person_code($1, name), name)
                               FROM unnest(people) WITH ORDINALITY AS a (name, n) ORDER BY n),
                people_emails = ARRAY(SELECT coalesce(person_code($1, name), name)
                                      FROM unnest(people_emails) WITH ORDINALITY AS a (name, n) ORDER BY n)
            WHERE person_in_scope($1, tenant_id) AND EXISTS (
                SELECT FROM unnest(people || people_emails) AS name WHERE person_code($1, name) IS NOT NULL)",
    },
    // An admin may not activate their own text of a policy.
    Statement {
        kind: "creators",
        sql: "UPDATE policy_versions SET author = person_code($1, author)
            WHERE person_in_scope($1, tenant_id) AND person_code($1, author) IS NOT NULL",
    },
    Statement {
        kind: "reports",
        sql: "UPDATE decision_reports SET
                reported_by = coalesce(person_code($1, reported_by), reported_by),
                detail = NULL, record = ''
            WHERE person_in_scope($1, tenant_id)
              AND (person_code($1, reported_by) IS NOT NULL OR person_mentioned($1, detail))",
    },
    Statement {
        kind: "state_events",
        sql: "UPDATE state_events SET
                actor = coalesce(person_code($1, actor), actor),
                first_actor = coalesce(person_code($1, first_actor), first_actor)
            WHERE person_in_scope($1, tenant_id)
              AND (person_code($1, actor) IS NOT NULL OR person_code($1, first_actor) IS NOT NULL)",
    },
    Statement {
        kind: "state_proposals",
        sql: "DELETE FROM state_proposals WHERE person_in_scope($1, tenant_id)
              AND (person_code($1, person) IS NOT NULL OR person_code($1, actor) IS NOT NULL)",
    },
    // An override by an erased person lifts no findings.
    Statement {
        kind: "ended_overrides",
        sql: "DELETE FROM reality_overrides o USING reality_coupling_checks c
            WHERE c.id = o.id AND c.tenant_id = o.tenant_id AND person_in_scope($1, o.tenant_id)
              AND person_acted($1, ARRAY(SELECT jsonb_array_elements(c.override -> 'by')))",
    },
    Statement {
        kind: "coupling_checks",
        sql: "UPDATE reality_coupling_checks SET
                decision = without_person($1, decision::text)::jsonb,
                history = ARRAY(SELECT without_person($1, run::text)::jsonb
                                FROM unnest(history) WITH ORDINALITY AS a (run, n) ORDER BY n),
                override = override || jsonb_build_object(
                    'state', CASE WHEN person_acted($1, ARRAY(SELECT jsonb_array_elements(override -> 'by')))
                                  THEN 'ended' ELSE override ->> 'state' END,
                    'by', coalesce((
                        SELECT jsonb_agg(erased_act($1, act) ORDER BY n)
                        FROM jsonb_array_elements(override -> 'by') WITH ORDINALITY AS a (act, n)), '[]'))
            WHERE person_in_scope($1, tenant_id) AND (
                person_mentioned($1, decision::text) OR person_mentioned($1, override::text)
                OR person_mentioned($1, history::text))",
    },
    Statement {
        kind: "drift_events",
        sql: "UPDATE stable_drift_events SET acts = ARRAY(
                SELECT without_person($1, act::text)::jsonb FROM unnest(acts) WITH ORDINALITY AS a (act, n)
                ORDER BY n)
            WHERE person_in_scope($1, tenant_id) AND person_mentioned($1, acts::text)",
    },
    Statement {
        kind: "activations",
        sql: "UPDATE policies SET activation_reason = NULL, updated_at = clock_timestamp()
            WHERE person_in_scope($1, tenant_id) AND person_mentioned($1, activation_reason)",
    },
    Statement {
        kind: "activations",
        sql: "UPDATE policy_activations SET reason = NULL
            WHERE person_in_scope($1, tenant_id) AND person_mentioned($1, reason)",
    },
    Statement {
        kind: "push_subscriptions",
        sql: "DELETE FROM push_subscriptions WHERE person_in_scope($1, tenant_id)
              AND (person_code($1, person) IS NOT NULL OR person_code($1, email) IS NOT NULL)",
    },
    // The messages of a channel are deleted with it. A channel with the person as its substitute stays.
    Statement {
        kind: "message_channels",
        sql: "DELETE FROM message_channels WHERE person_in_scope($1, tenant_id)
              AND (person_code($1, person) IS NOT NULL OR person_code($1, email) IS NOT NULL)",
    },
    Statement {
        kind: "message_channels",
        sql: "UPDATE message_channels
              SET settings = settings - 'substitute' - 'away_until'
              WHERE person_in_scope($1, tenant_id)
              AND ($1 -> 'emails') ? lower(btrim(settings ->> 'substitute'))",
    },
    Statement {
        kind: "console_sessions",
        sql: "DELETE FROM console_sessions WHERE person_in_scope($1, tenant_id)
              AND (person_code($1, person) IS NOT NULL OR person_code($1, email) IS NOT NULL)",
    },
    Statement {
        kind: "read_notifications",
        sql: "DELETE FROM notification_reads
            WHERE person_in_scope($1, tenant_id) AND person_code($1, person) IS NOT NULL",
    },
    Statement {
        kind: "webhook_endpoints",
        sql: "UPDATE webhook_endpoints SET
                person_subject = coalesce(person_code($1, person_subject), person_subject),
                person_email = coalesce(person_code($1, person_email), person_email)
            WHERE person_in_scope($1, tenant_id)
              AND (person_code($1, person_subject) IS NOT NULL OR person_code($1, person_email) IS NOT NULL)",
    },
    // Removes the response and the caller of an idempotency key. A repetition with the key is
    // refused until the key expires. A response may have the salt of an erased context.
    Statement {
        kind: "kept_answers",
        sql: "UPDATE idempotency_keys k SET answer = NULL,
                caller = CASE WHEN person_code($1, caller) IS NULL THEN caller ELSE '' END
            WHERE person_in_scope($1, tenant_id) AND (
                person_code($1, caller) IS NOT NULL
                OR EXISTS (SELECT FROM decisions d
                           WHERE d.id = k.decision_id AND d.tenant_id = k.tenant_id AND d.context = '')
                OR EXISTS (SELECT FROM jsonb_object_keys($1 -> 'subjects') AS name
                           WHERE strpos(lower(encode(k.answer, 'escape')), lower(name)) > 0))",
    },
    Statement {
        kind: "contacts",
        sql: "UPDATE tenants SET owner_email = NULL, updated_at = clock_timestamp()
            WHERE person_in_scope($1, tenant_id) AND ($1 -> 'emails') ? lower(btrim(owner_email))",
    },
    Statement {
        kind: "contacts",
        sql: "UPDATE billing_accounts
            SET billing_email = 'erased@erased.invalid', updated_at = clock_timestamp()
            WHERE person_in_scope($1, tenant_id) AND ($1 -> 'emails') ? lower(btrim(billing_email))",
    },
    Statement {
        kind: "contacts",
        sql: "UPDATE white_label_configs SET support_email = NULL, updated_at = clock_timestamp()
            WHERE person_in_scope($1, tenant_id) AND ($1 -> 'emails') ? lower(btrim(support_email))",
    },
    // The contact data of an agent. An agent's own names are not personal data.
    Statement {
        kind: "contacts",
        sql: "UPDATE principals SET
                email = CASE WHEN ($1 -> 'emails') ? lower(btrim(email)) THEN NULL ELSE email END,
                external_subject = coalesce(person_code($1, external_subject), external_subject),
                updated_at = clock_timestamp()
            WHERE principal_class <> 'human' AND person_in_scope($1, tenant_id)
              AND (($1 -> 'emails') ? lower(btrim(email))
                   OR person_code($1, external_subject) IS NOT NULL)",
    },
];

/// A person's own records. `sql` empties them and returns their IDs. The fields in `members` are
/// also removed from their history.
pub(super) struct OwnRecords {
    pub(super) kind: &'static str,
    pub(super) sql: &'static str,
    pub(super) members: &'static [&'static str],
}

pub(super) const OWN_RECORDS: &[OwnRecords] = &[
    OwnRecords {
        kind: "leads",
        sql: "UPDATE leads SET submitter_email = 'erased@erased.invalid', submitter_name = NULL,
                organisation = NULL, country = NULL, message = NULL, source = NULL, utm = '{}',
                consent_marketing = false, updated_at = clock_timestamp()
            WHERE person_in_scope($1, tenant_id) AND ($1 -> 'emails') ? lower(btrim(submitter_email))
            RETURNING id",
        members: LEAD,
    },
    // Addresses are unique: each erased row gets an address of its own.
    OwnRecords {
        kind: "consultants",
        sql: "UPDATE consultants SET status = 'retired', listed = false, display_name = 'erased',
                email = right(id, 32) || '@erased.invalid', legal_name = NULL, phone = NULL,
                country = NULL, sectors = '{}', languages = '{}', bio = NULL, website = NULL,
                linkedin = NULL, suspend_reason = NULL, notes = NULL, tags = '{}', metadata = '{}',
                updated_at = clock_timestamp()
            WHERE person_in_scope($1, tenant_id) AND ($1 -> 'emails') ? lower(btrim(email))
            RETURNING id",
        members: &[
            "display_name",
            "email",
            "legal_name",
            "phone",
            "country",
            "sectors",
            "languages",
            "bio",
            "website",
            "linkedin",
            "suspend_reason",
            "notes",
            "tags",
            "metadata",
        ],
    },
    // An earlier step ended the principals. It must come first, because it uses the names that this
    // statement erases to find the people who lose access.
    OwnRecords {
        kind: "principals",
        sql: "UPDATE principals SET display_name = 'erased', email = person_code($1, email),
                external_subject = person_code($1, external_subject), notes = NULL, tags = '{}',
                metadata = '{}', updated_at = clock_timestamp()
            WHERE principal_class = 'human' AND person_in_scope($1, tenant_id)
              AND ($1 -> 'principals') ? id
            RETURNING id",
        members: &["display_name", "email", "external_subject", "notes", "tags", "metadata"],
    },
];

/// The fields of a lead that contain personal data.
pub(super) const LEAD: &[&str] =
    &["submitter_email", "submitter_name", "organisation", "country", "message", "source", "utm"];

/// Columns with the name of the person who made a change.
///
/// These names do not determine who may act. They are replaced by `erased`.
pub(super) const ACTORS: &[(&str, &[&str])] = &[
    ("tenants", &["created_by"]),
    ("legal_entities", &["created_by"]),
    ("billing_accounts", &["created_by"]),
    ("domains", &["created_by"]),
    ("policies", &["created_by", "activated_by"]),
    ("policy_versions", &["created_by"]),
    ("policy_activations", &["by"]),
    ("workspaces", &["created_by"]),
    ("projects", &["created_by"]),
    ("teams", &["created_by"]),
    ("models", &["created_by"]),
    ("principals", &["created_by"]),
    ("resources", &["created_by"]),
    ("tools", &["created_by"]),
    ("external_apps", &["created_by"]),
    ("audit_streams", &["created_by"]),
    ("purposes", &["created_by"]),
    ("delegations", &["created_by"]),
    ("member_of", &["created_by"]),
    ("acts_in", &["created_by"]),
    ("granted_access_to", &["created_by"]),
    ("uses", &["created_by"]),
    ("applies_to", &["created_by"]),
    ("stop_signals", &["created_by", "lifted_by"]),
    ("quarantines", &["created_by", "released_by"]),
    ("api_keys", &["created_by", "rotated_by"]),
    ("state_machines", &["created_by"]),
    ("webhook_endpoints", &["created_by", "adopted_by"]),
    ("webhook_replays", &["created_by"]),
    ("reality_anchors", &["created_by"]),
    ("reality_snapshots", &["created_by"]),
    ("reality_coupling_checks", &["created_by"]),
    ("stable_drift_events", &["created_by"]),
    ("consultants", &["created_by"]),
    ("certifications", &["created_by"]),
    ("consultant_links", &["created_by"]),
    ("white_label_configs", &["created_by"]),
    ("leads", &["created_by", "consent_source"]),
    ("erasures", &["by"]),
    ("signing_keys", &["created_by"]),
    ("key_rotations", &["created_by"]),
];

/// Tables of [`ACTORS`] that belong to no tenant and have no tenant column.
pub(super) const WITHOUT_TENANT: &[&str] = &["signing_keys", "key_rotations"];
