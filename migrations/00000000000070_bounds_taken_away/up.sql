-- Removing a bound from an API key or a purpose is an event, because the key or purpose then
-- permits more.

-- Arguments: the kind of record, and the columns with its bounding lists. An empty list is no
-- bound.
CREATE FUNCTION announce_unbound() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was jsonb := to_jsonb(OLD);
    present jsonb := to_jsonb(NEW);
    bound text;
BEGIN
    FOREACH bound IN ARRAY TG_ARGV[1:] LOOP
        IF was -> bound <> '[]' AND present -> bound = '[]' THEN
            PERFORM announce(
                'svc.capability.granted', NEW.tenant_id, NEW.id, NULL, event_actor(NEW.tenant_id),
                NULL, NULL,
                jsonb_build_object('kind', TG_ARGV[0], 'authority_id', NEW.id, 'holder_id', NEW.id,
                                   'allowed', true, 'unbound', bound));
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER announce_unbound AFTER UPDATE OF principal_ids, ip_allowlist ON api_keys
    FOR EACH ROW WHEN (OLD.principal_ids <> NEW.principal_ids OR OLD.ip_allowlist <> NEW.ip_allowlist)
    EXECUTE FUNCTION announce_unbound('api_key', 'principal_ids', 'ip_allowlist');
CREATE TRIGGER announce_unbound AFTER UPDATE OF principal_classes, jurisdictions ON purposes
    FOR EACH ROW
    WHEN (OLD.principal_classes <> NEW.principal_classes OR OLD.jurisdictions <> NEW.jurisdictions)
    EXECUTE FUNCTION announce_unbound('purpose', 'principal_classes', 'jurisdictions');
