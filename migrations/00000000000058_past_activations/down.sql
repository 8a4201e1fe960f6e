-- They go with their table.
SELECT 1;
