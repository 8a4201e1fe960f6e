-- Roles belong to the whole cluster while migrations run in each of its databases, at times side by
-- side: hence outside the migrations, and unmoved by another session that was quicker.
DO $$
DECLARE
    name text;
    login text := current_setting('authority.login');
BEGIN
    FOREACH name IN ARRAY ARRAY['authority_tenant', 'authority_system', 'authority_recorder'] LOOP
        BEGIN
            IF to_regrole(name) IS NULL THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT', name);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
        END;
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_auth_members
                           WHERE roleid = to_regrole(name) AND member = to_regrole(quote_ident(login)))
            THEN
                EXECUTE format('GRANT %I TO %I', name, login);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
        END;
    END LOOP;
END $$;
