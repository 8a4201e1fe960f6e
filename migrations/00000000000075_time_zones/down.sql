DROP TRIGGER announce_time_zone ON tenants;
DROP FUNCTION announce_time_zone;
ALTER TABLE tenants DROP COLUMN time_zone;
