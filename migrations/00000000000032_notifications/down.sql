DROP TRIGGER notify_people ON approvals;
DROP TRIGGER notify_people_created ON webhook_endpoints;
DROP TRIGGER notify_people_stopped ON webhook_endpoints;
DROP TRIGGER notify_people ON webhook_cursors;
DROP TRIGGER notify_people ON audit_streams;
DROP INDEX api_keys_expiring;
DELETE FROM time_partitions WHERE table_name IN ('notifications', 'notification_reads');
DROP TABLE notifications, notification_reads, expiry_notices;
DROP FUNCTION notify_people, notify_of_approval, notify_of_endpoint, notify_of_lost_events, notify_of_stream,
    notify_of_expiries, drop_old_notifications;
