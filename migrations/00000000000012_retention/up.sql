-- Removes data: the names of erased people, contexts by age, and the rows of archived months.

-- ## Contexts that are erased by age

-- How far each tenant's contexts were erased by age.
CREATE TABLE context_retention (
    tenant_id text COLLATE "C" PRIMARY KEY REFERENCES tenants,
    -- The id of the last decision with a context that was erased by age.
    erased_until text COLLATE "C" NOT NULL
);
CALL guard('context_retention');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON context_retention');

-- ## The person

-- The functions here take a person as JSON, as crates/registry/src/personal_data/person.rs writes
-- it:
--   {"within": the only tenant meant, or null, "held": [tenants under legal hold],
--    "emails": {address in lower case: code}, "subjects": {sub: code}, "principals": [ids],
--    "email_patterns": [regular expressions], "subject_patterns": [the same]}
-- A code replaces an erased name. If the person acts again, the code still matches them, but it
-- does not reveal who they are.

-- Whether the erasure of the person may change a row of this tenant. Rows of the installation have
-- an empty or NULL tenant.
CREATE FUNCTION person_in_scope(person jsonb, tenant text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(person ->> 'within' IS NULL OR tenant = person ->> 'within', false)
       AND NOT coalesce(person -> 'held' ? tenant, false)
$$;

-- Returns the code for a name of the person: an address, a `sub`, or an identity `<iss>|<sub>`.
-- Returns NULL if the name is not the person's. A subject of a further issuer begins with the name of
-- the issuer, which is not an `<iss>`: `okta|ann` is not the person with the `sub` `ann`.
CREATE FUNCTION person_code(person jsonb, name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        person -> 'emails' ->> lower(btrim(name)),
        person -> 'subjects' ->> name,
        CASE WHEN name !~ '^[a-z0-9-]{1,32}[|]'
             THEN 'erased|' || (person -> 'subjects' ->> substr(name, strpos(name, '|') + 1)) END)
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

-- ## Archives

-- Months of decisions that are archived outside the database, and the removal of their rows
-- (crates/archive).
--
-- A row is removed only if its month is archived, the tenant's `decisions_days` have passed, the
-- tenant has no legal hold, and there are exactly as many rows as were archived. The functions that
-- remove rows check this themselves; all other deletions are refused. The service may call the
-- functions only if `migrate` ran with an archive configured.

CREATE FUNCTION month_start(month text) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT make_timestamptz(left(month, 4)::integer, right(month, 2)::integer, 1, 0, 0, 0, 'UTC')
$$;

CREATE FUNCTION month_end(month text) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT make_timestamptz(left(month, 4)::integer + right(month, 2)::integer / 12,
                            right(month, 2)::integer % 12 + 1, 1, 0, 0, 0, 'UTC')
$$;

CREATE TABLE archives (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    -- The month in UTC, for example `2026-07`.
    month text COLLATE "C" NOT NULL CHECK (month ~ '^\d{4}-(0[1-9]|1[0-2])$'),
    -- The range of the ids of the month's decisions: `lower` is inclusive, `upper` exclusive.
    lower text COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (time_bound('svc:decision:', month_start(month))) STORED,
    upper text COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (time_bound('svc:decision:', month_end(month))) STORED,
    decisions bigint NOT NULL CHECK (decisions >= 0),
    versions bigint NOT NULL CHECK (versions >= 0),
    changes bigint NOT NULL CHECK (changes >= 0),
    -- The total size of the archive's objects.
    bytes bigint NOT NULL CHECK (bytes >= 0),
    -- The name and the digest of the archive's manifest. If somebody changes the files, they no
    -- longer match the digest.
    manifest text COLLATE "C" NOT NULL,
    manifest_sha256 bytea NOT NULL CHECK (length(manifest_sha256) = 32),
    -- Manifests that this one replaced. They will be deleted, with objects that no other manifest lists.
    replaced text[] NOT NULL DEFAULT '{}',
    -- Manifests that erasures have written, or are about to write, to replace this one.
    intended text[] NOT NULL DEFAULT '{}',
    -- Reports and replays stored before this time are in the archive. Later ones are kept in the
    -- tables.
    settled_before timestamptz NOT NULL,
    archived_at timestamptz NOT NULL,
    -- When the whole archive was last read back.
    checked_at timestamptz,
    -- Whether the folder has only objects that the manifest names.
    is_tidy boolean NOT NULL DEFAULT false,
    -- When the first and the last row of the month were removed.
    removal_begun timestamptz,
    removed_at timestamptz,
    PRIMARY KEY (tenant_id, month)
);
CALL guard('archives');
CALL grant_to('{tenant}', 'SELECT ON archives');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON archives');
CALL grant_to('{system}', 'UPDATE (bytes, manifest, manifest_sha256, replaced, intended, checked_at, is_tidy)
                           ON archives');

-- Prevents the deletion of an archive from the removal of the first row on: the archive then has the
-- only copy of that row.
CREATE FUNCTION keep_archive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.removal_begun IS NOT NULL THEN
        RAISE 'the archive of `%` of % cannot be dropped: rows of it are removed', OLD.tenant_id, OLD.month
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER keep_archive BEFORE DELETE ON archives FOR EACH ROW EXECUTE FUNCTION keep_archive();

-- The times of an archive's decisions, by hour: for each decision four bytes, the milliseconds
-- within the hour. A decision's id contains its time. A look-up by id therefore reads only archives
-- with a decision at that time, and none for an id that never existed.
CREATE TABLE archived_times (
    tenant_id text COLLATE "C" NOT NULL,
    month text COLLATE "C" NOT NULL,
    -- The hour, as the number of hours since 1970.
    hour integer NOT NULL,
    times bytea NOT NULL,
    PRIMARY KEY (hour, tenant_id),
    FOREIGN KEY (tenant_id, month) REFERENCES archives ON DELETE CASCADE
);
CREATE INDEX archived_times_of_archive ON archived_times (tenant_id, month);
CALL guard('archived_times');
CALL grant_to('{tenant}', 'SELECT ON archived_times');
CALL grant_to('{system}', 'SELECT, INSERT ON archived_times');

-- The months that are being archived, and the manifests written for them so far. The node with the
-- lease continues the run. A run with the lease `''` was ended and starts again. The objects that it
-- wrote belong to no archive.
CREATE TABLE archive_runs (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    month text COLLATE "C" NOT NULL,
    begun_at timestamptz NOT NULL,
    lease text NOT NULL,
    leased_until timestamptz NOT NULL,
    -- The manifests written for the month by this run and earlier runs, and the manifests of a
    -- discarded archive.
    written text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant_id, month)
);
-- The parts that a run has written, each with its index.
CREATE TABLE archive_parts (
    tenant_id text COLLATE "C" NOT NULL,
    month text COLLATE "C" NOT NULL,
    part integer NOT NULL CHECK (part > 0),
    decisions bigint NOT NULL,
    first_id text COLLATE "C" NOT NULL,
    last_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    index_name text COLLATE "C" NOT NULL,
    index_bytes bigint NOT NULL,
    index_sha256 bytea NOT NULL CHECK (length(index_sha256) = 32),
    PRIMARY KEY (tenant_id, month, part),
    FOREIGN KEY (tenant_id, month) REFERENCES archive_runs ON DELETE CASCADE
);
-- The archived parts with decisions that still have rows. The rows of a part are removed in one
-- transaction.
CREATE TABLE archived_parts (
    tenant_id text COLLATE "C" NOT NULL,
    month text COLLATE "C" NOT NULL,
    part integer NOT NULL,
    decisions bigint NOT NULL CHECK (decisions > 0),
    first_id text COLLATE "C" NOT NULL,
    last_id text COLLATE "C" NOT NULL,
    -- Whether rows that are not archived were added within the part's range. All rows of the part
    -- are then kept.
    has_others boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, month, part),
    FOREIGN KEY (tenant_id, month) REFERENCES archives ON DELETE CASCADE
);
CALL guard('archived_parts');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON archived_parts');
CALL guard('archive_runs');
CALL guard('archive_parts');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON archive_runs');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON archive_parts');

-- The functions below run as the owner of these tables.
CREATE POLICY bookkeeping ON tenants TO CURRENT_USER USING (is_removing(id));
CREATE POLICY bookkeeping ON archives TO CURRENT_USER USING (true);
CREATE POLICY bookkeeping ON archived_parts TO CURRENT_USER USING (true);
CREATE POLICY bookkeeping ON archive_runs FOR SELECT TO CURRENT_USER USING (true);

-- ## Removal

-- Whether the remaining rows of an archived month may be removed. The month must be at least 30
-- days past, even if the tenant's retention is shorter.
CREATE FUNCTION may_go(archive archives, tenant tenants) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(archive.removed_at IS NULL AND tenant.legal_hold IS NULL
                    AND month_end(archive.month) + make_interval(hours => 24 * kept.days) <= now(), false)
    FROM (SELECT CASE WHEN tenant.retention ->> 'decisions_days' IS NOT NULL
                      THEN greatest(30, (tenant.retention ->> 'decisions_days')::integer) END AS days) AS kept
$$;

-- Whether the archive was read back within the last day.
CREATE FUNCTION is_checked(archive archives) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(archive.checked_at > now() - interval '1 day', false)
$$;

-- Returns the archive of a month with rows that may be removed now. Locks the tenant: its legal
-- hold and retention can't change until this transaction ends.
CREATE FUNCTION removable(of_tenant text, of_month text) RETURNS SETOF archives LANGUAGE sql VOLATILE AS $$
    SELECT a.* FROM archives a JOIN tenants t ON t.id = a.tenant_id
    WHERE a.tenant_id = of_tenant AND a.month = of_month AND may_go(a, t) AND is_checked(a)
      -- Months are removed in order, to leave no gap in the remaining history.
      AND NOT EXISTS (SELECT FROM archives before
                      WHERE before.tenant_id = a.tenant_id AND before.month < a.month
                        AND before.removal_begun IS NULL)
      AND NOT EXISTS (SELECT FROM archive_runs r
                      WHERE r.tenant_id = a.tenant_id AND r.month < a.month
                        AND NOT EXISTS (SELECT FROM archives before
                                        WHERE before.tenant_id = r.tenant_id AND before.month = r.month))
      -- Decisions that `usage_hours` and `usage_days` do not count yet are still needed.
      AND a.upper <= (SELECT counted_until FROM usage_cursor)
    FOR UPDATE OF a FOR SHARE OF t
$$;

-- The versions and changes that are archived with a month. They never include current versions,
-- versions that mark a deletion, or a tenant's newest change, because its next revision is derived
-- from that.
CREATE FUNCTION archived_versions(of_tenant text, of_month text) RETURNS SETOF record_versions
LANGUAGE sql STABLE AS $$
    SELECT * FROM record_versions
    WHERE tenant_id = of_tenant AND body IS NOT NULL
      AND valid_to >= month_start(of_month) AND valid_to < month_end(of_month)
$$;
CREATE FUNCTION archived_changes(of_tenant text, of_month text) RETURNS SETOF authority_changes
LANGUAGE sql STABLE AS $$
    SELECT * FROM authority_changes
    WHERE tenant_id = of_tenant AND at >= month_start(of_month) AND at < month_end(of_month)
      AND tenant_revision < (SELECT max(tenant_revision) FROM authority_changes WHERE tenant_id = of_tenant)
$$;

-- Whether the month's rows in the tables are exactly the archived ones.
CREATE FUNCTION is_as_archived(archive archives) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT archive.decisions = (SELECT count(*) FROM decisions
                                WHERE tenant_id = archive.tenant_id AND id >= archive.lower AND id < archive.upper)
       AND archive.versions = (SELECT count(*) FROM archived_versions(archive.tenant_id, archive.month))
       AND archive.changes = (SELECT count(*) FROM archived_changes(archive.tenant_id, archive.month))
$$;

-- Removes the rows of a month that must go before its decisions: the history, and the proofs of
-- replays, because a proof needs its pack. Returns false and removes no rows if the rows differ
-- from the archived ones.
CREATE FUNCTION begin_removal(archive archives) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    versions bigint;
    changes bigint;
BEGIN
    IF NOT is_as_archived(archive) THEN
        RETURN false;
    END IF;
    DELETE FROM record_versions
    WHERE version IN (SELECT version FROM archived_versions(archive.tenant_id, archive.month));
    GET DIAGNOSTICS versions = ROW_COUNT;
    DELETE FROM authority_changes
    WHERE seq IN (SELECT seq FROM archived_changes(archive.tenant_id, archive.month));
    GET DIAGNOSTICS changes = ROW_COUNT;
    IF (versions, changes) <> (archive.versions, archive.changes) THEN
        RAISE 'history of % came to % while it was removed', archive.tenant_id, archive.month;
    END IF;
    DELETE FROM replay_proofs
    WHERE tenant_id = archive.tenant_id AND decision_id >= archive.lower AND decision_id < archive.upper
      AND stored_at < archive.settled_before;
    UPDATE archives SET removal_begun = now() WHERE tenant_id = archive.tenant_id AND month = archive.month;
    RETURN true;
END $$;

-- Removes the rows of one part of an archived month. Returns the number of removed decisions: 0 at
-- the end, NULL if no rows may be removed now, and -1 if the rows differ from the archived ones. If
-- other rows were added within a part's range, all rows of the part are kept. Runs as the tables'
-- owner.
CREATE FUNCTION remove_archived(of_tenant text, of_month text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    removed integer;
BEGIN
    PERFORM set_config('authority.removing', of_tenant, true);
    removed := remove_archived_rows(of_tenant, of_month);
    PERFORM set_config('authority.removing', '', true);
    RETURN removed;
END $$;

-- Called only by remove_archived.
CREATE FUNCTION remove_archived_rows(of_tenant text, of_month text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    archive archives;
    rest archived_parts;
BEGIN
    SELECT * INTO archive FROM removable(of_tenant, of_month);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF archive.removal_begun IS NULL AND NOT begin_removal(archive) THEN
        RETURN -1;
    END IF;
    FOR rest IN SELECT * FROM archived_parts
                WHERE tenant_id = of_tenant AND month = of_month AND NOT has_others ORDER BY part LOOP
        IF remove_archived_part(archive, rest) THEN
            RETURN rest.decisions;
        END IF;
    END LOOP;
    -- The reports of decisions in partitions that were dropped.
    DELETE FROM decision_reports r
    WHERE tenant_id = of_tenant AND decision_id >= archive.lower AND decision_id < archive.upper
      AND stored_at < archive.settled_before
      AND NOT EXISTS (SELECT FROM decisions d WHERE d.id = r.decision_id AND d.tenant_id = of_tenant);
    UPDATE archives SET removed_at = now() WHERE tenant_id = of_tenant AND month = of_month;
    RETURN 0;
END $$;

-- Removes the decisions of a part with their packs, reports and searched facts. Returns false and removes no rows
-- if the part's range has other decisions.
CREATE FUNCTION remove_archived_part(archive archives, rest archived_parts) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    removed bigint := (SELECT count(*) FROM decisions
                       WHERE tenant_id = rest.tenant_id AND id >= rest.first_id AND id <= rest.last_id);
BEGIN
    IF removed <> rest.decisions THEN
        UPDATE archived_parts SET has_others = true
        WHERE tenant_id = rest.tenant_id AND month = rest.month AND part = rest.part;
        RETURN false;
    END IF;
    DELETE FROM decision_reports
    WHERE tenant_id = rest.tenant_id AND decision_id >= rest.first_id AND decision_id <= rest.last_id
      AND stored_at < archive.settled_before;
    DELETE FROM evidence_packs
    WHERE tenant_id = rest.tenant_id AND decision_id >= rest.first_id AND decision_id <= rest.last_id;
    PERFORM pg_advisory_xact_lock_shared(4157011);
    DELETE FROM decision_facts
    WHERE tenant_id = rest.tenant_id AND key >= fact_key(rest.first_id) AND key <= fact_key(rest.last_id);
    DELETE FROM decisions
    WHERE tenant_id = rest.tenant_id AND id >= rest.first_id AND id <= rest.last_id;
    GET DIAGNOSTICS removed = ROW_COUNT;
    IF removed <> rest.decisions THEN
        RAISE 'decisions of % came to % while they were removed', rest.tenant_id, rest.month;
    END IF;
    DELETE FROM archived_parts
    WHERE tenant_id = rest.tenant_id AND month = rest.month AND part = rest.part;
    RETURN true;
END $$;

-- ## Counting decisions again

-- Deletes the counts from a day on (UTC), and lets the worker count those decisions again. Fails if
-- decisions of these days were removed, because they could not be counted again. Until the end of
-- the transaction, the locks keep decisions from being removed and the worker from counting. Only
-- the owner of the database may call it.
CREATE FUNCTION recount_usage(from_day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    starts CONSTANT timestamptz := from_day::timestamp AT TIME ZONE 'UTC';
    first_id CONSTANT text := time_bound('svc:decision:', starts);
BEGIN
    PERFORM set_config('role', authority_role('system'), true);
    LOCK TABLE archives IN EXCLUSIVE MODE;
    UPDATE usage_cursor SET counted_until = first_id WHERE counted_until > first_id;
    IF NOT FOUND THEN
        RAISE 'decisions of % are not counted yet', from_day;
    END IF;
    IF EXISTS (SELECT FROM archives a WHERE a.removal_begun IS NOT NULL AND a.upper > first_id) THEN
        RAISE 'decisions after % were removed: begin after the last month with removed decisions', from_day;
    END IF;
    DELETE FROM usage_hours WHERE starts_at >= starts;
    DELETE FROM usage_days WHERE starts_at >= starts;
END $$;
REVOKE EXECUTE ON FUNCTION recount_usage FROM PUBLIC;

-- ## Indexing decisions again

-- Deletes the searched facts of decisions from a day on (UTC), and lets the worker index them again, by
-- the roles that tools declare now. Only the owner of the database may call it.
CREATE FUNCTION reindex_decision_facts(from_day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first_id CONSTANT text := time_bound('svc:decision:', from_day::timestamp AT TIME ZONE 'UTC');
BEGIN
    PERFORM set_config('role', authority_role('system'), true);
    UPDATE fact_cursor SET indexed_until = first_id WHERE indexed_until > first_id;
    IF NOT FOUND THEN
        RAISE 'decisions of % are not indexed yet', from_day;
    END IF;
    DELETE FROM decision_facts WHERE key >= fact_key(first_id);
END $$;
REVOKE EXECUTE ON FUNCTION reindex_decision_facts FROM PUBLIC;

-- ## Whole partitions

-- Returns the partitions of decisions that have only ids older than any retention, with their
-- bounds. `lower` is NULL for the first partition. `packs` and `facts` are the partitions with the
-- evidence packs and the searched facts of the same decisions, if there are such partitions.
CREATE FUNCTION old_decision_partitions()
RETURNS TABLE (part regclass, packs regclass, facts regclass, lower text, upper text)
LANGUAGE sql STABLE AS $$
    WITH bounds AS (
        SELECT p.table_name, i.inhrelid::regclass AS part, bound.texts[1] AS lower, bound.texts[2] AS upper
        FROM time_partitions p
        JOIN pg_inherits i ON i.inhparent = p.table_name::regclass
        JOIN pg_class c ON c.oid = i.inhrelid
        CROSS JOIN LATERAL (SELECT regexp_match(
            pg_get_expr(c.relpartbound, c.oid),
            '^FOR VALUES FROM \((?:MINVALUE|''([^'']+)'')\) TO \(''([^'']+)''\)$') AS texts) AS bound
        WHERE p.table_name IN ('decisions', 'evidence_packs', 'decision_facts'))
    SELECT d.part, e.part, f.part, d.lower, d.upper
    FROM bounds d LEFT JOIN bounds e
      ON e.table_name = 'evidence_packs' AND e.upper = d.upper AND e.lower IS NOT DISTINCT FROM d.lower
    LEFT JOIN bounds f
      ON f.table_name = 'decision_facts' AND f.upper = fact_key(d.upper)
      AND f.lower IS NOT DISTINCT FROM fact_key(d.lower)
    WHERE d.table_name = 'decisions'
      AND d.upper COLLATE "C" <= time_bound('svc:decision:', now() - interval '30 days') COLLATE "C"
$$;

-- Drops an old partition if every row is archived and may be removed. Runs as the tables' owner,
-- because the service may not drop tables. A partition has no policies of its own. The owner
-- therefore sees all of its rows.
CREATE FUNCTION drop_archived_partition(old_part regclass) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    old record;
    archive archives;
    whole archives[];
    allowed boolean;
BEGIN
    SELECT * INTO old FROM old_decision_partitions() WHERE part = old_part;
    IF NOT FOUND THEN
        RAISE '`%` is not an old partition of decisions', old_part;
    END IF;
    -- This lock does not delay decisions, which are never written into an old partition.
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE MODE', old.part);
    PERFORM pg_advisory_xact_lock_shared(4157011);
    whole := wholly_archived(old.part, old.lower, old.upper);
    -- Packs that are in no partition of the same months are deleted with their decisions.
    IF whole IS NULL OR whole <> '{}' AND old.packs IS NULL THEN
        RETURN false;
    END IF;
    FOREACH archive IN ARRAY whole LOOP
        PERFORM set_config('authority.removing', archive.tenant_id, true);
        allowed := EXISTS (SELECT FROM removable(archive.tenant_id, archive.month))
            AND (archive.removal_begun IS NOT NULL OR begin_removal(archive));
        PERFORM set_config('authority.removing', '', true);
        IF NOT allowed THEN
            -- Either all months of the partition are removed or none. The error undoes all removals.
            RAISE no_data_found;
        END IF;
        DELETE FROM archived_parts WHERE tenant_id = archive.tenant_id AND month = archive.month;
        -- Facts that are in no partition of the same months.
        IF old.facts IS NULL THEN
            DELETE FROM decision_facts WHERE tenant_id = archive.tenant_id
                AND key >= fact_key(archive.lower) AND key < fact_key(archive.upper);
        END IF;
    END LOOP;
    -- Writers take both locks in the same order. If a long reader holds a lock, this function gives
    -- up after `lock_timeout`, because other statements have to wait behind this one.
    LOCK TABLE ONLY decisions, ONLY evidence_packs IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('DROP TABLE %s', old.part);
    IF old.packs IS NOT NULL THEN
        EXECUTE format('DROP TABLE %s', old.packs);
    END IF;
    IF old.facts IS NOT NULL THEN
        LOCK TABLE ONLY decision_facts IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('DROP TABLE %s', old.facts);
    END IF;
    RETURN true;
EXCEPTION WHEN lock_not_available OR no_data_found THEN
    RETURN false;
END $$;

-- Returns the archives that together contain every row of a partition; NULL if it has other rows.
CREATE FUNCTION wholly_archived(part regclass, from_id text, before_id text) RETURNS archives[]
LANGUAGE plpgsql AS $$
DECLARE
    archive archives;
    whole archives[] := '{}';
    left_over bigint;
    archived bigint;
    counted bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM ONLY %s', part) INTO left_over;
    FOR archive IN SELECT * FROM archives a
                   WHERE a.upper <= before_id AND (from_id IS NULL OR a.lower >= from_id) LOOP
        SELECT coalesce(sum(r.decisions), 0) INTO archived FROM archived_parts r
        WHERE r.tenant_id = archive.tenant_id AND r.month = archive.month;
        EXECUTE format('SELECT count(*) FROM ONLY %s WHERE tenant_id = $1 AND id >= $2 AND id < $3', part)
            INTO counted USING archive.tenant_id, archive.lower, archive.upper;
        IF counted <> archived THEN
            RETURN NULL;
        END IF;
        IF counted > 0 THEN
            whole := whole || archive;
            left_over := left_over - counted;
        END IF;
    END LOOP;
    RETURN CASE WHEN left_over = 0 THEN whole END;
END $$;

-- Drops the old partitions with only archived rows. Returns their number.
CREATE FUNCTION drop_archived_partitions() RETURNS integer LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
DECLARE
    old record;
    dropped integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(4157002);
    FOR old IN SELECT * FROM old_decision_partitions() LOOP
        IF EXISTS (SELECT FROM archives a
                   WHERE a.upper <= old.upper AND (old.lower IS NULL OR a.lower >= old.lower))
            AND drop_archived_partition(old.part)
        THEN
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;

REVOKE EXECUTE ON FUNCTION remove_archived, remove_archived_rows, remove_archived_part, begin_removal,
    drop_archived_partition, drop_archived_partitions FROM PUBLIC;

-- Grants or revokes the right to remove rows. With this right, a stolen login of the service could
-- insert a row for an archive that was never written, and then remove the decisions. The right is
-- therefore granted only when `migrate` runs with an archive configured and calls this procedure as
-- the tables' owner.
CREATE PROCEDURE allow_removal(is_allowed boolean) LANGUAGE plpgsql AS $$
DECLARE
    right_to_remove CONSTANT text :=
        'EXECUTE ON FUNCTION remove_archived, drop_archived_partition, drop_archived_partitions';
BEGIN
    IF is_allowed THEN
        CALL grant_to('{system}', right_to_remove);
    ELSE
        CALL revoke_from('{system}', right_to_remove);
    END IF;
END $$;
