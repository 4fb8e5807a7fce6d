package localtest

import (
	"context"
	"sync"
	"testing"
)

var dynamoDBForTest = sync.OnceValues(func() (*DynamoDB, error) {
	return StartDynamoDB(context.Background(), "")
})

// DynamoDBForTest returns the engine that all tests of this test binary share,
// in memory; each test makes its own tables. The engine ends with the binary.
// Where there is no DynamoDB to be had it skips the test, but under CI it
// fails: a silent skip is how coverage dies.
func DynamoDBForTest(t testing.TB) *DynamoDB {
	t.Helper()
	d, err := dynamoDBForTest()
	skipWithout(t, err, errNoDynamoDB)
	return d
}
