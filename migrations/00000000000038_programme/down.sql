DROP TABLE lead_repeats, anonymous_calls, address_keys;
DROP TABLE leads, white_label_configs;
DROP FUNCTION certification_holds;
-- These policies read consultant_links, which is dropped below.
DROP POLICY linked ON certifications;
DROP POLICY linked ON consultants;
DROP TABLE consultant_links, certifications, consultants;
