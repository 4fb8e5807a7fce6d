package guardtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

func correct(*testing.T) Store { return memory{noBug} }

func TestACorrectStorePasses(t *testing.T) { Run(t, correct) }

func TestACorrectStoreStandsTheHammer(t *testing.T) {
	t.Setenv("GUARD_SECONDS", "1")
	t.Setenv("ROUNDS", "1")
	Hammer(t, correct)
}

func TestAStoreThatIsOftenUnsureIsStillCorrect(t *testing.T) {
	for range 5 {
		h, err := hammer(t.Context(), t.Context(), unsure{memory{noBug}}, crowd{writers: 4, processes: 2, calls: 10})
		if err := errors.Join(err, h.check(), h.linearizable(time.Minute)); err != nil {
			t.Error(err)
		}
	}
	h, err := hammer(t.Context(), t.Context(), unsure{memory{noBug}}, crowd{writers: 8, processes: 4, calls: 1000})
	if err := errors.Join(err, h.check(), h.telling()); err != nil {
		t.Error(err)
	}
}

// Every bug must be found by the table of cases, but for those that need
// competition.
func TestTheCasesFindEveryBug(t *testing.T) {
	patience = 100 * time.Millisecond
	defer func() { patience = 20 * time.Second }()
	for _, b := range []bug{
		checksNothing, storesNothing, reversed, strict, comparesText, roundsTokens, writesFirst,
		deleteForgets, deleteUnchecked, deleteUnstored, deleteFreesLock,
		claimNothing, claimUnchecked, claimCreates, claimDeletes, forgetsRestart,
		ignoresBinding, bindsLast, oneTokenForAll, takesUndeclared, foldsCase, trimsNames, cutsNames,
		takesZero, takesHuge, takesNoName, lateRefusal, vagueRefusal, trimsText, hidesEmpty,
		ignoresCancel, callsItStale, mergesNames, takesControl, takesLongNames, neverWidens, narrows, forgetsWidening,
		freesWidening, firstOfTwo, deniesTwice, refusesTwice, sleepsInside, wakesUp, seesNothing, resetsNothing,
		resetKeepsLock, resetsUnchecked, prunesNothing, prunesAll,
	} {
		var found []string
		for _, p := range slices.Concat(promises...) {
			if err := p.run(t.Context(), memory{b}); err != nil {
				found = append(found, p.name)
			}
		}
		if len(found) == 0 {
			t.Errorf("a store that %s passes", b)
		}
		t.Logf("a store that %s: %q", b, found)
	}
}

func TestTheHammerFindsEveryBugThatCompetitionShows(t *testing.T) {
	for _, b := range []bug{
		checksNothing, storesNothing, reversed, strict, comparesText, racy, writesFirst,
		deleteForgets, deleteUnchecked, deleteUnstored, claimNothing, claimUnchecked, claimCreates, claimDeletes,
		refusesNewest, losesWrites, lateReads, lateRefusal,
	} {
		var linear, ordered error
		for range 100 {
			h, err := hammer(t.Context(), t.Context(), memory{b}, crowd{writers: 32, processes: 4, calls: 100})
			if linear = errors.Join(linear, err, h.check()); linear != nil {
				break
			}
		}
		for range 100 {
			h, err := hammer(t.Context(), t.Context(), memory{b}, crowd{writers: 6, processes: 2, calls: 10})
			if ordered = errors.Join(ordered, err, h.linearizable(time.Minute)); ordered != nil {
				break
			}
		}
		if linear == nil || ordered == nil {
			t.Errorf("a store that %s: the linear check says %v, porcupine %v", b, linear != nil, ordered != nil)
		}
	}
}

func TestAHistoryWithoutDecisionsTellsNothing(t *testing.T) {
	h := new(history)
	if h.telling() == nil {
		t.Error("nothing at all passes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h, err := hammer(t.Context(), ctx, memory{noBug}, crowd{writers: 2, processes: 1, calls: 10})
	if err != nil || h.telling() == nil {
		t.Errorf("error %v, and a store that never decides passes", err)
	}
}
