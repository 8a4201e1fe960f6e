-- Creates the three roles that the service uses in this database. Roles belong to the whole
-- cluster, and their names contain the database's name: another database's start can never grant
-- them to its own login. This script is not a migration. It runs before the migrations each time,
-- because the database may have been copied, renamed, or restored from a dump.
--
-- Settings: authority.login, the serving login; authority.role_suffix, the end of the roles' names
-- (roles.rs).

-- ## Names

DO $$
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION public.authority_role(kind text) RETURNS text
         LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS %L',
        format('SELECT %L || kind || %L', 'authority_', '_' || current_setting('authority.role_suffix')));
END $$;

-- ## The roles and their members

-- The members are the serving login and the owner: migrations that change rows also take a role.
DO $$
DECLARE
    name text;
    member text;
    tried text;
    login text := current_setting('authority.login');
    is_16 boolean := current_setting('server_version_num')::integer >= 160000;
BEGIN
    IF to_regrole(quote_ident(login)) IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = format(
            'the login "%s", which is to serve, does not exist; as a superuser run: '
            'CREATE ROLE %I LOGIN NOINHERIT PASSWORD ''…''', login, login);
    END IF;
    FOREACH name IN ARRAY ARRAY[authority_role('tenant'), authority_role('system'),
                                authority_role('recorder')] LOOP
        BEGIN
            tried := format('CREATE ROLE %I NOLOGIN NOINHERIT', name);
            IF to_regrole(quote_ident(name)) IS NULL THEN
                EXECUTE tried;
            END IF;
            FOREACH member IN ARRAY ARRAY[current_user, login] LOOP
                -- The role takes effect only by SET ROLE. A session without it cannot see any rows.
                -- Before PostgreSQL 16, only the login's own NOINHERIT ensures that.
                tried := format('GRANT %I TO %I', name, member);
                IF is_16 AND NOT pg_has_role(member, name, 'SET') THEN
                    tried := tried || ' WITH INHERIT FALSE, SET TRUE';
                    EXECUTE tried;
                ELSIF NOT is_16 AND NOT pg_has_role(member, name, 'MEMBER') THEN
                    EXECUTE tried;
                END IF;
            END LOOP;
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE insufficient_privilege USING MESSAGE = format(
                'the database role "%s" may not make the roles that the service takes in the database '
                '"%s": `%s` was refused (%s); as a superuser run `ALTER ROLE %I CREATEROLE`, migrate once '
                'and take it away again (NOCREATEROLE), or run what was refused, and the same for the '
                'other two of authority_tenant, authority_system and authority_recorder',
                current_user, current_database(), tried, SQLERRM, current_user);
        END;
    END LOOP;
    -- The schema has the function that returns the roles' names. Every session calls it before SET
    -- ROLE.
    FOREACH member IN ARRAY ARRAY[current_user, login] LOOP
        IF NOT has_schema_privilege(member, 'public', 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA public TO %I', member);
        END IF;
    END LOOP;
END $$;

-- ## Copied, restored and renamed databases

-- Their policies and rights still refer to the roles of the original database, and its login could
-- use them. They are moved to this database's own roles.
DO $$
DECLARE
    kind text;
    former record;
    each record;
BEGIN
    FOREACH kind IN ARRAY ARRAY['tenant', 'system', 'recorder'] LOOP
        FOR former IN
            SELECT DISTINCT r.oid, r.rolname, authority_role(kind) AS own
            FROM pg_policy p
            JOIN pg_class c ON c.oid = p.polrelid AND c.relnamespace = 'public'::regnamespace
            JOIN pg_roles r ON r.oid = ANY (p.polroles)
            WHERE p.polname IN ('tenant', 'every_tenant')
              AND starts_with(r.rolname, 'authority_' || kind || '_')
              AND r.rolname <> authority_role(kind)
        LOOP
            FOR each IN
                SELECT p.polname, p.polrelid::regclass AS place, string_agg(quote_ident(
                    CASE r.oid WHEN former.oid THEN former.own ELSE r.rolname END), ', ') AS roles
                FROM pg_policy p JOIN pg_roles r ON r.oid = ANY (p.polroles)
                WHERE former.oid = ANY (p.polroles)
                GROUP BY p.oid
            LOOP
                EXECUTE format('ALTER POLICY %I ON %s TO %s', each.polname, each.place, each.roles);
            END LOOP;
            FOR each IN
                SELECT string_agg(a.privilege_type || place.columns, ', ') AS rights, place.object
                FROM (
                    SELECT '' AS columns, relacl AS acl,
                           CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END
                           || pg_class.oid::regclass AS object
                    FROM pg_class
                    UNION ALL
                    SELECT format(' (%I)', attname), attacl, 'TABLE ' || attrelid::regclass
                    FROM pg_attribute WHERE NOT attisdropped
                    UNION ALL
                    SELECT '', proacl, 'ROUTINE ' || pg_proc.oid::regprocedure FROM pg_proc
                    UNION ALL
                    SELECT '', nspacl, format('SCHEMA %I', nspname) FROM pg_namespace
                ) AS place, aclexplode(place.acl) AS a
                WHERE a.grantee = former.oid
                GROUP BY place.object
            LOOP
                EXECUTE format('GRANT %s ON %s TO %I', each.rights, each.object, former.own);
                EXECUTE format('REVOKE %s ON %s FROM %I', each.rights, each.object, former.rolname);
            END LOOP;
            -- Otherwise the next database with that name would get these roles and their members.
            IF NOT EXISTS (SELECT FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass
                                                     AND refobjid = former.oid) THEN
                BEGIN
                    EXECUTE format('DROP ROLE %I', former.rolname);
                EXCEPTION WHEN insufficient_privilege THEN
                END;
            END IF;
        END LOOP;
    END LOOP;
    -- The triggers' functions run as the tables' owner, which may differ from the owner in the
    -- dump.
    FOR each IN
        SELECT c.oid::regclass AS place, c.relowner::regrole AS keeper
        FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE p.polname = 'bookkeeping' AND c.relnamespace = 'public'::regnamespace
          AND p.polroles <> ARRAY[c.relowner]
    LOOP
        EXECUTE format('ALTER POLICY bookkeeping ON %s TO %s', each.place, each.keeper);
    END LOOP;
    IF to_regclass('public.record_versions') IS NOT NULL AND 3 > (
        SELECT count(*) FROM pg_policy WHERE polrelid = to_regclass('public.record_versions')) THEN
        RAISE 'this database was restored where the roles of its dump were missing, so its rights are '
              'gone: make these roles (pg_dumpall --roles-only), and restore it into an empty one';
    END IF;
END $$;

-- ## Connections

-- In a new database, every role of the cluster may connect.
DO $$
DECLARE
    member text;
BEGIN
    IF has_database_privilege('public', current_database(), 'CONNECT') THEN
        EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database());
    END IF;
    FOREACH member IN ARRAY ARRAY[current_user, current_setting('authority.login')] LOOP
        IF NOT has_database_privilege(member, current_database(), 'CONNECT') THEN
            EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), member);
        END IF;
    END LOOP;
END $$;
