package s3guard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// change puts a pointer that has seen our tokens, and is otherwise what edit makes
// of it, in the place of p, which takes them. If another pointer has come there, it
// decides again by that one.
func (o *Object) change(ctx context.Context, p *pointer, declared []string, edit func(*pointer)) error {
	var (
		g     = o.guard
		id    = rand.Text() // also of a repeated attempt, to be known by
		doubt error         // why an attempt may have been made, or may yet be
		tries int           // that ended in doubt
	)
	giveUp := func(why error) error {
		if doubt != nil {
			return fmt.Errorf("outcome unknown: %w", doubt)
		}
		return notApplied(why)
	}
	for attempt := 0; ; attempt++ {
		next := p.next(id, o.h, declared)
		edit(next)
		err := g.replace(ctx, o.key, p, next)
		outcome := judge(err)
		if outcome == applied {
			o.last.Store(next)
			return nil
		}
		o.last.Store(nil)
		if outcome == failed {
			return giveUp(err)
		}
		wait := mathrand.N(min(10*time.Millisecond<<min(attempt, 7), time.Second))
		if outcome == uncertain {
			doubt = err
			tries++
			wait = g.patience(tries, err)
		}
		if err := sleep(ctx, wait); err != nil {
			return giveUp(err)
		}

		now, err := g.read(ctx, o.key)
		proven := false // that ours was never there, nor will be
		switch {
		case err != nil:
			return giveUp(err)
		case now.ID == id:
			o.last.Store(now)
			return nil
		case slices.Contains(now.History, id): // ours was there, and somebody has replaced it
			return nil
		case now.ID == p.ID: // what we sent may be late: send the same again
			if most := g.Client.Options().Retryer.MaxAttempts(); doubt != nil && most > 0 && tries >= most {
				return giveUp(doubt)
			}
		case slices.Contains(now.History, p.ID): // p was replaced, not by ours: no ETag comes back
			doubt, proven = nil, true
		case doubt != nil:
			return giveUp(doubt)
		}
		if err := o.h.Admit(declared, now.Tokens, g.resource(o.key)); err != nil {
			if proven {
				err = fence.Settled(err)
			}
			return err
		}
		p = now
	}
}

// An outcome is what an answer says about a conditional PUT.
type outcome int

const (
	applied   outcome = iota
	overtaken         // not applied: somebody else changes the pointer
	failed            // not applied
	uncertain
)

// judge takes as S3 means them: 412, another pointer is there, 409, one is being
// written, and 404, there is none.
func judge(err error) outcome {
	if err == nil {
		return applied
	}
	var answer *smithyhttp.ResponseError
	var said smithy.APIError
	if !errors.As(err, &answer) || !errors.As(err, &said) {
		return uncertain
	}
	switch code, status := said.ErrorCode(), answer.HTTPStatusCode(); {
	case status == 412, code == "ConditionalRequestConflict", code == "OperationAborted", code == "NoSuchKey":
		return overtaken
	case 300 <= status && status < 500:
		return failed
	}
	return uncertain
}

// patience is how long the client waits after so many failures.
func (g *Guard) patience(tries int, err error) time.Duration {
	d, e := g.Client.Options().Retryer.RetryDelay(tries, err)
	if e != nil {
		return time.Second
	}
	return d
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
