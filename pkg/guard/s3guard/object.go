package s3guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// An Object is a guarded object in the hands of one holder. It does what a [Guard]
// does, and remembers what it last did, which saves the next Write or Delete a
// request. It is safe for concurrent use.
type Object struct {
	guard *Guard
	key   string
	h     fence.Holding

	last atomic.Pointer[pointer] // the pointer that we wrote or claimed, if we know it
}

// Object returns one. It sends no request.
func (g *Guard) Object(h fence.Holding, key string) *Object {
	return &Object{guard: g, key: key, h: h}
}

// About is what S3 says of an object's bytes to those who get them. Each may be
// empty.
type About struct {
	ContentType     string            `json:"content_type,omitzero"`
	ContentEncoding string            `json:"content_encoding,omitzero"`
	CacheControl    string            `json:"cache_control,omitzero"`
	Metadata        map[string]string `json:"metadata,omitzero"`
}

// Claim is [Guard.Claim].
func (o *Object) Claim(ctx context.Context) error {
	return o.do(ctx, "claim", func(declared []string) error {
		p, err := o.admitted(ctx, declared)
		if err != nil {
			return err
		}
		if p.knows(o.h, declared) {
			o.last.Store(p)
			return nil
		}
		return o.change(ctx, p, declared, func(*pointer) {})
	})
}

// Write is [Guard.Write], by two requests if the same Object was claimed or written
// before.
func (o *Object) Write(ctx context.Context, body io.Reader, about About) error {
	return o.do(ctx, "write", func(declared []string) error {
		p, err := o.known(ctx, declared)
		if err != nil {
			return err
		}
		d, err := o.guard.upload(ctx, o.key, body, about)
		if err != nil {
			return notApplied(err)
		}
		return o.change(ctx, p, declared, func(p *pointer) { p.Data = d })
	})
}

// Delete is [Guard.Delete], by one request if the same Object was claimed or
// written before.
func (o *Object) Delete(ctx context.Context) error {
	return o.do(ctx, "delete", func(declared []string) error {
		p, err := o.known(ctx, declared)
		if err != nil {
			return err
		}
		return o.change(ctx, p, declared, func(p *pointer) { p.Data = nil })
	})
}

// do checks what the caller said, does the work, and reports how it ended.
func (o *Object) do(ctx context.Context, verb string, work func(declared []string) error) error {
	name := o.guard.resource(o.key)
	declared, err := o.h.Declare(o.guard.Locks, name)
	if err == nil {
		err = o.guard.check(o.key)
	}
	if err == nil {
		err = work(declared)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fence.ErrStale), errors.Is(err, fence.ErrOtherLock):
		return o.guard.Observer.See(ctx, err) // it says which object
	}
	return fmt.Errorf("s3guard: %s %s: %w", verb, name, err)
}

// known returns the pointer to start from: the one that we remember or the one
// that is there.
func (o *Object) known(ctx context.Context, declared []string) (*pointer, error) {
	if p := o.last.Load(); p != nil {
		return p, nil
	}
	return o.admitted(ctx, declared)
}

// admitted reads the pointer and fails unless it takes our tokens. Nothing was sent
// yet.
func (o *Object) admitted(ctx context.Context, declared []string) (*pointer, error) {
	p, err := o.guard.read(ctx, o.key)
	if err != nil {
		return nil, notApplied(err)
	}
	return p, fence.Settled(o.h.Admit(declared, p.Tokens, o.guard.resource(o.key)))
}

func notApplied(why error) error { return fmt.Errorf("%w: %w", fence.ErrNotApplied, why) }
