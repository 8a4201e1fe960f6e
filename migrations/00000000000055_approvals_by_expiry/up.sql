-- Lists of a tenant's requests in the order of their expiry, as approvers read them. Those that expire are few.
CREATE INDEX CONCURRENTLY approvals_by_expiry ON approvals (tenant_id, expires_at, id)
    WHERE state IN ('pending', 'approved');
