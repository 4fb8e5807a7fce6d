-- A plain comparison with NULL is never true: these columns are not nullable.
ALTER TABLE {table}
	ADD COLUMN fence_lock  text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN fence_token bigint NOT NULL DEFAULT 0;
