-- It is unknown which dates were missing before. Removes all dates of keys that were created on
-- request.
UPDATE signing_keys SET rotation_due_at = NULL WHERE NOT managed;
