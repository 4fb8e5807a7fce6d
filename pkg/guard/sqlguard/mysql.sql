CREATE DATABASE IF NOT EXISTS {schema};

-- The largest token of each lock, and since when. Only Prune deletes rows. Names
-- are bytes: no collation takes two of them for one. It takes InnoDB to lock a row.
CREATE TABLE IF NOT EXISTS {schema}.fence (
	`lock` VARBINARY(576) PRIMARY KEY,
	token  BIGINT NOT NULL,
	since  BIGINT NOT NULL -- seconds since 1970
) ENGINE = InnoDB;

-- The locks that share each resource, in the order of their names, one a line.
CREATE TABLE IF NOT EXISTS {schema}.binding (
	resource VARBINARY(576) PRIMARY KEY,
	locks    VARBINARY(8192) NOT NULL
) ENGINE = InnoDB;
