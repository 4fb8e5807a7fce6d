package main

import (
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/localtest"
)

func TestARestoreGoesAsTheStepsSay(t *testing.T) {
	t.Setenv("DYNAMODB_ENDPOINT", localtest.DynamoDBForTest(t).Endpoint)
	var out strings.Builder
	if err := rehearse(t.Context(), &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
