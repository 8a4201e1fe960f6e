-- Checks and sets the session settings that the service's guarantees depend on. Defaults of the
-- database, its roles or the server's configuration may have changed them. `{kind}` is the kind of
-- role that the session has taken, or empty without a role.
DO $$
DECLARE
    kind text := '{kind}';
    wanted record;
    given text;
    path text[];
    remedy text;
    fault text;
BEGIN
    FOR wanted IN VALUES
        ('session_replication_role', 'origin',
         'triggers do not run, so that a revocation or a stop would be answered and ignored'),
        ('row_security', 'on', 'rows that tenants are kept apart by cannot be read'),
        ('default_transaction_read_only', 'off', 'nothing can be recorded')
    LOOP
        given := current_setting(wanted.column1);
        IF given <> wanted.column2 THEN
            fault := format('the setting `%s` is `%s`, with which %s: it must be `%s`; ',
                            wanted.column1, given, wanted.column3, wanted.column2);
            EXIT;
        END IF;
    END LOOP;

    path := current_schemas(true);
    IF path[1] LIKE 'pg_temp%' THEN
        path := path[2:];
    END IF;
    IF fault IS NULL AND path[1:2] IS DISTINCT FROM ARRAY['pg_catalog', 'public']::name[]::text[]
       AND has_schema_privilege('public', 'USAGE') THEN
        wanted.column1 := 'search_path';
        fault := format('the setting `search_path` is `%s`, in which the schema `public` is not the first: tables and '
                        'functions would be missing, or be others; ', current_setting('search_path'));
    END IF;
    IF fault IS NOT NULL THEN
        remedy := CASE wanted.column1 WHEN 'search_path' THEN 'SET search_path = public'
                                      ELSE 'RESET ' || wanted.column1 END;
        SELECT fault || CASE
            WHEN source = 'client' THEN format('take `%s` out of `options` in the database''s URL', name)
            WHEN source = 'user' THEN format('run ALTER ROLE %I %s', session_user, remedy)
            WHEN source = 'database user' THEN
                format('run ALTER ROLE %I IN DATABASE %I %s', session_user, current_database(), remedy)
            WHEN source = 'global' THEN format('run ALTER ROLE ALL %s', remedy)
            WHEN source = 'database' OR name = 'search_path' THEN
                format('run ALTER DATABASE %I %s', current_database(), remedy)
            ELSE format('run ALTER SYSTEM %s, take it out of postgresql.conf, and run SELECT pg_reload_conf()', remedy)
            END
        INTO fault FROM pg_settings WHERE name = wanted.column1;
    ELSIF kind = '' AND current_user <> session_user THEN
        fault := format('the login `%s` works as `%s` from the start: run ALTER ROLE %I RESET role, or ALTER DATABASE '
                        '%I RESET role', session_user, current_user, session_user, current_database());
    ELSIF kind <> '' THEN
        SELECT CASE
            WHEN rolname <> public.authority_role(kind) THEN
                format('the session works as `%s` instead of `%s`', rolname, public.authority_role(kind))
            WHEN rolsuper OR rolbypassrls THEN
                format('the role `%s` bypasses row-level security: run ALTER ROLE %1$I NOSUPERUSER NOBYPASSRLS', rolname)
            ELSE (SELECT format('the role `%s` has the rights of `%s`: run REVOKE %I FROM %I',
                                r.rolname, more.rolname, more.rolname, r.rolname)
                  FROM pg_auth_members m JOIN pg_roles more ON more.oid = m.roleid
                  WHERE m.member = r.oid LIMIT 1) END
        INTO fault FROM pg_roles r WHERE rolname = current_user;
    END IF;
    IF fault IS NOT NULL THEN
        RAISE '%', fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A later reload of the server's configuration does not change them in this session.
    PERFORM set_config('search_path', current_setting('search_path'), false), set_config('row_security', 'on', false);
END $$;
