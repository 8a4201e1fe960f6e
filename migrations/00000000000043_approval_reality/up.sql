-- The reality findings that held an action, as of the opening of the approval request.
ALTER TABLE approvals ADD COLUMN reality jsonb[] NOT NULL DEFAULT '{}';
