-- A person can have several subjects. People who made a request, or created or rotated a key, are
-- therefore also identified by the e-mail address in their token. For acts, this address is already
-- stored as `name`. The addresses have no other use and are not shown with the request.

ALTER TABLE approvals
    -- The addresses of the people in `requested_by`, as in their tokens.
    ADD COLUMN asker_emails text[] NOT NULL DEFAULT '{}';
CALL grant_to('{recorder}', 'SELECT (asker_emails) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (asker_emails) ON approvals');

ALTER TABLE api_keys
    -- The addresses of the people in `people`.
    ADD COLUMN people_emails text[] NOT NULL DEFAULT '{}';

-- Fills the new column from the history of each key. Its `created_by` and `rotated_by` are the
-- e-mail addresses of the people, if their tokens had one.
SELECT set_config('role', authority_role('system'), true);
SELECT set_config('authority.actor', 'agent-authority: migration 24', true);
UPDATE api_keys SET
    people_emails = ARRAY(
        SELECT DISTINCT called FROM record_versions,
            unnest(ARRAY[body ->> 'created_by', body ->> 'rotated_by']) AS called
        WHERE table_name = 'api_keys' AND entity_id = api_keys.id AND called <> ''
        ORDER BY called),
    updated_at = clock_timestamp()
WHERE people <> '{}';
RESET ROLE;
