-- A change of authority takes effect through triggers, which write it to the change log and raise
-- the tenant's revision. If a trigger is disabled, or `session_replication_role` is `replica`, the
-- change is stored but never takes effect. Each transaction that changed a table of authority
-- therefore checks just before its commit that a revision was raised.

-- The tables that `govern` has made part of authority, even if their triggers have changed since.
CREATE TABLE authority_tables (
    name text COLLATE "C" PRIMARY KEY
);
CALL grant_to('{system}', 'SELECT ON authority_tables');
INSERT INTO authority_tables
SELECT c.relname FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
WHERE g.tgname = 'log_change' AND c.relnamespace = 'public'::regnamespace;

CREATE OR REPLACE PROCEDURE govern(
    name regclass, authority boolean DEFAULT false, tenant text DEFAULT 'tenant_id',
    secret text[] DEFAULT '{}', quiet text[] DEFAULT '{}'
) LANGUAGE plpgsql AS $$
BEGIN
    CALL guard(name, tenant);
    CALL grant_to('{tenant,system}', format('SELECT, INSERT, UPDATE, DELETE ON %s', name));
    EXECUTE format('CREATE TRIGGER keep_version AFTER INSERT OR UPDATE OR DELETE ON %s
                    FOR EACH ROW EXECUTE FUNCTION keep_version(%L, %L, %L)',
                   name, tenant, secret, quiet);
    IF authority THEN
        EXECUTE format('CREATE CONSTRAINT TRIGGER log_change AFTER INSERT OR UPDATE OR DELETE ON %s
                        DEFERRABLE INITIALLY DEFERRED
                        FOR EACH ROW EXECUTE FUNCTION log_change(%L, %L)', name, tenant, quiet);
        INSERT INTO authority_tables SELECT relname FROM pg_class WHERE oid = name
        ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- ## A change without its revision

-- As in migration 1, but if a rule or another trigger suppresses the row, that is now an error.
CREATE OR REPLACE FUNCTION log_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    was jsonb := to_jsonb(OLD);
    is_now jsonb := to_jsonb(NEW);
    subject jsonb := coalesce(is_now, was);
    tenant text COLLATE "C" := subject ->> TG_ARGV[0];
    raised bigint;
BEGIN
    IF is_now - TG_ARGV[1]::text[] = was - TG_ARGV[1]::text[] THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock(4157001);
    SELECT 1 + greatest(0,
        (SELECT tenant_revision FROM authority_changes WHERE tenant_id = tenant
         ORDER BY tenant_revision DESC LIMIT 1),
        (SELECT revision FROM tenant_revisions WHERE tenant_id = tenant)) INTO raised;
    INSERT INTO authority_changes (tenant_id, tenant_revision, table_name, entity_id, at)
    VALUES (tenant, raised, TG_TABLE_NAME, subject ->> 'id', clock_timestamp());
    IF NOT FOUND THEN
        RAISE 'the change of `%` raised no revision: `authority_changes` did not take it',
              TG_TABLE_NAME;
    END IF;
    -- Equal notifications are sent once in each transaction.
    PERFORM pg_notify('authority_changes', '');
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION raise_revision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF NEW.tenant_revision = (SELECT tenant_revision FROM authority_changes
                              WHERE tenant_id = NEW.tenant_id
                              ORDER BY tenant_revision DESC LIMIT 1) THEN
        INSERT INTO tenant_revisions VALUES (NEW.tenant_id, NEW.tenant_revision)
        ON CONFLICT (tenant_id) DO UPDATE SET revision = EXCLUDED.revision;
        IF NOT FOUND THEN
            RAISE 'the change of `%` raised no revision: `tenant_revisions` did not take it',
                  NEW.table_name;
        END IF;
    END IF;
    RETURN NULL;
END $$;

-- Raises the revisions of this transaction now instead of at its commit. Fails if a table of
-- authority was changed but its triggers can't raise a revision. The counters of changed rows may
-- still include an earlier transaction of the session, because Postgres resets them up to a second
-- after the commit. Such a table is checked again, which does no harm. If `track_counts` is off,
-- every table counts as changed.
CREATE FUNCTION require_revisions() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    changed text[];
    fault text;
BEGIN
    SELECT array_agg(name) INTO changed
    -- OFFSET keeps Postgres from looking up each name three times.
    FROM (SELECT name, to_regclass(quote_ident(name))::oid AS id FROM authority_tables OFFSET 0) AS t
    WHERE pg_stat_get_xact_tuples_inserted(id) > 0 OR pg_stat_get_xact_tuples_updated(id) > 0
       OR pg_stat_get_xact_tuples_deleted(id) > 0 OR current_setting('track_counts') = 'off';
    IF changed IS NULL THEN
        RETURN;
    END IF;
    IF current_setting('session_replication_role') = 'replica' THEN
        RAISE 'a change of `%` raises no revision while `session_replication_role` is `replica`: '
              'reset that setting', changed[1];
    END IF;
    SELECT format('a change of `%s` raises no revision while the trigger `%s` of `%s` is missing or disabled: '
                  'as the owner of the database run ALTER TABLE %I ENABLE TRIGGER %I',
                  changed[1], needed.trigger, needed.name, needed.name, needed.trigger)
    INTO fault
    FROM (SELECT unnest(changed), 'log_change'
          UNION ALL SELECT 'authority_changes', 'raise_revision') AS needed (name, trigger)
    WHERE NOT EXISTS (
        SELECT FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
        WHERE c.relname = needed.name AND c.relnamespace = 'public'::regnamespace
          AND g.tgname = needed.trigger AND g.tgenabled IN ('O', 'A'));
    IF fault IS NOT NULL THEN
        RAISE '%', fault;
    END IF;
    -- One after the other: a tenant's revision is then written once for all of its changes.
    SET CONSTRAINTS public.log_change IMMEDIATE;
    SET CONSTRAINTS public.raise_revision IMMEDIATE;
END $$;
REVOKE EXECUTE ON FUNCTION require_revisions FROM PUBLIC;
CALL grant_to('{tenant,system}', 'EXECUTE ON FUNCTION require_revisions');

-- ## Faults of the schema

-- Returns the next number of a column's sequence. Runs as the owner, because only the owner may
-- read sequences.
CREATE FUNCTION next_number(sequence regclass) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    number bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_depend WHERE objid = sequence AND deptype IN ('a', 'i')
                                           AND classid = 'pg_class'::regclass) THEN
        RAISE '% is no sequence of a column', sequence;
    END IF;
    EXECUTE format('SELECT last_value + is_called::integer FROM %s', sequence) INTO number;
    RETURN number;
END $$;
REVOKE EXECUTE ON FUNCTION next_number FROM PUBLIC;
CALL grant_to('{system}', 'EXECUTE ON FUNCTION next_number');

-- Returns a sentence for each disabled trigger, each table without row-level security, and each
-- sequence whose next number is already in use. Logical replication causes the last fault, because
-- it copies tables but not sequences. The largest number in the table is read before the number of
-- the sequence, so a concurrent insert is not reported as a fault.
CREATE FUNCTION schema_faults() RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
DECLARE
    each record;
    largest bigint;
BEGIN
    IF current_setting('session_replication_role') = 'replica' THEN
        RETURN NEXT 'triggers do not run, since `session_replication_role` is `replica`: reset that setting';
    END IF;
    RETURN QUERY
        (SELECT format('the trigger `%s` of `%s` is disabled: as the owner of the database run '
                      'ALTER TABLE %I ENABLE TRIGGER %s', g.tgname, c.relname, c.relname,
                      CASE WHEN g.tgisinternal THEN 'ALL' ELSE quote_ident(g.tgname) END)
        FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
        WHERE c.relnamespace = 'public'::regnamespace AND g.tgenabled IN ('D', 'R')
        -- A change of a table also applies to its partitions.
        ORDER BY c.relispartition, c.relname, g.tgname)
        UNION ALL
        SELECT format('the trigger `log_change` of `%s` is missing: restore the database''s schema whole', t.name)
        FROM authority_tables t
        WHERE NOT EXISTS (SELECT FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
                          WHERE c.relname = t.name AND c.relnamespace = 'public'::regnamespace
                            AND g.tgname = 'log_change')
        UNION ALL
        SELECT DISTINCT format('row-level security of `%s` is off: as the owner of the database run '
                               'ALTER TABLE %1$I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', c.relname)
        FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE p.polname = 'tenant' AND c.relnamespace = 'public'::regnamespace
          AND NOT (c.relrowsecurity AND c.relforcerowsecurity);
    FOR each IN
        SELECT s.oid::regclass AS sequence, c.relname AS place, a.attname AS number
        FROM pg_depend d
        JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
        JOIN pg_class c ON c.oid = d.refobjid AND c.relnamespace = 'public'::regnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
        WHERE d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    LOOP
        EXECUTE format('SELECT max(%I) FROM public.%I', each.number, each.place) INTO largest;
        IF largest >= next_number(each.sequence) THEN
            RETURN NEXT format(
                'the numbers of `%1$s` go up to %2$s, and the next one would be no larger: as the owner of the '
                'database run SELECT setval(''%3$s'', %2$s)', each.place, largest, each.sequence);
        END IF;
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION schema_faults FROM PUBLIC;
CALL grant_to('{system}', 'EXECUTE ON FUNCTION schema_faults');
