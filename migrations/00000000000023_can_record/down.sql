DROP FUNCTION can_record;
