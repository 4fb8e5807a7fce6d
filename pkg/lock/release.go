package lock

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

const (
	// releaseTime is how long a release may take, with its repeats.
	releaseTime = 5 * time.Second

	// releaseTry is how long one request of it may take. One that hangs must not
	// use up the time in which another would get through.
	releaseTry = 2 * time.Second
)

// Release ends trust at once, and then the lease. It keeps within the deadline of
// ctx, and takes 5 seconds at most. A ctx that has ended is no obstacle: then only
// its values are used.
//
// It returns nil when the lock is free, also if it was released before, and
// [ErrLost] when the lease had ended in another way. After any other error the
// lock is free or soon will be, since it is not renewed any more, and Release can
// be called again.
func (h *Held) Release(ctx context.Context) error {
	if tell := h.expire(); tell != nil { // if it was lost, that comes first
		tell()
	}
	h.distrust(errReleased, false)
	h.mu.Lock()
	renewing, err := h.renewing, h.err
	h.mu.Unlock()
	if errors.Is(err, lease.ErrLost) && !errors.Is(err, errPaused) {
		return err // the service has said so
	}
	limit := releaseTime
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		limit = min(limit, time.Until(deadline))
	}
	end := time.Now().Add(limit)
	select {
	case h.releasing <- struct{}{}:
		defer func() { <-h.releasing }()
	case <-time.After(limit):
		return undecided(errors.New("it is being released already"))
	}
	if h.over {
		return h.outcome
	}
	err = h.sendRelease(context.WithoutCancel(ctx), end)
	h.over, h.outcome = err == nil || errors.Is(err, ErrLost), err
	if renewing != nil {
		// It was told to end. A service that does not listen is not waited for.
		select {
		case <-renewing:
		case <-time.After(min(releaseTry, time.Until(end))):
		}
	}
	return err
}

// sendRelease repeats the release until its outcome is known.
func (h *Held) sendRelease(ctx context.Context, end time.Time) error {
	var err error
	for failures := 1; ; failures++ {
		err = h.releaseOnce(ctx, min(releaseTry, time.Until(end)))
		v := lease.Classify(err)
		if pause := pauseAfter(v, failures); v.Repeat && time.Until(end) > pause {
			sleep(ctx, pause)
			continue
		}
		h.client.tell(ctx, Event{Kind: Released, Lock: h.name, Token: h.Token(), Err: err})
		return err
	}
}

func (h *Held) releaseOnce(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := h.client.Service.Release(ctx, lease.ReleaseRequest{Name: h.lease.Name, LeaseID: h.lease.ID, Token: h.lease.Token})
	switch {
	case errors.Is(err, lease.ErrLost) && h.unknown:
		// An earlier try of unknown outcome was carried out, or the lease has run
		// out since. Either way it is over, and was ours to end.
		return nil
	case errors.Is(err, lease.ErrLost):
		return lost(err)
	case lease.Classify(err).Outcome == lease.Unknown:
		h.unknown = true
	}
	return err
}
