DROP TRIGGER delete_push_subscriptions ON principals;
DROP TRIGGER delete_push_subscriptions ON tenants;
DROP FUNCTION delete_push_subscriptions, delete_push_subscriptions_of_person;
ALTER TABLE notifications DROP COLUMN xact;
DROP TABLE push_subscriptions, push_cursor;
