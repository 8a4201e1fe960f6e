-- Who may open a tenant's receipts: anyone with a decision's id, or only the tenant's own credentials.
ALTER TABLE tenants ADD COLUMN receipts text NOT NULL DEFAULT 'public';
