-- Roles belong to the whole cluster while migrations run in each of its databases, at times side by
-- side: hence outside the migrations, and unmoved by another session that was quicker.
DO $$
DECLARE
    name text;
    login text := current_setting('authority.login');
    is_16 boolean := current_setting('server_version_num')::integer >= 160000;
BEGIN
    FOREACH name IN ARRAY ARRAY['authority_tenant', 'authority_system', 'authority_recorder'] LOOP
        BEGIN
            IF to_regrole(name) IS NULL THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT', name);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
        END;
        BEGIN
            -- To be taken by SET ROLE alone: who forgets it sees nothing. Before 16 only the
            -- login's own NOINHERIT says so.
            IF is_16 AND NOT pg_has_role(login, name, 'SET') THEN
                EXECUTE format('GRANT %I TO %I WITH INHERIT FALSE, SET TRUE', name, login);
            ELSIF NOT is_16 AND NOT pg_has_role(login, name, 'MEMBER') THEN
                EXECUTE format('GRANT %I TO %I', name, login);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
        END;
    END LOOP;
END $$;
