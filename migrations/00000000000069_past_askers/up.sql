-- Rows from before migration 67: adds their askers, and validates the kinds of notifications.

-- Row-level security hides all rows from the tables' owner.
SELECT set_config('role', authority_role('system'), true);
INSERT INTO approval_askers (key_id, created_at, approval_id, tenant_id)
SELECT asker ->> 'id', a.created_at, a.id, a.tenant_id
FROM approvals a CROSS JOIN LATERAL unnest(a.requested_by) AS asker
WHERE asker ->> 'kind' = 'api_key'
ON CONFLICT DO NOTHING;
SELECT set_config('role', 'none', true);

ALTER TABLE notifications VALIDATE CONSTRAINT notifications_kind_check;
