package rigor

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// A verdict is a test that is told how to end.
type verdict struct {
	testing.TB
	skipped, failed string
}

func (v *verdict) Helper() {}

func (v *verdict) Skipf(format string, args ...any) {
	v.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (v *verdict) Fatal(args ...any) { v.Fatalf("%s", fmt.Sprint(args...)) }

// judge lets a test run to its end.
func judge(test func(t testing.TB)) *verdict {
	v, done := new(verdict), make(chan struct{})
	go func() {
		defer close(done)
		test(v)
	}()
	<-done
	return v
}

func TestATestThatLacksSomethingIsSkippedLoudlyAndFailsUnderCI(t *testing.T) {
	lacking := func(t testing.TB) { Lacking(t, errors.New("no Redis: set REDIS_ADDR")) }
	for ci, fails := range map[string]bool{
		"": false, "0": false, "false": false, "FALSE": false,
		"1": true, "true": true, "TRUE": true, "yes": true, "woodpecker": true,
	} {
		t.Setenv("CI", ci)
		v := judge(lacking)
		if (v.failed != "") != fails || (v.skipped != "") == fails {
			t.Errorf("CI=%s: skipped %q, failed %q", ci, v.skipped, v.failed)
		}
		if !strings.Contains(v.failed+v.skipped, "REDIS_ADDR") || !fails && !strings.HasPrefix(v.skipped, "SKIPPED") {
			t.Errorf("CI=%s: skipped %q, failed %q", ci, v.skipped, v.failed)
		}
	}
}

func TestAProgramThatIsNotThereIsLacking(t *testing.T) {
	t.Setenv("CI", "")
	if v := judge(func(t testing.TB) { Program(t, "no-such-program") }); !strings.Contains(v.skipped, "no-such-program") {
		t.Errorf("skipped %q, failed %q", v.skipped, v.failed)
	}
	var got string
	if v := judge(func(t testing.TB) { got = Program(t, "go") }); v.skipped+v.failed != "" {
		t.Errorf("skipped %q, failed %q", v.skipped, v.failed)
	}
	if want, err := exec.LookPath("go"); err != nil || got != want {
		t.Errorf("got %s, want %s, error %v", got, want, err)
	}
}

func TestRoundsIsANumberOfAtLeastOne(t *testing.T) {
	for rounds, want := range map[string]int{"": 1, "1": 1, "20": 20, "0": 0, "-1": 0, "many": 0, "1.5": 0} {
		t.Setenv("ROUNDS", rounds)
		got := 0
		v := judge(func(t testing.TB) { got = Rounds(t) })
		if got != want || (v.failed != "") != (want == 0) {
			t.Errorf("ROUNDS=%s: got %d, failed %q, want %d", rounds, got, v.failed, want)
		}
	}
}
