-- Which dates were missing is not known any more.
UPDATE signing_keys SET rotation_due_at = NULL WHERE NOT managed;
