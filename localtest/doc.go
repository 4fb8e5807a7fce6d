// Package localtest finds or starts the programs that tests and the local
// server need, and ends what it started.
//
// [StartDynamoDB] takes the first DynamoDB it can have: the one that
// DYNAMODB_ENDPOINT names, DynamoDB Local in DYNAMODB_LOCAL_HOME, Docker, or
// dynoxide. It proves that the engine does what the lease protocol relies on
// before anyone uses it, and refuses an engine that does not. In a test,
// [DynamoDBForTest] does the same once for the whole test binary. PostgreSQL,
// MariaDB, Redis and S3 are found or started in the same way, each by a variable
// that names the user's own. A test installs nothing: [Install] does, for the
// programs that say what they do.
//
// What is started here dies with this process, however that ends. That is
// promised for Linux and macOS; the package does not build for Windows. The
// engines keep no backups and check no credentials: they are for tests and for
// trying things out, not for locks that anything depends on.
package localtest
