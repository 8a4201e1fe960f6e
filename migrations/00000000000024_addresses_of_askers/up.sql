-- One human may have several subjects: whoever asked, made or rotated a key is told by the e-mail address
-- of their token, too. An act has it as its `name`. Nothing else is done with these, and nobody is shown
-- them beside the question.

ALTER TABLE approvals
    -- Of the people in `requested_by`, as their tokens wrote them.
    ADD COLUMN asker_emails text[] NOT NULL DEFAULT '{}';
CALL grant_to('{recorder}', 'SELECT (asker_emails) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (asker_emails) ON approvals');

ALTER TABLE api_keys
    -- Of the people in `people`.
    ADD COLUMN people_emails text[] NOT NULL DEFAULT '{}';

-- The history has who made a key and who rotated it by what they are called: an address where their
-- token had one.
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
