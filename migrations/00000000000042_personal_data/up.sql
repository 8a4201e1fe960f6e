-- Personal data: functions that erase a person, and how long contexts and observations are kept.
--
-- The functions here take a person as JSON, as crates/registry/src/personal_data/person.rs writes
-- it:
--   {"within": the only tenant meant, or null, "held": [tenants under legal hold],
--    "emails": {address in lower case: code}, "subjects": {sub: code}, "principals": [ids],
--    "email_patterns": [regular expressions], "subject_patterns": [the same]}
-- A code replaces an erased name. If the person acts again, the code still matches them, but it
-- does not reveal who they are.

-- ## Tenants

ALTER TABLE tenants
    -- {contexts_days, snapshots_days}: after how many days contexts and snapshots are erased. If a
    -- number is missing, that data is kept.
    ADD COLUMN retention jsonb CHECK (jsonb_typeof(retention) = 'object');

-- How far each tenant's contexts were erased by age.
CREATE TABLE context_retention (
    tenant_id text COLLATE "C" PRIMARY KEY REFERENCES tenants,
    -- The id of the last decision with a context that was erased by age.
    erased_until text COLLATE "C" NOT NULL
);
CALL guard('context_retention');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON context_retention');

CREATE INDEX reality_snapshots_observed ON reality_snapshots (tenant_id, sampled_at)
    WHERE observations <> '{}' OR content_summary IS NOT NULL OR content_ref IS NOT NULL;

-- ## The person

-- Whether the erasure of the person may change a row of this tenant. Rows of the installation have
-- an empty or NULL tenant.
CREATE FUNCTION person_in_scope(person jsonb, tenant text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(person ->> 'within' IS NULL OR tenant = person ->> 'within', false)
       AND NOT coalesce(person -> 'held' ? tenant, false)
$$;

-- Returns the code for a name of the person: an address, a `sub`, or an identity `<iss>|<sub>`.
-- Returns NULL if the name is not the person's.
CREATE FUNCTION person_code(person jsonb, name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        person -> 'emails' ->> lower(btrim(name)),
        person -> 'subjects' ->> name,
        'erased|' || (person -> 'subjects' ->> substr(name, strpos(name, '|') + 1)))
$$;

-- Whether a text contains a name of the person.
CREATE FUNCTION person_mentioned(person jsonb, content text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        (SELECT bool_or(content ~* pattern)
         FROM jsonb_array_elements_text(person -> 'email_patterns') AS pattern), false)
    OR coalesce(
        (SELECT bool_or(content ~ pattern)
         FROM jsonb_array_elements_text(person -> 'subject_patterns') AS pattern), false)
$$;

-- Returns the text with each name of the person replaced by `erased`.
CREATE FUNCTION without_person(person jsonb, value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    pattern text;
BEGIN
    FOR pattern IN SELECT jsonb_array_elements_text(person -> 'email_patterns') LOOP
        value := regexp_replace(value, pattern, 'erased', 'gi');
    END LOOP;
    FOR pattern IN SELECT jsonb_array_elements_text(person -> 'subject_patterns') LOOP
        value := regexp_replace(value, pattern, 'erased', 'g');
    END LOOP;
    RETURN value;
END $$;

-- Returns an act without the person's name and comment. The signed text is kept if it contains only
-- digests of both (EVIDENCE.md); an older text that contains them is removed. If another person's
-- act mentions the person, the comment of that act is removed.
CREATE FUNCTION erased_act(person jsonb, act jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN coalesce(person_code(person, act ->> 'by'), person_code(person, act ->> 'name')) IS NOT NULL
        THEN act || without_comment || jsonb_build_object(
            'by', coalesce(person_code(person, act ->> 'by'), 'erased|erased'),
            'name', coalesce(person_code(person, act ->> 'name'), 'erased'),
            'by_salt', NULL)
        WHEN person_mentioned(person, act ->> 'comment') THEN act || without_comment
        ELSE act END
    FROM (SELECT jsonb_build_object(
        'comment', NULL, 'comment_salt', NULL,
        'record', CASE WHEN act ->> 'record' LIKE '%"by_digest":%' THEN act ->> 'record' ELSE '' END
    ) AS without_comment) AS made
$$;

-- Whether the person did any of these acts.
CREATE FUNCTION person_acted(person jsonb, acts jsonb[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(bool_or(
        coalesce(person_code(person, act ->> 'by'), person_code(person, act ->> 'name')) IS NOT NULL), false)
    FROM unnest(acts) AS act
$$;

-- ## Append-only tables with columns that can be erased

-- Whether a column has this value after erasing.
CREATE FUNCTION is_erased(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT value IS NULL OR value IN ('', '\x') OR value ~ '^erased($|[:|])' OR value LIKE '%@erased.invalid'
$$;

-- Refuses all changes except erasing. Argument: the columns that can be erased.
CREATE FUNCTION refuse_all_but_erasing() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    erasable CONSTANT text[] := TG_ARGV[0]::text[];
    was CONSTANT jsonb := to_jsonb(OLD);
    is_now CONSTANT jsonb := to_jsonb(NEW);
BEGIN
    IF TG_OP = 'UPDATE' AND was - erasable = is_now - erasable AND NOT EXISTS (
        SELECT FROM unnest(erasable) AS name
        WHERE is_now -> name IS DISTINCT FROM was -> name AND NOT is_erased(is_now ->> name))
    THEN
        RETURN NEW;
    END IF;
    RAISE 'table `%` is append-only: % is refused', TG_TABLE_NAME, lower(TG_OP)
        USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'append_only';
END $$;

CREATE PROCEDURE may_erase(name regclass, columns text[]) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TRIGGER append_only ON %s', name);
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %s
                    FOR EACH ROW EXECUTE FUNCTION refuse_all_but_erasing(%L)', name, columns);
    CALL grant_to('{system}', format('UPDATE (%s) ON %s', array_to_string(columns, ', '), name));
END $$;

-- The signed text contains the person and their comment as salted digests. These columns have the
-- salts and the comment that the digests in `record` are made from. They are NULL in older rows:
-- there, `record` contains the person and the comment in clear text.
ALTER TABLE approval_acts
    ADD COLUMN by_salt text,
    ADD COLUMN comment text,
    ADD COLUMN comment_salt text;

CALL may_erase('decisions', '{context,context_salt,facts,facts_salt}');
CALL may_erase('approval_acts', '{person,record,by_salt,comment,comment_salt}');
CALL may_erase('decision_reports', '{reported_by,detail,record}');
CALL may_erase('policy_versions', '{created_by}');
CALL may_erase('state_machines', '{created_by}');
CALL may_erase('state_events', '{actor,first_actor}');

-- Decisions share facts and refer to them by digest. The facts can therefore not be changed, only
-- deleted as a whole.
DROP TRIGGER append_only ON fact_blobs;
CREATE TRIGGER append_only BEFORE UPDATE ON fact_blobs
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CALL grant_to('{system}', 'DELETE ON fact_blobs');

CALL grant_to('{system}', 'UPDATE (caller) ON idempotency_keys');
CALL grant_to('{system}', 'SELECT, DELETE ON notification_reads');

-- Erasing the creator of a delegation is not announced as narrowing the delegation.
DO $$
DECLARE
    was CONSTANT text := pg_get_functiondef('announce_delegation'::regproc);
    made CONSTANT text := replace(was, '{state,standing,', '{created_by,state,standing,');
BEGIN
    IF made = was THEN
        RAISE 'announce_delegation does not list what narrows nothing';
    END IF;
    EXECUTE made;
END $$;

-- ## History

-- Removes the person's names from a page of versions. Runs as its owner, because the service may
-- not write the history.
CREATE FUNCTION erase_versions(person jsonb, after bigint, most integer)
RETURNS TABLE (last bigint, changed bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH page AS MATERIALIZED (
        SELECT version FROM record_versions WHERE version > after ORDER BY version LIMIT most
    ), erased AS (
        UPDATE record_versions v
        SET actor = CASE WHEN person_code(person, v.actor) IS NULL THEN v.actor ELSE 'erased' END,
            body = without_person(person, v.body::text)::jsonb
        FROM page
        WHERE v.version = page.version AND person_in_scope(person, v.tenant_id)
          AND (person_code(person, v.actor) IS NOT NULL OR person_mentioned(person, v.body::text))
        RETURNING v.version)
    SELECT (SELECT max(version) FROM page), (SELECT count(*) FROM erased)
$$;
REVOKE EXECUTE ON FUNCTION erase_versions FROM PUBLIC;
CALL grant_to('{system}', 'EXECUTE ON FUNCTION erase_versions');

-- ## Erasures

-- Erasures are recorded without the erased person.
CREATE TABLE erasures (
    -- `svc:erasure:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    -- The tenant of the erasure; NULL if it was not limited to one tenant.
    tenant_id text COLLATE "C" REFERENCES tenants,
    at timestamptz NOT NULL,
    by text NOT NULL,
    reason text NOT NULL,
    -- {kind: count}
    erased jsonb NOT NULL
);
CALL append_only('erasures');
CALL revoke_from('{tenant,recorder}', 'ALL ON erasures');
-- The person who requested an erasure can be erased as well.
CALL may_erase('erasures', '{by}');
