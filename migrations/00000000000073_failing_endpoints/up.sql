-- Endpoints that fail are announced, once for each outage: with the fifth failure in a row, and with
-- the first delivery that used up its attempts.

-- The time of that delivery; NULL after a success.
ALTER TABLE webhook_cursors ADD COLUMN dead_since timestamptz;

ALTER TABLE notifications DROP CONSTRAINT notifications_kind_check;
ALTER TABLE notifications ADD CONSTRAINT notifications_kind_check CHECK (kind IN (
    'approval.opened', 'approval.limit_reached', 'webhook_endpoint.created', 'webhook_endpoint.paused',
    'webhook_endpoint.failing', 'webhook_endpoint.dead', 'webhook_endpoint.disabled',
    'webhook_endpoint.lost', 'audit_stream.stopped', 'audit_stream.lost', 'audit_stream.failing',
    'api_key.expiring', 'delegation.expiring', 'reality.drift_detected')) NOT VALID;

CREATE FUNCTION announce_failing_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    about CONSTANT jsonb := jsonb_build_object(
        'endpoint_id', NEW.endpoint_id, 'failing_since', event_time(NEW.failing_since));
BEGIN
    PERFORM notify_people(
        'webhook_endpoint.' || TG_ARGV[0], NEW.tenant_id, '{admin}', NEW.endpoint_id, about);
    PERFORM announce(
        'svc.webhook_endpoint.' || TG_ARGV[0], NEW.tenant_id, NEW.endpoint_id, NEW.endpoint_id,
        NULL, NULL, NULL, about);
    RETURN NULL;
END $$;
CREATE TRIGGER announce_failing AFTER UPDATE OF breaker ON webhook_cursors
    FOR EACH ROW WHEN (OLD.breaker = 'closed' AND NEW.breaker = 'open')
    EXECUTE FUNCTION announce_failing_endpoint('failing');
CREATE TRIGGER announce_dead AFTER UPDATE OF dead_since ON webhook_cursors
    FOR EACH ROW WHEN (OLD.dead_since IS NULL AND NEW.dead_since IS NOT NULL)
    EXECUTE FUNCTION announce_failing_endpoint('dead');
