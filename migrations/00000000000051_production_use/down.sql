DROP FUNCTION is_production;
DROP TABLE production_use;
