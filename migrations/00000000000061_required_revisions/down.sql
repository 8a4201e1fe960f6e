DROP FUNCTION schema_faults, next_number, require_revisions;

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
    END IF;
    RETURN NULL;
END $$;

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
    END IF;
END $$;

DROP TABLE authority_tables;
