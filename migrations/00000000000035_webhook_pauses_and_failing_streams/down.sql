DROP TRIGGER notify_people_failing ON audit_cursors;
DROP FUNCTION notify_of_failing_stream, may_try_checkpoint;

-- Row-level security hides all rows from the tables' owner.
CALL grant_to('{system}', 'DELETE ON notifications');
SELECT set_config('role', authority_role('system'), true);
DELETE FROM notifications WHERE kind = 'audit_stream.failing';
SELECT set_config('role', 'none', true);
CALL revoke_from('{system}', 'DELETE ON notifications');
ALTER TABLE notifications DROP CONSTRAINT notifications_kind_check;
ALTER TABLE notifications ADD CONSTRAINT notifications_kind_check CHECK (kind IN (
    'approval.opened', 'webhook_endpoint.created', 'webhook_endpoint.paused',
    'webhook_endpoint.disabled', 'webhook_endpoint.lost', 'audit_stream.stopped', 'audit_stream.lost',
    'api_key.expiring', 'delegation.expiring', 'reality.drift_detected'));

ALTER TABLE audit_cursors
    DROP COLUMN failed_at, DROP COLUMN last_error, DROP COLUMN checkpoint_failures,
    DROP COLUMN checkpoint_failed_at, DROP COLUMN checkpoint_error;
DROP INDEX webhook_replays_page;
DROP TRIGGER clear_pause_reason ON webhook_endpoints;
DROP FUNCTION clear_pause_reason;
ALTER TABLE webhook_endpoints DROP COLUMN pause_reason;
