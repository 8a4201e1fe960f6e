-- Who may open a tenant's receipts: whoever has a decision's id, or its own credentials alone.
ALTER TABLE tenants ADD COLUMN receipts text NOT NULL DEFAULT 'public';
