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

func TestAPausedWorkerCannotReplaceAGuardedFilm(t *testing.T) {
	stage, err := stageOn(t.Context(), localtest.S3ForTest(t))
	if err != nil {
		t.Fatal(err)
	}
	stories.Test(t, stage)
}
