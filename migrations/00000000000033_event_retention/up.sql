-- How long a tenant's events, deliveries and attempts are kept, and reports of events that were
-- deleted before a cursor reached them.

ALTER TABLE tenants
    ADD COLUMN event_retention_days integer NOT NULL DEFAULT 30
        CHECK (event_retention_days BETWEEN 14 AND 400),
    -- The legal hold, {reason}. While it is set, the tenant's data is not deleted by age.
    ADD COLUMN legal_hold jsonb CHECK (jsonb_typeof(legal_hold) = 'object');

-- Returns the time before which events are deleted, for a retention of this many days. It is the
-- start of a day in UTC. A tenant's rows are therefore deleted once a day. Each row is kept for at
-- least that many days, and for at most one more.
CREATE FUNCTION events_kept_from(days integer) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * days)
$$;

-- ## Lost events

-- The first and the last sequence of events that retention deleted before the replay reached them.
ALTER TABLE webhook_replays ADD COLUMN lost_from bigint, ADD COLUMN lost_to bigint;

ALTER TABLE notifications DROP CONSTRAINT notifications_kind_check;
ALTER TABLE notifications ADD CONSTRAINT notifications_kind_check CHECK (kind IN (
    'approval.opened', 'webhook_endpoint.created', 'webhook_endpoint.paused',
    'webhook_endpoint.disabled', 'webhook_endpoint.lost', 'audit_stream.stopped', 'audit_stream.lost',
    'api_key.expiring', 'delegation.expiring', 'reality.drift_detected'));

-- The new trigger also notifies when deliveries of deleted events are cancelled. Those events are
-- before the cursor's position.
DROP TRIGGER notify_people ON webhook_cursors;
CREATE TRIGGER notify_people AFTER UPDATE OF lost_from, lost_to ON webhook_cursors
    FOR EACH ROW
    WHEN (NEW.lost_to IS NOT NULL
          AND (NEW.lost_from, NEW.lost_to) IS DISTINCT FROM (OLD.lost_from, OLD.lost_to))
    EXECUTE FUNCTION notify_of_lost_events();

CREATE FUNCTION notify_of_events_lost_to_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'webhook_endpoint.lost', NEW.tenant_id, '{admin}', NEW.endpoint_id,
        jsonb_build_object('endpoint_id', NEW.endpoint_id, 'replay_id', NEW.id,
                           'lost_from', NEW.lost_from, 'lost_to', NEW.lost_to));
    RETURN NULL;
END $$;
CREATE TRIGGER notify_people AFTER UPDATE OF lost_to ON webhook_replays
    FOR EACH ROW WHEN (NEW.lost_to IS NOT NULL AND NEW.lost_to IS DISTINCT FROM OLD.lost_to)
    EXECUTE FUNCTION notify_of_events_lost_to_replay();

CREATE FUNCTION notify_of_events_lost_to_stream() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'audit_stream.lost', NEW.tenant_id, '{admin}', NEW.stream_id,
        jsonb_build_object('audit_stream_id', NEW.stream_id, 'lost_from', NEW.lost_from,
                           'lost_to', NEW.lost_to));
    RETURN NULL;
END $$;
CREATE TRIGGER notify_people AFTER UPDATE OF lost_to ON audit_cursors
    FOR EACH ROW WHEN (NEW.lost_to IS NOT NULL AND NEW.lost_to IS DISTINCT FROM OLD.lost_to)
    EXECUTE FUNCTION notify_of_events_lost_to_stream();

-- ## Partitions without rows

-- Returns the partitions of events, deliveries and attempts that have only ids from before the
-- shortest retention, with their bounds. `lower` is NULL for the first partition of a table.
CREATE FUNCTION old_event_partitions()
RETURNS TABLE (parent text, part regclass, lower text, upper text) LANGUAGE sql STABLE AS $$
    SELECT p.table_name, i.inhrelid::regclass, bound.texts[1], bound.texts[2]
    FROM time_partitions p
    JOIN pg_inherits i ON i.inhparent = p.table_name::regclass
    JOIN pg_class c ON c.oid = i.inhrelid
    CROSS JOIN LATERAL (SELECT regexp_match(
        pg_get_expr(c.relpartbound, c.oid),
        '^FOR VALUES FROM \((?:MINVALUE|''([^'']+)'')\) TO \(''([^'']+)''\)$') AS texts) AS bound
    WHERE p.table_name IN ('events', 'webhook_deliveries', 'webhook_attempts')
      AND bound.texts[2] COLLATE "C" <= time_bound(p.prefix, now() - interval '14 days') COLLATE "C"
$$;

-- Drops an old partition if it has no rows. Runs as the tables' owner, because the service may not
-- drop tables. The policies of a table hide all its rows from the owner. With row_security off,
-- reading such a table is an error. Hidden rows can therefore not be mistaken for an empty
-- partition.
CREATE FUNCTION drop_event_partition(part regclass) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET row_security = off SET lock_timeout = '200ms' AS $$
DECLARE
    parent text;
    found_id text;
BEGIN
    SELECT old.parent INTO parent FROM old_event_partitions() old
    WHERE old.part = drop_event_partition.part;
    IF parent IS NULL THEN
        RAISE '`%` is not an old partition of events or deliveries', part;
    END IF;
    -- Whoever writes waits for both locks, in this order. A long reader is not waited for: others would wait
    -- behind.
    EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', part);
    EXECUTE format('SELECT id FROM ONLY %s ORDER BY id LIMIT 1', part) INTO found_id;
    IF found_id IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE %s', part);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;

-- Drops all old partitions without rows, and returns their number. The caller sees every tenant's
-- rows, and checks for rows before locking.
CREATE FUNCTION drop_empty_event_partitions() RETURNS integer LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
DECLARE
    old record;
    found_id text;
    dropped integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(4157002);
    FOR old IN SELECT * FROM old_event_partitions() LOOP
        EXECUTE format(
            'SELECT id FROM %I WHERE id < %L AND (%L IS NULL OR id >= %L) ORDER BY id LIMIT 1',
            old.parent, old.upper, old.lower, old.lower) INTO found_id;
        IF found_id IS NULL AND drop_event_partition(old.part) THEN
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;
REVOKE EXECUTE ON FUNCTION drop_event_partition, drop_empty_event_partitions FROM PUBLIC;
CALL grant_to('{system}', 'EXECUTE ON FUNCTION drop_event_partition, drop_empty_event_partitions');
CALL grant_to('{system}', 'SELECT ON time_partitions');
