ALTER TABLE tenants DROP COLUMN approval_max_auth_age_seconds;
