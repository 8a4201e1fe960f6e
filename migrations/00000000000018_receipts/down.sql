ALTER TABLE tenants DROP COLUMN receipts;
