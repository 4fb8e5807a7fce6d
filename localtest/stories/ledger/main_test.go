package main

import (
	"os"
	"testing"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/stories"
)

// The workers are processes of this test binary.
func TestMain(m *testing.M) {
	if stories.IsWorker() {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestAPausedWorkerCannotCorruptAGuardedLedger(t *testing.T) {
	stories.Test(t, stage(localtest.PostgresForTest(t)))
}
