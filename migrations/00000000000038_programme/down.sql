DROP TABLE lead_repeats, anonymous_calls, address_keys;
DROP TABLE leads, white_label_configs;
DROP FUNCTION certification_holds;
-- Their policies read the links.
DROP POLICY linked ON certifications;
DROP POLICY linked ON consultants;
DROP TABLE consultant_links, certifications, consultants;
