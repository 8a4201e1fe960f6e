-- The rows are deleted with their table, and a validated constraint can stay validated.
SELECT 1;
