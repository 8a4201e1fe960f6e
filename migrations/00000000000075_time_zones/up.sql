-- The time zone of each tenant, for policies that depend on the local time.

ALTER TABLE tenants
    -- An IANA name. The service checks it against its own zone data.
    ADD COLUMN time_zone text NOT NULL DEFAULT 'UTC';

-- A change is an event, because policies on the local time then apply at other times.
CREATE FUNCTION announce_time_zone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM announce(
        'svc.tenant.changed', NEW.id, NEW.id, NULL, event_actor(NEW.id), NULL, NULL,
        jsonb_build_object('setting', 'time_zone', 'before', OLD.time_zone, 'after', NEW.time_zone));
    RETURN NULL;
END $$;
CREATE TRIGGER announce_time_zone AFTER UPDATE OF time_zone ON tenants
    FOR EACH ROW WHEN (OLD.time_zone <> NEW.time_zone)
    EXECUTE FUNCTION announce_time_zone();
