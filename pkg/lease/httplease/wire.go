package httplease

import (
	"math"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// millis is a duration on the wire.
type millis int64

// duration returns m, or the nearest that a duration can be: far outside of
// every range, so that it is refused and not wrapped around.
func (m millis) duration() time.Duration {
	const most = math.MaxInt64 / millis(time.Millisecond)
	return time.Duration(max(-most, min(m, most))) * time.Millisecond
}

func millisOf(d time.Duration) millis { return millis(d.Milliseconds()) }

// rfc3339 has milliseconds always, so that texts of times sort as times.
const rfc3339 = "2006-01-02T15:04:05.000Z07:00"

// stamp is a time on the wire. None is left out.
type stamp string

func stampOf(t time.Time) stamp {
	if t.IsZero() {
		return ""
	}
	return stamp(t.UTC().Format(rfc3339))
}

func (s stamp) time() (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, string(s))
}

// The bodies of answers.
type leaseBody struct {
	Namespace  string         `json:"namespace"`
	Lock       string         `json:"lock"`
	Token      fence.Token    `json:"token"`
	LeaseID    string         `json:"lease_id"`
	Holder     string         `json:"holder"`
	TTL        millis         `json:"ttl_ms"`
	AcquiredAt stamp          `json:"acquired_at"`
	ExpiresAt  stamp          `json:"expires_at"`
	Remaining  millis         `json:"remaining_ms"`
	Abandoned  *abandonedBody `json:"abandoned,omitzero"`
}

type abandonedBody struct {
	Holder    string      `json:"holder"`
	Token     fence.Token `json:"token"`
	ExpiredAt stamp       `json:"expired_at"`
}

type stateBody struct {
	Namespace   string         `json:"namespace"`
	Lock        string         `json:"lock"`
	State       string         `json:"state"` // held or free
	Token       fence.Token    `json:"token"`
	Holder      *string        `json:"holder,omitzero"`
	Metadata    string         `json:"metadata,omitzero"`
	AcquiredAt  stamp          `json:"acquired_at,omitzero"`
	ExpiresAt   stamp          `json:"expires_at,omitzero"`
	Remaining   *millis        `json:"remaining_ms,omitzero"`
	AvailableAt stamp          `json:"available_at,omitzero"`
	Abandoned   *abandonedBody `json:"abandoned,omitzero"`
	AlreadyFree *bool          `json:"already_free,omitzero"` // of a break only
}

type health struct {
	Status string `json:"status"`
}

func leaseOf(l lease.Lease) leaseBody {
	return leaseBody{
		Namespace:  l.Name.Namespace,
		Lock:       l.Name.Lock,
		Token:      l.Token,
		LeaseID:    l.ID,
		Holder:     l.Holder,
		TTL:        millisOf(l.TTL),
		AcquiredAt: stampOf(l.AcquiredAt),
		ExpiresAt:  stampOf(l.ExpiresAt),
		Remaining:  millisOf(l.Remaining),
		Abandoned:  abandonedOf(l.Abandoned),
	}
}

func abandonedOf(a *lease.Abandoned) *abandonedBody {
	if a == nil {
		return nil
	}
	return &abandonedBody{Holder: a.Holder, Token: a.Token, ExpiredAt: stampOf(a.ExpiredAt)}
}

func stateOf(s lease.State) stateBody {
	b := stateBody{
		Namespace:   s.Name.Namespace,
		Lock:        s.Name.Lock,
		State:       "free",
		Token:       s.Token,
		AvailableAt: stampOf(s.AvailableAt),
		Abandoned:   abandonedOf(s.Abandoned),
	}
	if s.Token != 0 {
		b.Holder = &s.Holder
	}
	if s.Held {
		remaining := millisOf(s.Remaining)
		b.State, b.Metadata, b.Remaining = "held", s.Metadata, &remaining
		b.AcquiredAt, b.ExpiresAt = stampOf(s.AcquiredAt), stampOf(s.ExpiresAt)
	}
	return b
}

func brokenOf(s lease.Broken) stateBody {
	b := stateOf(s.State)
	b.AlreadyFree = &s.AlreadyFree
	return b
}
