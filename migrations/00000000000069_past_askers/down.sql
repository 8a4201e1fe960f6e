-- They go with their table, and a constraint that was checked stays checked.
SELECT 1;
