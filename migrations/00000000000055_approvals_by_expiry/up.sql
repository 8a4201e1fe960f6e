-- Lists of a tenant's requests in the order of their expiry, as approvers read them.
-- exception: it has only the requests that can expire, and reading a million of all takes about a second; CONCURRENTLY
-- would leave an invalid index where it is interrupted, which a migration cannot replace in one statement.
CREATE INDEX approvals_by_expiry ON approvals (tenant_id, expires_at, id)
    WHERE state IN ('pending', 'approved');
