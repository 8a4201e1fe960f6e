ALTER TABLE api_keys DROP COLUMN people_emails;
ALTER TABLE approvals DROP COLUMN asker_emails;
