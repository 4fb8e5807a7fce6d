-- The largest token of each lock. Rows are never deleted.
CREATE TABLE IF NOT EXISTS fence (
	lock  text COLLATE "C" PRIMARY KEY,
	token bigint NOT NULL
);
-- The lock of each resource, for Bind. Rows are never deleted.
CREATE TABLE IF NOT EXISTS fence_binding (
	resource text COLLATE "C" PRIMARY KEY,
	lock     text COLLATE "C" NOT NULL
);
