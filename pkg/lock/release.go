package lock

import (
	"context"
	"errors"
	"fmt"
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

// Release ends trust at once, and then the lease. That ctx has ended is no
// obstacle: only its values are used. It may take 5 seconds.
//
// It returns nil when the lock is free, also if it was released before, and
// [ErrLost] when the lease had ended in another way. After any other error the
// lock is free or soon will be, since it is not renewed any more, and Release can
// be called again.
func (h *Held) Release(ctx context.Context) error {
	h.expire() // if it was lost, that comes first
	h.distrust(errReleased, false)
	h.mu.Lock()
	renewing, err := h.renewing, h.err
	h.mu.Unlock()
	if errors.Is(err, lease.ErrLost) {
		return err // the service has said so
	}
	h.releasing.Lock()
	defer h.releasing.Unlock()
	if h.over {
		return h.outcome
	}
	err = h.sendRelease(context.WithoutCancel(ctx))
	h.over, h.outcome = err == nil || errors.Is(err, ErrLost), err
	if renewing != nil {
		// It was told to end. A service that does not listen is not waited for.
		select {
		case <-renewing:
		case <-time.After(releaseTry):
		}
	}
	return err
}

// sendRelease repeats the release until its outcome is known.
func (h *Held) sendRelease(ctx context.Context) error {
	end := time.Now().Add(releaseTime)
	var err error
	for failures := 1; ; failures++ {
		err = h.releaseOnce(ctx, min(releaseTry, time.Until(end)))
		if err == nil || errors.Is(err, ErrLost) || final(err) {
			break
		}
		pause := pauseAfter(err, failures)
		if time.Until(end) <= pause {
			break
		}
		sleep(ctx, pause)
	}
	h.client.tell(ctx, Event{Kind: Released, Lock: h.name, Token: h.Token(), Err: err})
	return err
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
		return fmt.Errorf("%w: %w", ErrLost, err)
	case err != nil && !final(err) && !notGranted(err):
		h.unknown = true
	}
	return err
}
