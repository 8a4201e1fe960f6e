ALTER TABLE stop_signals DROP CONSTRAINT stop_signals_state_check;
ALTER TABLE quarantines DROP CONSTRAINT quarantines_state_check;
UPDATE stop_signals SET state = 'standing' WHERE state = 'active';
UPDATE quarantines SET state = 'standing' WHERE state = 'active';
-- The change log's triggers wait for the commit, and no table is altered before them.
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE stop_signals
    ADD CONSTRAINT stop_signals_state_check CHECK (state IN ('standing', 'lifted'));
ALTER TABLE quarantines
    ADD CONSTRAINT quarantines_state_check CHECK (state IN ('standing', 'released'));
