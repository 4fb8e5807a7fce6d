package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// The ten lines to start with. Memory stands for a service; see the examples of
// [Client] for how to reach one.
func Example() {
	locks := &lock.Client{Service: new(lease.Memory)}

	err := locks.Do(context.Background(), "payments/orders/42", func(ctx context.Context, token fence.Token) error {
		fmt.Println("shipping") // stops when ctx ends; every write carries the token
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: shipping
}

// A cron job starts on many hosts, and their clocks are never quite the same.
// One of them does it. MinHold keeps the lock for longer than the clocks are
// apart, even if the job is done before the last host has woken up.
func ExampleClient_TryAcquire() {
	locks := &lock.Client{Service: new(lease.Memory), TTL: time.Minute, MinHold: 30 * time.Second}

	job := func(host string) {
		held, err := locks.TryAcquire(context.Background(), "reports/nightly")
		if errors.Is(err, lock.ErrHeld) {
			fmt.Println(host, "leaves it to another")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		defer held.Release(context.Background()) // if it fails, the lease ends by itself
		if before := held.Abandoned(); before != nil {
			fmt.Println(host, "cleans up what", before.Holder, "has left half done")
		}
		fmt.Println(host, "writes the report")
	}
	job("host 1")
	job("host 2") // a moment later
	// Output:
	// host 1 writes the report
	// host 2 leaves it to another
}

// One process of many leads, and another takes over when it ends.
func ExampleElection() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	election := lock.Election{
		Client: &lock.Client{Service: new(lease.Memory)},
		Lock:   "billing/leader",
		OnElected: func(ctx context.Context, term fence.Token) error {
			fmt.Println("leading") // writes carry the term, so that storage refuses a deposed leader
			stop()                 // a signal to shut down
			<-ctx.Done()
			return nil // resigns: the next leads at once
		},
		OnLost: func(term fence.Token, err error) {
			log.Printf("term %d was lost: %v", term, err)
		},
	}
	err := election.Run(ctx)
	fmt.Println(err)
	// Output:
	// leading
	// context canceled
}

// A ledger is storage that checks tokens, as the guards of this module do.
type ledger struct {
	mu      sync.Mutex
	seen    fence.Token
	entries []string
}

func (l *ledger) Add(lock string, token fence.Token, entry string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token < l.seen {
		return &fence.StaleError{Lock: lock, Token: token, Seen: l.seen}
	}
	l.seen = token
	l.entries = append(l.entries, entry)
	return nil
}

// A write carries the token of the lock under which it is made. Nothing can stop
// a holder that was paused from sending a late write; the ledger refuses it.
func ExampleHeld_Token() {
	ctx := context.Background()
	service := new(lease.Memory)
	locks := &lock.Client{Service: service}
	var books ledger

	paused, err := locks.Acquire(ctx, "books/2026")
	if err != nil {
		log.Fatal(err)
	}
	// It is paused here, for so long that the lock goes to another.
	name := lease.Name{Namespace: "books", Lock: "2026"}
	if _, err := service.Break(ctx, lease.BreakRequest{Name: name, Token: paused.Token(), Reason: "paused"}); err != nil {
		log.Fatal(err)
	}
	err = locks.Do(ctx, "books/2026", func(ctx context.Context, token fence.Token) error {
		return books.Add("books/2026", token, "the new holder's")
	})
	if err != nil {
		log.Fatal(err)
	}
	// It wakes up.
	err = books.Add(paused.Lock(), paused.Token(), "the old holder's")
	fmt.Println(errors.Is(err, fence.ErrStale), books.entries)
	// Output: true [the new holder's]
}

// Workers share a batch of shards: each takes those that are free.
func ExampleClient_TryAcquire_shards() {
	ctx := context.Background()
	locks := &lock.Client{Service: new(lease.Memory)}

	elsewhere, err := locks.Acquire(ctx, "import/shard-1")
	if err != nil {
		log.Fatal(err)
	}
	defer elsewhere.Release(ctx)

	for shard := range 3 {
		held, err := locks.TryAcquire(ctx, fmt.Sprint("import/shard-", shard))
		if errors.Is(err, lock.ErrHeld) {
			fmt.Println("shard", shard, "is in other hands")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("shard", shard, "imported") // with held.Context() and held.Token()
		if err := held.Release(ctx); err != nil {
			log.Print(err) // it runs out by itself
		}
	}
	// Output:
	// shard 0 imported
	// shard 1 is in other hands
	// shard 2 imported
}

// A transfer needs both accounts. In whatever order they are named, two
// transfers never wait for each other.
func ExampleClient_DoAll() {
	locks := &lock.Client{Service: new(lease.Memory)}

	accounts := []string{"bank/bob", "bank/alice"}
	err := locks.DoAll(context.Background(), accounts, func(ctx context.Context, tokens map[string]fence.Token) error {
		fmt.Println("moving, with", len(tokens), "tokens") // each to the storage that its lock protects
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: moving, with 2 tokens
}

// A Lambda function is frozen or killed at its deadline. The work has to end
// before, early enough to release the lock and to report.
func ExampleClient_Do_lambda() {
	locks := &lock.Client{Service: new(lease.Memory)}

	handle := func(ctx context.Context) error { // what the Lambda runtime calls
		deadline, _ := ctx.Deadline()
		ctx, cancel := context.WithDeadline(ctx, deadline.Add(-2*time.Second))
		defer cancel()
		return locks.Do(ctx, "media/transcode", func(ctx context.Context, token fence.Token) error {
			select {
			case <-time.After(time.Hour): // the work
				return nil
			case <-ctx.Done():
				return fmt.Errorf("stopped in time: %w", ctx.Err())
			}
		})
	}

	ctx, cancel := context.WithTimeout(context.Background(), 2100*time.Millisecond)
	defer cancel()
	fmt.Println(handle(ctx))
	fmt.Println("time left:", ctx.Err() == nil)
	// Output:
	// stopped in time: context deadline exceeded
	// time left: true
}
