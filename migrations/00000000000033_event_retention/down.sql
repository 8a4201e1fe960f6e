CALL revoke_from('{system}', 'SELECT ON time_partitions');
DROP FUNCTION drop_empty_event_partitions, drop_event_partition, old_event_partitions, events_kept_from;

DROP TRIGGER notify_people ON audit_cursors;
DROP TRIGGER notify_people ON webhook_replays;
DROP TRIGGER notify_people ON webhook_cursors;
CREATE TRIGGER notify_people AFTER UPDATE OF lost_to ON webhook_cursors
    FOR EACH ROW WHEN (NEW.lost_to IS NOT NULL AND NEW.lost_to IS DISTINCT FROM OLD.lost_to)
    EXECUTE FUNCTION notify_of_lost_events();
DROP FUNCTION notify_of_events_lost_to_stream, notify_of_events_lost_to_replay;

-- Row-level security hides all rows from the tables' owner.
CALL grant_to('{system}', 'DELETE ON notifications');
SELECT set_config('role', authority_role('system'), true);
DELETE FROM notifications WHERE kind = 'audit_stream.lost';
SELECT set_config('role', 'none', true);
CALL revoke_from('{system}', 'DELETE ON notifications');
ALTER TABLE notifications DROP CONSTRAINT notifications_kind_check;
ALTER TABLE notifications ADD CONSTRAINT notifications_kind_check CHECK (kind IN (
    'approval.opened', 'webhook_endpoint.created', 'webhook_endpoint.paused',
    'webhook_endpoint.disabled', 'webhook_endpoint.lost', 'audit_stream.stopped',
    'api_key.expiring', 'delegation.expiring', 'reality.drift_detected'));

ALTER TABLE webhook_replays DROP COLUMN lost_from, DROP COLUMN lost_to;
ALTER TABLE tenants DROP COLUMN event_retention_days, DROP COLUMN legal_hold;
