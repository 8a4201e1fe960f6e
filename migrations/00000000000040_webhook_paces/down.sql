ALTER TABLE webhook_cursors ADD COLUMN paced_until timestamptz;
DROP TABLE webhook_paces;
