ALTER TABLE tenants DROP COLUMN approval_ttl_seconds, DROP COLUMN cite_ready_approval;
ALTER TABLE approval_acts DISABLE TRIGGER append_only;
DELETE FROM approval_acts WHERE round > 0 OR withdraws;
ALTER TABLE approval_acts ENABLE TRIGGER append_only;
ALTER TABLE approval_acts
    DROP CONSTRAINT approval_acts_pkey,
    DROP COLUMN round,
    DROP COLUMN withdraws,
    ADD PRIMARY KEY (about, person);
DROP INDEX approvals_by_question;
ALTER TABLE approvals DROP COLUMN authority, DROP COLUMN policies;
