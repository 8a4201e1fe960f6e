-- The repairs are kept. Every version of the service that may read these rows refuses an empty
-- text.
SELECT 1;
