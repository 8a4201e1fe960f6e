DROP TABLE webhook_attempts, webhook_deliveries, webhook_replays, webhook_cursors;
DELETE FROM time_partitions WHERE table_name IN ('webhook_attempts', 'webhook_deliveries');
