-- The rows are deleted with their table.
SELECT 1;
