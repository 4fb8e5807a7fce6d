package gateway

import (
	"sync"
	"time"
)

// A Throttle lets in Rate requests a second and Burst at once, whoever calls;
// what exceeds them is answered 429. Nil lets in everything. AWS does not promise
// to be as exact.
type Throttle struct {
	Rate  float64
	Burst int

	mu     sync.Mutex
	tokens float64 // what is left of Burst, as of refill
	refill time.Time
}

// admit takes a token from the bucket that Rate fills up to Burst.
func (t *Throttle) admit(now time.Time) bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refill.IsZero() {
		t.tokens = float64(t.Burst)
	} else {
		t.tokens = min(t.tokens+now.Sub(t.refill).Seconds()*t.Rate, float64(t.Burst))
	}
	t.refill = now
	if t.tokens < 1 {
		return false
	}
	t.tokens--
	return true
}
