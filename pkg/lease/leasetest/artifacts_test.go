package leasetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

func TestAHistoryThatIsNotLinearizableIsWrittenWithAPicture(t *testing.T) {
	artifacts := filepath.Join(t.TempDir(), "artifacts")
	t.Setenv("ARTIFACTS", artifacts)
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var h History
	for i, op := range []Op{
		{Kind: Acquire, Caller: 1, Lease: lease.Lease{Token: 17, ID: "secret"}},
		{Kind: Acquire, Caller: 2, Err: lease.ErrHeld},
		{Kind: Acquire, Caller: 3, Lease: lease.Lease{Token: 18}}, // while 17 is held
	} {
		op.Called, op.Ended = start.Add(time.Duration(2*i)*time.Second), start.Add(time.Duration(2*i+1)*time.Second)
		h.Add(op)
	}
	err := h.Linearizable(time.Minute)
	dirs, _ := filepath.Glob(filepath.Join(artifacts, "history-*"))
	if len(dirs) != 1 || err == nil || !strings.Contains(err.Error(), dirs[0]) {
		t.Fatalf("got error %v, directories %v, want the error to name the one", err, dirs)
	}
	text, err := os.ReadFile(filepath.Join(dirs[0], "history.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ops []written
	if err := json.Unmarshal(text, &ops); err != nil {
		t.Fatal(err)
	}
	if len(ops) != 3 || ops[0].Token != 17 || ops[1].Error != lease.ErrHeld.Error() || !ops[2].Called.Equal(start.Add(4*time.Second)) {
		t.Errorf("got %s", text)
	}
	picture, err := os.ReadFile(filepath.Join(dirs[0], "history.html"))
	if err != nil || !strings.Contains(string(picture), "caller 3: acquire token 18") {
		t.Errorf("got a picture of %d bytes, error %v, without the last acquire", len(picture), err)
	}
	if strings.Contains(string(text)+string(picture), "secret") {
		t.Error("the id of a lease was written")
	}
}
