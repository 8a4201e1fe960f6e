-- Endpoints that are paused on request, lists of replays, and why audit streams fail.

-- The reason that the caller stated when pausing the endpoint. It is cleared when the endpoint is
-- enabled or deleted.
ALTER TABLE webhook_endpoints ADD COLUMN pause_reason text;

CREATE FUNCTION clear_pause_reason() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.pause_reason := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER clear_pause_reason BEFORE UPDATE OF state ON webhook_endpoints
    FOR EACH ROW WHEN (NEW.state <> 'paused') EXECUTE FUNCTION clear_pause_reason();

-- For lists of an endpoint's replays, newest first.
CREATE INDEX webhook_replays_page ON webhook_replays (endpoint_id, id);

-- ## Why a sink refuses messages

ALTER TABLE audit_cursors
    -- The time and the error of the last failure.
    ADD COLUMN failed_at timestamptz,
    ADD COLUMN last_error text,
    -- The failures of checkpoints, which are retried separately.
    ADD COLUMN checkpoint_failures integer NOT NULL DEFAULT 0,
    ADD COLUMN checkpoint_failed_at timestamptz,
    ADD COLUMN checkpoint_error text;

-- Whether a checkpoint that the sink refused may be retried now: after 1, 2, 4 seconds and so on,
-- up to a minute. Events are sent independently of it.
CREATE FUNCTION may_try_checkpoint(failures integer, failed_at timestamptz) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT failures = 0
        OR failed_at + least(60, 2 ^ least(failures - 1, 6)) * interval '1 s' <= clock_timestamp()
$$;

ALTER TABLE notifications DROP CONSTRAINT notifications_kind_check;
ALTER TABLE notifications ADD CONSTRAINT notifications_kind_check CHECK (kind IN (
    'approval.opened', 'webhook_endpoint.created', 'webhook_endpoint.paused',
    'webhook_endpoint.disabled', 'webhook_endpoint.lost', 'audit_stream.stopped', 'audit_stream.lost',
    'audit_stream.failing', 'api_key.expiring', 'delegation.expiring', 'reality.drift_detected'));

CREATE FUNCTION notify_of_failing_stream() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'audit_stream.failing', NEW.tenant_id, '{admin}', NEW.stream_id,
        jsonb_build_object(
            'audit_stream_id', NEW.stream_id,
            'failures', greatest(NEW.failures, NEW.checkpoint_failures)));
    RETURN NULL;
END $$;
-- Notifies once for each outage: at the fifth failure in a row, after about 15 seconds.
CREATE TRIGGER notify_people_failing AFTER UPDATE OF failures, checkpoint_failures ON audit_cursors
    FOR EACH ROW
    WHEN (greatest(OLD.failures, OLD.checkpoint_failures) < 5
          AND greatest(NEW.failures, NEW.checkpoint_failures) >= 5)
    EXECUTE FUNCTION notify_of_failing_stream();
