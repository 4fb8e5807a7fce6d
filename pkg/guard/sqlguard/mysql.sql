-- The largest token of each lock. Rows are never deleted. Names are bytes: no
-- collation takes two of them for one. It takes InnoDB to lock a row.
CREATE TABLE IF NOT EXISTS fence (
	`lock` VARBINARY(576) PRIMARY KEY,
	token  BIGINT NOT NULL
) ENGINE = InnoDB;
-- The lock of each resource, for Bind. Rows are never deleted.
CREATE TABLE IF NOT EXISTS fence_binding (
	resource VARBINARY(576) PRIMARY KEY,
	`lock`   VARBINARY(576) NOT NULL
) ENGINE = InnoDB;
