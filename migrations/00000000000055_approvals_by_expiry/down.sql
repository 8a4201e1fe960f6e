DROP INDEX approvals_by_expiry;
