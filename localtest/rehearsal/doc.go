// Command rehearsal restores a backup on this machine, step by step as
// infra/README.md has them for AWS, and shows what each step is for:
//
//	make rehearse-restore
//
// The service is the compiled one. The backup is a copy of a table, so that a
// rehearsal does not show how long DynamoDB takes for its own.
package main
