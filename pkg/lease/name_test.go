package lease_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/leasetest"
)

func TestANameSplitsAtItsFirstSlash(t *testing.T) {
	for full, want := range map[string]lease.Name{
		"a/b":                                 {Namespace: "a", Lock: "b"},
		"a/b/c":                               {Namespace: "a", Lock: "b/c"},
		"a//":                                 {Namespace: "a", Lock: "/"},
		"a/b#c":                               {Namespace: "a", Lock: "b#c"},
		"tenant-1/ ":                          {Namespace: "tenant-1", Lock: " "},
		strings.Repeat("a", 63) + "/b":        {Namespace: strings.Repeat("a", 63), Lock: "b"},
		"0/" + strings.Repeat("\u00e9", 256):  {Namespace: "0", Lock: strings.Repeat("\u00e9", 256)},
		"a/e\u0301 is not the same as \u00e9": {Namespace: "a", Lock: "e\u0301 is not the same as \u00e9"},
	} {
		if got, err := lease.ParseName(full); got != want || err != nil {
			t.Errorf("%q: got %+v, error %v", full, got, err)
		}
	}
}

func TestWhatNamesNoLockIsRefused(t *testing.T) {
	for full, field := range map[string]string{
		"":                              "lock",
		"a":                             "lock",
		"a/":                            "lock",
		"/b":                            "namespace",
		"A/b":                           "namespace",
		"a_b/c":                         "namespace",
		"a#b/c":                         "namespace",
		"a.b/c":                         "namespace",
		"-a/b":                          "namespace",
		"a-/b":                          "namespace",
		"é/b":                           "namespace",
		strings.Repeat("a", 64) + "/b":  "namespace",
		"a/" + strings.Repeat("b", 513): "lock",
		"a/b\x00":                       "lock",
		"a/b\n":                         "lock",
		"a/b\x7f":                       "lock",
		"a/b\u0085":                     "lock",
		"a/\xff":                        "lock",
	} {
		_, err := lease.ParseName(full)
		var detail *lease.InvalidError
		if !errors.As(err, &detail) || detail.Field != field {
			t.Errorf("%q: got %v, want it refused for %s", full, err, field)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, lock := range leasetest.Locks {
		f.Add("a/" + lock)
	}
	f.Add("a#b/c")
	f.Fuzz(func(t *testing.T, full string) {
		n, err := lease.ParseName(full)
		if err != nil {
			return
		}
		if n.String() != full {
			t.Errorf("%q came back as %q", full, n)
		}
		if again, err := lease.ParseName(n.String()); again != n || err != nil {
			t.Errorf("%+v: got %+v, error %v", n, again, err)
		}
		if strings.ContainsAny(n.Namespace, "/#") {
			t.Errorf("the namespace %q can be mixed up with the lock", n.Namespace)
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add("a", "b/c")
	f.Add("a/b", "c")
	f.Fuzz(func(t *testing.T, namespace, lock string) {
		n := lease.Name{Namespace: namespace, Lock: lock}
		got, err := lease.ParseName(n.String())
		if valid := n.Validate() == nil; valid && (err != nil || got != n) {
			t.Errorf("%+v: got %+v, error %v", n, got, err)
		}
	})
}
