-- Keys created on request had no date for their rotation. Sets it to 90 days after they became
-- active, as for all other keys.
UPDATE signing_keys SET rotation_due_at = activated_at + interval '90 days'
WHERE rotation_due_at IS NULL AND activated_at IS NOT NULL;
