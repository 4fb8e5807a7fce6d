-- A plain comparison with NULL is never true: these columns are not nullable.
ALTER TABLE {table}
	ADD COLUMN fence_lock  VARBINARY(576) NOT NULL DEFAULT '',
	ADD COLUMN fence_token BIGINT NOT NULL DEFAULT 0;
