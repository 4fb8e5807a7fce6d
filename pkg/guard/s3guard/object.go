package s3guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// An Object is a guarded object in the hands of one grant of a lock. It
// remembers what it last did, which saves the next Write a request. It is safe
// for concurrent use.
//
// Its methods fail with [fence.StaleError] when the guard has seen a newer token,
// with [fence.OtherLockError] when the object belongs to another lock, with
// [fence.ErrInvalid], or with [ErrNotApplied]: nothing was changed. After any
// other error the outcome is unknown, and the change may still be made for as
// long as S3 takes a request late: its signature is good for 15 minutes. Doing
// the same again does no harm.
//
// While others change the object at the same time they try again, until ctx
// ends.
type Object struct {
	guard *Guard
	key   string
	lock  string
	token fence.Token

	last atomic.Pointer[pointer] // the pointer that we wrote or claimed, if we know it
}

// About is what S3 says of an object's bytes to those who get them. Each may be
// empty.
type About struct {
	ContentType     string
	ContentEncoding string
	CacheControl    string
	Metadata        map[string]string
}

// Claim has the guard see the token and changes nothing else: from now on older
// holders are refused. Claim an object before reading it, or else an older
// holder may change what was read. It takes two requests, or one if the guard
// has seen the token.
func (o *Object) Claim(ctx context.Context) error {
	return o.do(ctx, "claim", func() error {
		p, err := o.admitted(ctx)
		if err != nil {
			return err
		}
		if p.Tokens[o.lock] == o.token {
			o.last.Store(p)
			return nil
		}
		return o.change(ctx, p, func(*pointer) {})
	})
}

// Write replaces the object's bytes by what body has, and what is said of them.
// Readers see all of it or nothing. It takes three requests, two if the same
// Object was claimed or written before, and more for a body that is longer than
// a part.
//
// A token that is known to be stale is refused before body is read.
func (o *Object) Write(ctx context.Context, body io.Reader, about About) error {
	return o.do(ctx, "write", func() error {
		p, err := o.known(ctx)
		if err != nil {
			return err
		}
		d, err := o.guard.upload(ctx, o.key, body, about)
		if err != nil {
			return notApplied(err)
		}
		return o.change(ctx, p, func(p *pointer) { p.Data = d })
	})
}

// Delete removes the object; the guard still knows the token. It takes two
// requests, or one like Write.
func (o *Object) Delete(ctx context.Context) error {
	return o.do(ctx, "delete", func() error {
		p, err := o.known(ctx)
		if err != nil {
			return err
		}
		return o.change(ctx, p, func(p *pointer) { p.Data = nil })
	})
}

// do checks what the caller said, does the work, and reports how it ended.
func (o *Object) do(ctx context.Context, verb string, work func() error) error {
	err := fence.Check(o.lock, o.token)
	if err == nil {
		err = o.guard.check(o.key)
	}
	if err == nil {
		err = work()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fence.ErrStale), errors.Is(err, fence.ErrOtherLock):
		return o.guard.Observer.See(ctx, err) // it says which object
	}
	return fmt.Errorf("s3guard: %s %s: %w", verb, o.guard.resource(o.key), err)
}

// known returns the pointer to start from: the one that we remember or the one
// that is there.
func (o *Object) known(ctx context.Context) (*pointer, error) {
	if p := o.last.Load(); p != nil {
		return p, nil
	}
	return o.admitted(ctx)
}

// admitted reads the pointer and fails unless it takes our token.
func (o *Object) admitted(ctx context.Context) (*pointer, error) {
	p, err := o.guard.read(ctx, o.key)
	if err != nil {
		return nil, notApplied(err)
	}
	return p, p.admit(o.guard.Locks, o.lock, o.token, o.guard.resource(o.key))
}

func notApplied(why error) error { return fmt.Errorf("%w: %w", ErrNotApplied, why) }
