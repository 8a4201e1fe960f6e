ALTER TABLE audit_streams ADD COLUMN cursor text;
DELETE FROM event_demands WHERE id IN (SELECT id FROM audit_streams);
DROP TABLE audit_cursors;
