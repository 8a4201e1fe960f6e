-- The mends stand: an empty text is refused by every version that may read these rows.
SELECT 1;
