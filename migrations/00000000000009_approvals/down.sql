DROP TABLE counters, approval_acts;
ALTER TABLE delegations DROP COLUMN standing;
CALL revoke_from('{tenant}', 'UPDATE ON approvals');
DROP INDEX approvals_page, approvals_page_all, approvals_due;
ALTER TABLE approvals
    DROP COLUMN given, DROP COLUMN acts, DROP COLUMN used_by, DROP COLUMN updated_at;
