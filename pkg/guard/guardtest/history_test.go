package guardtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// at gives an op its time, in seconds.
func (o op) at(called, ended time.Duration) op {
	o.called, o.ended = called*time.Second, ended*time.Second
	return o
}

func TestAHistoryTellsWhatMustNeverHappen(t *testing.T) {
	wrote := func(token fence.Token, text string) op { return op{kind: writing, token: token, text: text} }
	deleted := func(token fence.Token) op { return op{kind: deleting, token: token} }
	claimed := func(token fence.Token) op { return op{kind: claiming, token: token} }
	read := func(text string) op { return op{kind: reading, text: text, found: true} }
	none := op{kind: reading}
	failed := func(o op, err error) op { o.err = err; return o }
	stale := func(o op, seen fence.Token) op {
		return failed(o, &fence.StaleError{Token: o.token, Seen: seen})
	}
	lost := errors.New("the answer was lost")

	for name, c := range map[string]struct {
		want string // of what check says
		ops  []op
	}{
		"nothing":                            {"", []op{none.at(0, 1)}},
		"a write":                            {"", []op{wrote(1, "a").at(0, 1), read("a").at(2, 3)}},
		"a later, higher token":              {"", []op{wrote(1, "a").at(0, 1), wrote(2, "b").at(2, 3), read("b").at(4, 5)}},
		"a lower token at the same time":     {"", []op{wrote(1, "a").at(0, 2), wrote(2, "b").at(1, 3), read("b").at(4, 5)}},
		"a lower token afterwards":           {"accepted: write", []op{wrote(2, "b").at(0, 1), wrote(1, "a").at(2, 3), read("a").at(4, 5)}},
		"a lower token after a claim":        {"accepted: write", []op{claimed(2).at(0, 1), wrote(1, "a").at(2, 3), read("a").at(4, 5)}},
		"a lower delete afterwards":          {"accepted: delete", []op{wrote(2, "b").at(0, 1), deleted(1).at(2, 3), none.at(4, 5)}},
		"a lower claim afterwards":           {"accepted: claim", []op{wrote(2, "b").at(0, 1), claimed(1).at(2, 3), read("b").at(4, 5)}},
		"a refusal":                          {"", []op{wrote(2, "b").at(0, 1), stale(wrote(1, "a"), 2).at(2, 3), read("b").at(4, 5)}},
		"a refusal because of a lost answer": {"", []op{failed(wrote(2, "b"), lost).at(0, 1), stale(wrote(1, "a"), 2).at(2, 3), read("b").at(4, 5)}},
		"a refusal of the newest":            {"without a reason", []op{wrote(2, "b").at(0, 1), stale(wrote(3, "c"), 2).at(2, 3), read("b").at(4, 5)}},
		"a refusal of an equal token":        {"without a reason", []op{wrote(2, "b").at(0, 1), stale(wrote(2, "c"), 2).at(2, 3), read("b").at(4, 5)}},
		"a refusal before the higher one":    {"without a reason", []op{stale(wrote(1, "a"), 2).at(0, 1), wrote(2, "b").at(2, 3), read("b").at(4, 5)}},
		"a refusal for one that was refused": {"without a reason", []op{wrote(3, "c").at(0, 1), stale(wrote(2, "b"), 3).at(2, 3), stale(wrote(1, "a"), 2).at(4, 5), read("c").at(6, 7)}},
		"a refusal for one not applied":      {"without a reason", []op{failed(wrote(2, "b"), fence.ErrNotApplied).at(0, 1), stale(wrote(1, "a"), 2).at(2, 3), none.at(4, 5)}},
		"a refusal with a number of nobody":  {"without a reason", []op{wrote(3, "c").at(0, 1), stale(wrote(1, "a"), 2).at(2, 3), read("c").at(4, 5)}},
		"another lock":                       {"something else", []op{failed(wrote(1, "a"), fence.ErrOtherLock).at(0, 1), none.at(2, 3)}},
		"an invalid token":                   {"something else", []op{failed(wrote(1, "a"), fence.ErrInvalid).at(0, 1), none.at(2, 3)}},
		"a read of what nobody wrote":        {"nobody had written", []op{read("a").at(0, 1), none.at(2, 3)}},
		"a read from the future":             {"nobody had written", []op{read("a").at(0, 1), wrote(1, "a").at(2, 3), read("a").at(4, 5)}},
		"a read of what was refused":         {"comes from", []op{claimed(2).at(0, 1), stale(wrote(1, "a"), 2).at(2, 9), read("a").at(4, 5), none.at(10, 11)}},
		"a read of what was replaced":        {"comes from", []op{wrote(1, "a").at(0, 1), wrote(2, "b").at(2, 3), read("a").at(4, 5), read("b").at(6, 7)}},
		"a read of what is being replaced":   {"", []op{wrote(1, "a").at(0, 1), wrote(2, "b").at(2, 9), read("a").at(4, 5), read("b").at(10, 11)}},
		"a read of what was deleted":         {"comes from", []op{wrote(1, "a").at(0, 1), deleted(2).at(2, 3), read("a").at(4, 5), none.at(6, 7)}},
		"a read that failed":                 {"", []op{failed(none, lost).at(0, 1), none.at(2, 3)}},
		"the last of one token":              {"", []op{wrote(1, "a").at(0, 1), wrote(1, "b").at(2, 3), read("b").at(4, 5)}},
		"not the last of one token":          {"the end is", []op{wrote(1, "a").at(0, 1), wrote(1, "b").at(2, 3), read("a").at(4, 5)}},
		"a text that is gone":                {"the end is", []op{wrote(1, "a").at(0, 1), none.at(2, 3)}},
		"a text that should be gone":         {"the end is", []op{wrote(1, "a").at(0, 1), deleted(1).at(2, 3), read("a").at(4, 5)}},
		"a claim by a higher token":          {"", []op{wrote(1, "a").at(0, 1), claimed(2).at(2, 3), read("a").at(4, 5)}},
		"a lost answer that was applied":     {"", []op{wrote(1, "a").at(0, 1), failed(wrote(2, "b"), lost).at(2, 3), read("b").at(4, 5)}},
		"a lost answer that was not":         {"", []op{wrote(1, "a").at(0, 1), failed(wrote(2, "b"), lost).at(2, 3), read("a").at(4, 5)}},
		"a lost answer of a lower token":     {"comes from", []op{failed(wrote(1, "a"), lost).at(0, 9), wrote(2, "b").at(1, 2), read("a").at(10, 11)}},
		"a lost delete of a lower token":     {"the end is", []op{failed(deleted(1), lost).at(0, 9), wrote(2, "b").at(1, 2), none.at(10, 11)}},
		"a lost delete":                      {"", []op{wrote(1, "a").at(0, 1), failed(deleted(2), lost).at(2, 3), none.at(4, 5)}},
		"no read in the end":                 {"not a read", []op{wrote(1, "a").at(0, 1)}},
		"a last read that failed":            {"not a read", []op{failed(none, lost).at(0, 1)}},
	} {
		h := &history{ops: c.ops}
		err := h.check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if c.want == "not a read" { // which the other check does not need
			continue
		}
		if err := h.linearizable(time.Minute); (err == nil) != (c.want == "") {
			t.Errorf("%s: linearizable: got %v", name, err)
		}
	}
}
