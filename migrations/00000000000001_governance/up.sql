-- Definitions that the other files use for their tables: rights, row-level security, history, the
-- log of changes to authority, append-only rules. A file creates a table and then calls:
--
--   CALL govern('tools');                        -- records: rights, row-level security, history
--   CALL govern('principals', authority => true) -- and each change goes to authority_changes
--   CALL govern('tenants', true, 'id');          -- the column that names a row's tenant
--   CALL govern('api_keys', true,
--       secret => '{secret_code}',               -- columns kept out of the history
--       quiet => '{last_used_at}');              -- a change of these columns alone is not recorded
--   CALL append_only('decisions');               -- rights to read and insert only
--   CALL may_erase('decisions', '{context}');    -- these columns of an append-only table can be erased
--   CALL may_remove('decisions');                -- archived rows of an append-only table can be removed
--   CALL partition_by_time('decisions', 'svc:decision:');  -- ranges of a time-ordered id
--   CALL guard('record_versions');               -- only row-level security; grant rights separately
--   CALL grant_to('{tenant,system}', 'SELECT ON counters');  -- rights by kind of role
--
-- Roles belong to the whole PostgreSQL cluster. Each database therefore has three roles of its own.
-- crates/store/src/roles.sql creates the roles and the function authority_role(kind), which
-- returns the name of this database's role of a kind. The kinds are:
--   tenant    sees the rows of one tenant, which the setting `authority.tenant` names
--   system    sees all tenants; used by the graph's tail, workers and the owner's lists
--   recorder  writes decisions and related rows for many tenants at once
-- The tables' owner is a different role. Unless it is a superuser, it sees no rows: a migration
-- that changes rows first runs SELECT set_config('role', authority_role('system'), true).

-- Some functions below run with their owner's rights and find objects in this schema first. Other
-- roles must therefore not be able to create objects in it.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;

-- ## Rights

-- The names of the roles, quoted for GRANT.
CREATE FUNCTION role_list(VARIADIC kinds text[]) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(quote_ident(authority_role(kind)), ', ') FROM unnest(kinds) AS kind
$$;

CREATE PROCEDURE grant_to(kinds text[], rights text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT %s TO %s', rights, role_list(VARIADIC kinds));
END $$;

CREATE PROCEDURE revoke_from(kinds text[], rights text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('REVOKE %s FROM %s', rights, role_list(VARIADIC kinds));
END $$;

CALL grant_to('{tenant,system,recorder}', 'USAGE ON SCHEMA public');

-- ## Row-level security

-- The setting `authority.tenant` is NULL if no transaction of the session has set it yet, and ''
-- after a transaction that set it. Neither value is a tenant.
CREATE FUNCTION may_see(tenant text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT tenant = nullif(current_setting('authority.tenant', true), '')
$$;

CREATE PROCEDURE guard(name regclass, tenant text DEFAULT 'tenant_id') LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON %s TO %s USING (may_see(%I))',
                   name, role_list('tenant'), tenant);
    EXECUTE format('CREATE POLICY every_tenant ON %s TO %s USING (true)',
                   name, role_list('system', 'recorder'));
END $$;

-- ## History

CREATE TABLE record_versions (
    version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_name text COLLATE "C" NOT NULL,
    entity_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C",
    actor text NOT NULL,
    valid_from timestamptz NOT NULL,
    -- The end, exclusive; NULL for the current version.
    valid_to timestamptz,
    -- NULL in the version that marks a deletion. That version starts and ends at the same time.
    body jsonb
);
CREATE INDEX record_versions_as_of ON record_versions (entity_id, valid_from DESC, version DESC);
CREATE UNIQUE INDEX record_versions_present ON record_versions (table_name, entity_id)
    WHERE valid_to IS NULL;
CREATE INDEX record_versions_tenant ON record_versions (tenant_id, version DESC);

-- Runs as its owner, because the service may not write the history. Arguments: the tenant's column,
-- the columns to leave out of the history, and the columns to ignore: changing only these creates
-- no version.
CREATE FUNCTION keep_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    was jsonb := to_jsonb(OLD);
    is_now jsonb := to_jsonb(NEW);
    subject jsonb := coalesce(is_now, was);
    moment timestamptz := clock_timestamp();
    before timestamptz;
BEGIN
    IF is_now - TG_ARGV[2]::text[] = was - TG_ARGV[2]::text[] THEN
        RETURN NULL;
    END IF;
    IF is_now ->> TG_ARGV[0] IS DISTINCT FROM was ->> TG_ARGV[0] AND TG_OP = 'UPDATE' THEN
        RAISE 'a record of `%` cannot move to another tenant', TG_TABLE_NAME
            USING ERRCODE = 'restrict_violation';
    END IF;
    -- The new version never starts before the previous one, even if the machine's clock was set
    -- back.
    SELECT valid_from INTO before FROM record_versions
    WHERE table_name = TG_TABLE_NAME AND entity_id = subject ->> 'id' AND valid_to IS NULL;
    moment := greatest(moment, before);
    UPDATE record_versions SET valid_to = moment
    WHERE table_name = TG_TABLE_NAME AND entity_id = subject ->> 'id' AND valid_to IS NULL;
    INSERT INTO record_versions
        (table_name, entity_id, tenant_id, actor, valid_from, valid_to, body)
    VALUES (TG_TABLE_NAME, subject ->> 'id', subject ->> TG_ARGV[0],
            coalesce(nullif(current_setting('authority.actor', true), ''),
                     'database:' || session_user),
            moment, CASE TG_OP WHEN 'DELETE' THEN moment END, is_now - TG_ARGV[1]::text[]);
    RETURN NULL;
END $$;

-- ## The log of changes to authority

CREATE TABLE tenant_revisions (
    tenant_id text COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE authority_changes (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    tenant_revision bigint NOT NULL,
    table_name text COLLATE "C" NOT NULL,
    entity_id text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL
);
CREATE UNIQUE INDEX authority_changes_tenant ON authority_changes (tenant_id, tenant_revision);

-- Runs just before the commit, as a deferred trigger. It takes one lock for all tenants and then
-- assigns the number. The lock is released after the commit is visible. Numbers therefore become
-- visible in order: if a reader has read up to a number, it has missed no earlier change. The
-- revision is raised for each change, not once for each transaction. A reader that has read only
-- some changes of a transaction therefore has a lower revision and is known to be behind. It is
-- an error if a rule or another trigger suppresses the insert into authority_changes.
-- Arguments: the tenant's column, and the columns to ignore: changing only these is not logged.
CREATE FUNCTION log_change() RETURNS trigger
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

-- Runs after all deferred triggers above. Only the last change of a tenant in a transaction writes
-- the tenant's revision: writing it for each change would leave many dead row versions.
CREATE FUNCTION raise_revision() RETURNS trigger
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
CREATE CONSTRAINT TRIGGER raise_revision AFTER INSERT ON authority_changes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION raise_revision();

-- Returns the current revision of each tenant. The revisions can't change until this transaction
-- ends. The lock is taken first, and the revisions are then read in a separate statement, with a
-- snapshot that is newer than the lock.
CREATE FUNCTION fence(tenants text[]) RETURNS TABLE (tenant_id text, revision bigint)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE 'the fence needs READ COMMITTED: an older snapshot would hide changes';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(4157001);
    RETURN QUERY
        SELECT asked.tenant, coalesce(t.revision, 0)
        FROM unnest(tenants) AS asked (tenant)
        LEFT JOIN tenant_revisions t ON t.tenant_id = asked.tenant;
END $$;

-- Locks the fence: the authority for checking a person's act can't change until this transaction
-- ends. Revisions must be read in a later statement, with a snapshot that is newer than the
-- lock. An act that itself changes authority sets `alone`: two such acts with a shared lock would
-- deadlock at commit.
CREATE FUNCTION hold_fence(alone boolean) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF alone THEN
        PERFORM pg_advisory_xact_lock(4157001);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(4157001);
    END IF;
END $$;

-- ## Records

-- The tables that `govern` has made part of authority, even if their triggers have changed since.
CREATE TABLE authority_tables (
    name text COLLATE "C" PRIMARY KEY
);

CREATE PROCEDURE govern(
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

-- A change of authority takes effect through triggers, which write it to the change log and raise
-- the tenant's revision. If a trigger is disabled, or `session_replication_role` is `replica`, the
-- change is stored but never takes effect. Each transaction that changed a table of authority
-- therefore checks just before its commit that a revision was raised.
--
-- Raises the revisions of this transaction now instead of at its commit. Fails if a table of
-- authority was changed but its triggers can't raise a revision. The counters of changed rows may
-- still include an earlier transaction of the session, because Postgres resets them up to a second
-- after the commit. A table that only that earlier transaction changed is then
-- checked again, which does no harm. If `track_counts` is off, every table counts as changed.
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
    -- The constraints are set one after the other, so that a tenant's revision is written once for
    -- all of its changes.
    SET CONSTRAINTS public.log_change IMMEDIATE;
    SET CONSTRAINTS public.raise_revision IMMEDIATE;
END $$;

-- ## Append-only tables

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'table `%` is append-only: % is refused', TG_TABLE_NAME, lower(TG_OP)
        USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'append_only';
END $$;

-- Partitions inherit row triggers, but not truncation triggers.
CREATE PROCEDURE refuse_truncation(name regclass) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON %s
                    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
END $$;

CREATE PROCEDURE append_only(name regclass, tenant text DEFAULT 'tenant_id') LANGUAGE plpgsql AS $$
DECLARE
    part regclass;
BEGIN
    CALL guard(name, tenant);
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %s
                    FOR EACH ROW EXECUTE FUNCTION refuse_change()', name);
    EXECUTE format('REVOKE ALL ON %s FROM PUBLIC', name);
    CALL grant_to('{tenant,system,recorder}', format('SELECT, INSERT ON %s', name));
    CALL refuse_truncation(name);
    FOR part IN SELECT relid FROM pg_partition_tree(name) WHERE relid <> name LOOP
        CALL refuse_truncation(part);
    END LOOP;
END $$;

-- ## Append-only tables with columns that can be erased

-- Whether erasing writes this value to a column.
CREATE FUNCTION is_erased(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT value IS NULL OR value IN ('', '\x') OR value ~ '^erased($|[:|])' OR value LIKE '%@erased.invalid'
$$;

-- Refuses all changes except erasing. Argument: the columns that can be erased. In a trigger that
-- runs before the row is written, generated columns are still NULL. They are therefore not compared.
-- No statement can set them, and the columns that they are computed from are compared.
CREATE FUNCTION refuse_all_but_erasing() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    erasable CONSTANT text[] := TG_ARGV[0]::text[];
    generated CONSTANT text[] := ARRAY(
        SELECT attname::text FROM pg_attribute WHERE attrelid = TG_RELID AND attgenerated <> '');
    was CONSTANT jsonb := to_jsonb(OLD);
    is_now CONSTANT jsonb := to_jsonb(NEW);
BEGIN
    IF TG_OP = 'UPDATE' AND was - erasable - generated = is_now - erasable - generated AND NOT EXISTS (
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

-- ## Append-only tables with rows that can be archived

-- Whether the functions of the archive are removing this tenant's rows. Other rows cannot be
-- deleted.
CREATE FUNCTION is_removing(tenant text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(tenant = nullif(current_setting('authority.removing', true), ''), false)
$$;

CREATE FUNCTION refuse_all_but_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF is_removing(OLD.tenant_id) THEN
        RETURN OLD;
    END IF;
    RAISE 'table `%` is append-only: delete is refused', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'append_only';
END $$;

-- Permits deletions by the functions of the archive; updates are still refused. The policy lets the
-- tables' owner see the rows that it removes.
CREATE PROCEDURE may_remove(name regclass) LANGUAGE plpgsql AS $$
DECLARE
    was CONSTANT text := pg_get_triggerdef(oid) FROM pg_trigger
        WHERE tgrelid = name AND tgname = 'append_only';
    made CONSTANT text := replace(was, 'BEFORE DELETE OR UPDATE ON', 'BEFORE UPDATE ON');
BEGIN
    IF made IS NOT DISTINCT FROM was THEN
        RAISE '`%` is not append-only', name;
    END IF;
    EXECUTE format('DROP TRIGGER append_only ON %s', name);
    EXECUTE made;
    EXECUTE format('CREATE TRIGGER append_only_delete BEFORE DELETE ON %s
                    FOR EACH ROW EXECUTE FUNCTION refuse_all_but_removal()', name);
    EXECUTE format('CREATE POLICY bookkeeping ON %s TO CURRENT_USER USING (is_removing(tenant_id))', name);
END $$;

-- ## Partitions by time-ordered id

-- Tables partitioned by range of an id `<prefix><12 hex digits of milliseconds>…`.
CREATE TABLE time_partitions (
    table_name text COLLATE "C" PRIMARY KEY,
    prefix text COLLATE "C" NOT NULL,
    span text NOT NULL CHECK (span IN ('month', 'week')),
    -- The time up to which partitions exist.
    made_until timestamptz NOT NULL
);

CREATE FUNCTION time_bound(prefix text, at timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT prefix || lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0')
$$;

-- The partition is created as a separate table and then attached. Inserts into the parent continue
-- in the meantime. PostgreSQL compresses the columns of a row until the row is shorter than 2 KiB.
-- Many decisions are slightly longer, and compressing one took about 12 µs. Rows up to 4 KiB
-- therefore stay uncompressed.
CREATE PROCEDURE attach_time_partition(name text, part text, lower text, upper text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS
                    INCLUDING GENERATED INCLUDING STORAGE %s) WITH (toast_tuple_target = 4080)',
                   part, name, CASE WHEN current_setting('server_version_num')::integer >= 140000
                                    THEN 'INCLUDING COMPRESSION' ELSE '' END);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%L)',
                   name, part, lower, upper);
    IF EXISTS (SELECT FROM pg_trigger
               WHERE tgrelid = format('%I', name)::regclass
                 AND tgname = 'append_only_truncate') THEN
        CALL refuse_truncation(format('%I', part)::regclass);
    END IF;
END $$;

-- New partitions do not inherit statistics targets. A target of -1 (NULL since PostgreSQL 17) means
-- the server's default.
CREATE PROCEDURE add_time_partition(name text, part text, lower text, upper text)
LANGUAGE plpgsql AS $$
DECLARE
    col record;
BEGIN
    CALL attach_time_partition(name, part, lower, upper);
    FOR col IN SELECT attname, attstattarget FROM pg_attribute
               WHERE attrelid = format('%I', name)::regclass AND attnum > 0 AND NOT attisdropped
                 AND attstattarget >= 0 LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS %s',
                       part, col.attname, col.attstattarget);
    END LOOP;
END $$;

-- Creates the partitions for ids before `until`, and returns their number. They are made only
-- three months ahead: a transaction that reads all partitions locks each of them, and would exceed
-- its limit of locks with partitions for many years. Runs as the tables' owner, because the service may
-- not create tables. For safety it uses only the names in time_partitions, which migrations wrote.
CREATE FUNCTION extend_partitions(until timestamptz DEFAULT now() + interval '3 months')
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    each time_partitions;
    next timestamptz;
    made integer := 0;
BEGIN
    IF until > now() + interval '2 years' THEN
        RAISE 'partitions until % are not made: that is over 2 years ahead', until;
    END IF;
    PERFORM pg_advisory_xact_lock(4157002);
    FOR each IN SELECT * FROM time_partitions WHERE made_until <= until LOOP
        WHILE each.made_until <= until LOOP
            next := each.made_until + ('1 ' || each.span)::interval;
            CALL add_time_partition(
                each.table_name,
                each.table_name || '_' || to_char(each.made_until, 'YYYYMMDD'),
                quote_literal(time_bound(each.prefix, each.made_until)),
                time_bound(each.prefix, next));
            each.made_until := next;
            made := made + 1;
        END LOOP;
        UPDATE time_partitions SET made_until = each.made_until
        WHERE table_name = each.table_name;
    END LOOP;
    RETURN made;
END $$;

-- Registers a table with PARTITION BY RANGE (id), and creates its first partitions: one for all ids
-- before the current month or week, and the partitions that extend_partitions adds.
CREATE PROCEDURE partition_by_time(name text, prefix text, span text DEFAULT 'month')
LANGUAGE plpgsql SET timezone = 'UTC' AS $$
DECLARE
    first timestamptz := date_trunc(span, now());
BEGIN
    INSERT INTO time_partitions VALUES (name, prefix, span, first);
    CALL add_time_partition(name, name || '_before', 'MINVALUE', time_bound(prefix, first));
    PERFORM extend_partitions();
END $$;

-- ## Erasure

-- Removes fields from every version of a record, to erase personal data that was removed from it.
-- Called with a tenant's role, it changes only that tenant's records.
CREATE FUNCTION forget(entity text, members text[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    changed bigint;
BEGIN
    UPDATE record_versions SET body = body - members
    WHERE entity_id = entity AND body ?| members
      AND (may_see(tenant_id) OR current_setting('role') = authority_role('system'));
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN changed;
END $$;

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
        -- Tables come first: ALTER TABLE on a table also applies to its partitions.
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

-- ## Rights of these tables

CALL guard('record_versions');
CALL guard('authority_changes');
CALL guard('tenant_revisions');
-- The triggers write these three tables as the owner. FORCE ROW LEVEL SECURITY applies to the owner
-- as well. The owner therefore needs a policy.
CREATE POLICY bookkeeping ON record_versions TO CURRENT_USER USING (true);
CREATE POLICY bookkeeping ON authority_changes TO CURRENT_USER USING (true);
CREATE POLICY bookkeeping ON tenant_revisions TO CURRENT_USER USING (true);
CALL grant_to('{tenant,system}', 'SELECT ON record_versions, authority_changes');
CALL grant_to('{tenant,system,recorder}', 'SELECT ON tenant_revisions');
CALL grant_to('{system}', 'SELECT ON authority_tables, time_partitions');

REVOKE EXECUTE ON FUNCTION fence, hold_fence, require_revisions, extend_partitions, forget, next_number,
    schema_faults FROM PUBLIC;
CALL grant_to('{recorder,system}', 'EXECUTE ON FUNCTION fence');
CALL grant_to('{tenant,system}', 'EXECUTE ON FUNCTION hold_fence, require_revisions, forget');
CALL grant_to('{system}', 'EXECUTE ON FUNCTION extend_partitions, next_number, schema_faults');
