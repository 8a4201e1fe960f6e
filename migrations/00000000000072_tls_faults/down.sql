ALTER TABLE webhook_attempts DROP CONSTRAINT webhook_attempts_error_class_check;
ALTER TABLE webhook_attempts ADD CONSTRAINT webhook_attempts_error_class_check
    CHECK (error_class IN ('address', 'connect', 'tls', 'timeout', 'http')) NOT VALID;
