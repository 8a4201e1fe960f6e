-- How long ago, in seconds, whoever approves may have signed in; any time where it is null.

ALTER TABLE tenants ADD COLUMN approval_max_auth_age_seconds integer
    CHECK (approval_max_auth_age_seconds BETWEEN 60 AND 86400);
