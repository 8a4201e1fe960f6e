-- A stop signal or quarantine that holds is `active`, as every other record in force.
ALTER TABLE stop_signals DROP CONSTRAINT stop_signals_state_check;
ALTER TABLE quarantines DROP CONSTRAINT quarantines_state_check;
UPDATE stop_signals SET state = 'active' WHERE state = 'standing';
UPDATE quarantines SET state = 'active' WHERE state = 'standing';
-- The change log's triggers wait for the commit, and no table is altered before them.
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE stop_signals
    ADD CONSTRAINT stop_signals_state_check CHECK (state IN ('active', 'lifted'));
ALTER TABLE quarantines
    ADD CONSTRAINT quarantines_state_check CHECK (state IN ('active', 'released'));
