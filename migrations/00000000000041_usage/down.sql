DROP INDEX delegations_live_children;
DROP TABLE usage_cursor;
DROP TABLE usage_days;
