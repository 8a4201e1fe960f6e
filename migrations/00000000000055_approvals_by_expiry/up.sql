-- Lists of a tenant's requests in the order of their expiry, as approvers read them.
-- exception: it has only the requests that can expire, and reading a million requests takes about a
-- second. CONCURRENTLY would leave an invalid index if it is interrupted, and a migration cannot
-- replace that index in one statement.
CREATE INDEX approvals_by_expiry ON approvals (tenant_id, expires_at, id)
    WHERE state IN ('pending', 'approved');
