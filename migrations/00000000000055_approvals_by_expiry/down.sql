DROP INDEX CONCURRENTLY approvals_by_expiry;
