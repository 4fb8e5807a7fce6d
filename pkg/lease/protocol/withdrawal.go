package protocol

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/pawl-lock/pawl/pkg/lease"
)

const (
	// maxMarkers keeps a record within the write unit that it is paid by.
	maxMarkers = 10

	// markerLeft is what a marker that is found has left, at least, to be as good as
	// a new one: a repeat within a few seconds writes nothing.
	markerLeft = lease.WithdrawnFor * 3 / 4
)

// A Withdrawal is a release by request id as it will be recorded; see
// [lease.ReleaseRequest].
type Withdrawal struct {
	RequestID, Principal string
}

// Mark names the request in the markers of its lock.
func (w Withdrawal) Mark() string { return mark(w.RequestID, w.Principal) }

// Mark names the request in the markers of its lock.
func (g Grant) Mark() string { return mark(g.RequestID, g.Principal) }

// mark has the principal in it: nobody withdraws what somebody else asks for.
// Its 72 bits are enough for a few requests of one lock and a few minutes.
func mark(requestID, principal string) string {
	sum := sha256.Sum256([]byte(requestID + "\n" + principal)) // a request id has no newline
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// A Marker says that a request was withdrawn, and is granted nothing.
type Marker struct {
	Mark  string
	Until Instant // from then on another marker may take its place; until that happens, it counts
}

// Markers are the requests of a lock that were withdrawn lately, in the order of
// their marks, and then zero markers.
type Markers [maxMarkers]Marker

// MarkersOf returns all as Markers, unless they are too many.
func MarkersOf(all []Marker) (m Markers, ok bool) {
	all = slices.SortedFunc(slices.Values(all), func(a, b Marker) int { return cmp.Compare(a.Mark, b.Mark) })
	return m, copy(m[:], all) == len(all)
}

// All returns the markers that are set.
func (m Markers) All() []Marker {
	return slices.DeleteFunc(slices.Clone(m[:]), func(x Marker) bool { return x.Mark == "" })
}

// Until returns the time of the marker of a request, 0 if that was not withdrawn.
func (m Markers) Until(mark string) Instant {
	for _, x := range m {
		if x.Mark == mark {
			return x.Until
		}
	}
	return 0
}

// set returns m with x, and without what no longer has to be there at now. It
// fails with the time until there is room.
func (m Markers) set(now Instant, x Marker) (Markers, error) {
	all := slices.DeleteFunc(m.All(), func(o Marker) bool { return o.Until <= now || o.Mark == x.Mark })
	next, ok := MarkersOf(append(all, x))
	if ok {
		return next, nil
	}
	first := slices.MinFunc(all, func(a, b Marker) int { return cmp.Compare(a.Until, b.Until) })
	return m, &lease.RetryError{Err: lease.ErrTooManyWithdrawn, After: first.Until.Sub(now)}
}

// Withdraw returns the record after the request that w names is withdrawn: its
// lease is ended, if it has been granted one, and a marker lets it have none from
// now on. It returns r itself when both have been done. Where there is no room
// for the marker, only the lease is ended; withdrawing again then fails. A grant
// that was taken back is none: what it left tells of the lease before.
func (r Record) Withdraw(now Instant, w Withdrawal, rules Rules) (Record, error) {
	granted := r.RequestID == w.RequestID
	if granted && r.Principal != w.Principal {
		return r, lease.ErrRequestConflict
	}
	next := r
	if granted && !r.takenBack() {
		next = r.released()
	}
	if r.Markers.Until(w.Mark()) >= now.Add(markerLeft+rules.skew()) {
		return next, nil
	}
	until := now.Add(lease.WithdrawnFor + rules.skew())
	markers, err := r.Markers.set(now, Marker{w.Mark(), until})
	switch {
	case err == nil:
		next.Markers = markers
	case next == r:
		return r, err
	default:
		return next, nil // the next try says that there is no room
	}
	if r.Retire < until.Seconds() { // it is to be forgotten before the marker, or has nothing else in it
		next.Retire = until.Add(rules.retention()).Seconds()
	}
	return next, nil
}

// Withdrawn returns the state of a lock at now, whose record was r before the
// request that w names was withdrawn. Of holders, it names that of the lease that
// the request got. A lease that ran out is not called late: nobody was told of it.
func (r Record) Withdrawn(n lease.Name, now Instant, w Withdrawal) lease.State {
	if r.RequestID != w.RequestID || r.takenBack() {
		s := r.State(n, now)
		s.Ended, s.Holder, s.Metadata, s.Abandoned = lease.Withdrawn, "", "", nil
		return s
	}
	s := r.released().State(n, now)
	if s.Ended = lease.Released; r.LeaseID == "" {
		s.Ended = lease.ReleasedBefore
	}
	return s
}
