ALTER TABLE reality_overrides DROP COLUMN makers;
