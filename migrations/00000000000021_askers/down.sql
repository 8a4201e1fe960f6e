DROP FUNCTION hold_fence(boolean);
ALTER TABLE tenants DROP COLUMN self_approval;
ALTER TABLE api_keys DROP COLUMN people, DROP COLUMN rotated_by;
ALTER TABLE approvals DROP COLUMN eligible, DROP COLUMN requested_by;
