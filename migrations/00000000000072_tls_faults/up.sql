-- Attempts now show why TLS failed. The new check accepts every value that the old check accepted.
-- Existing rows therefore need not be validated.
ALTER TABLE webhook_attempts DROP CONSTRAINT webhook_attempts_error_class_check;
ALTER TABLE webhook_attempts ADD CONSTRAINT webhook_attempts_error_class_check
    CHECK (error_class IN ('address', 'connect', 'tls_expired', 'tls_not_yet_valid', 'tls_name', 'tls_authority', 'tls_version',
        'tls_protocol', 'tls_client_certificate', 'tls', 'timeout', 'http')) NOT VALID;
