-- The longest time since an approver's sign-in, in seconds; NULL means no limit.

ALTER TABLE tenants ADD COLUMN approval_max_auth_age_seconds integer
    CHECK (approval_max_auth_age_seconds BETWEEN 60 AND 86400);
