DROP TRIGGER announce_dead ON webhook_cursors;
DROP TRIGGER announce_failing ON webhook_cursors;
DROP FUNCTION announce_failing_endpoint;

-- Row-level security hides all rows from the owner.
CALL grant_to('{system}', 'DELETE ON notifications');
SELECT set_config('role', authority_role('system'), true);
DELETE FROM notifications WHERE kind IN ('webhook_endpoint.failing', 'webhook_endpoint.dead');
SELECT set_config('role', 'none', true);
CALL revoke_from('{system}', 'DELETE ON notifications');
ALTER TABLE notifications DROP CONSTRAINT notifications_kind_check;
ALTER TABLE notifications ADD CONSTRAINT notifications_kind_check CHECK (kind IN (
    'approval.opened', 'approval.limit_reached', 'webhook_endpoint.created', 'webhook_endpoint.paused',
    'webhook_endpoint.disabled', 'webhook_endpoint.lost', 'audit_stream.stopped', 'audit_stream.lost',
    'audit_stream.failing', 'api_key.expiring', 'delegation.expiring', 'reality.drift_detected'));

ALTER TABLE webhook_cursors DROP COLUMN dead_since;
