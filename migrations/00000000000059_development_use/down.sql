DROP TABLE development_use;
