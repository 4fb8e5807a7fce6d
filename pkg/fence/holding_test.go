package fence

import (
	"errors"
	"strings"
	"testing"
)

func TestOnlyWhatALockCanBeCalledIsAName(t *testing.T) {
	for name, want := range map[string]bool{
		"": false, "a": true, "payments/日本 🔒 e\u0301": true, strings.Repeat("n", MaxLock): true,
		strings.Repeat("n", MaxLock+1): false, "a/\xff": false, "a/\xed\xa0\x80": false, "a/\x00": false, "a/\n": false,
		"a/\x7f": false, "a/\u0085": false, "a/\u202e": true, " ": true,
	} {
		if err := CheckLock(name); want != (err == nil) || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%.20q: got error %v", name, err)
		}
	}
}

func TestAHoldingIsSomebodysOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		h    Holding
		want bool
	}{
		"one lock":                {Holding{Lock: "a/b", Token: 1}, true},
		"two":                     {Holding{Lock: "a/b", Token: 1, With: map[string]Token{"a/c": Max}}, true},
		"nobody's":                {Holding{}, false},
		"no token":                {Holding{Lock: "a/b"}, false},
		"no name":                 {Holding{Token: 1}, false},
		"too large a token":       {Holding{Lock: "a/b", Token: Max + 1}, false},
		"a second without token":  {Holding{Lock: "a/b", Token: 1, With: map[string]Token{"a/c": 0}}, false},
		"a second without a name": {Holding{Lock: "a/b", Token: 1, With: map[string]Token{"": 1}}, false},
		"two tokens of a lock":    {Holding{Lock: "a/b", Token: 1, With: map[string]Token{"a/b": 2}}, false},
	} {
		if err := c.h.Check(); c.want != (err == nil) || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got error %v", name, err)
		}
		if _, err := c.h.Declare(nil, "row"); c.want != (err == nil) {
			t.Errorf("%s: declared with error %v", name, err)
		}
	}
}

func TestWhatIsDeclaredMustHaveAllThatIsBound(t *testing.T) {
	h := Holding{Lock: "a", Token: 5}
	for name, c := range map[string]struct {
		locks []string
		seen  map[string]Token
		want  error
	}{
		"nothing is bound":             {nil, nil, nil},
		"the same":                     {nil, map[string]Token{"a": 5}, nil},
		"a newer one was seen":         {nil, map[string]Token{"a": 6}, ErrStale},
		"another":                      {nil, map[string]Token{"b": 1}, ErrOtherLock},
		"another beside it":            {nil, map[string]Token{"a": 5, "b": 0}, ErrOtherLock},
		"it is not declared":           {[]string{"b"}, nil, ErrOtherLock},
		"more is declared":             {[]string{"b", "a"}, map[string]Token{"a": 5}, nil},
		"more is declared, all others": {[]string{"b", "a"}, map[string]Token{"b": 9}, nil},
		"less is declared":             {[]string{"b", "a"}, map[string]Token{"a": 5, "b": 9, "c": 0}, ErrOtherLock},
		"a name that is none":          {[]string{"a", "\n"}, nil, ErrInvalid},
	} {
		declared, err := h.Declare(c.locks, "row")
		if err == nil {
			err = h.Admit(declared, c.seen, "row")
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", name, err, c.want)
		}
	}
}

func TestARefusalSaysThatItMayBeAppliedUnlessThatIsKnown(t *testing.T) {
	for _, err := range []error{
		&StaleError{Lock: "a", Token: 1, Seen: 2, Resource: "row"},
		&OtherLockError{Lock: "a", Bound: "b", Resource: "row"},
	} {
		if !strings.Contains(err.Error(), Maybe) {
			t.Errorf("%v does not say it", err)
		}
		if err := Settled(err); strings.Contains(err.Error(), Maybe) || !Refused(err) {
			t.Errorf("%v says it although it is known", err)
		}
	}
	if Refused(ErrNotApplied) || Settled(nil) != nil {
		t.Error("what is no refusal was taken for one")
	}
}
