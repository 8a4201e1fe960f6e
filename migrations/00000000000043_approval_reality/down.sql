ALTER TABLE approvals DROP COLUMN reality;
