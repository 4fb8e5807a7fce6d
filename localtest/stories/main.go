package stories

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/pawl-lock/pawl/pkg/fence"
)

var discard = slog.New(slog.DiscardHandler)

// A Stage is where a story takes place: a store that it starts and looks into.
type Stage struct {
	Story Story

	// Env tells the workers where the store is.
	Env []string

	// Reset puts the store into the state that the story begins with.
	Reset func(context.Context) error

	// Outcome describes the state at the end, and says whether it is as it
	// should be: what worker-2 wrote is there.
	Outcome func(context.Context) (text string, intact bool, err error)
}

// Main is the main function of a program that tells a story: once without the
// guard and once with it. It returns an error if the first does no harm, or if
// the second does.
func Main(ctx context.Context, story Story, open func(context.Context) (*Stage, func() error, error)) error {
	if IsWorker() {
		return story.Be(ctx)
	}
	stage, closeStage, err := open(ctx)
	if err != nil {
		return err
	}
	defer closeStage()
	for _, guarded := range []bool{false, true} {
		fmt.Printf("\n--- %s ---\n", map[bool]string{false: "without the guard", true: "with the guard"}[guarded])
		late, intact, err := stage.Play(ctx, guarded)
		if err != nil {
			return err
		}
		switch {
		case !guarded && intact:
			return errors.New("stories: without the guard, nothing was destroyed")
		case guarded && !intact:
			return errors.New("stories: with the guard, data was destroyed")
		case guarded && late == nil:
			return errors.New("stories: with the guard, worker-1 believes that its write was taken")
		}
	}
	return nil
}

// Play tells the story once and returns what worker-1 came to, and whether the
// data is as it should be.
func (s *Stage) Play(ctx context.Context, guarded bool) (late error, intact bool, err error) {
	if err := s.Reset(ctx); err != nil {
		return nil, false, err
	}
	late, err = s.Story.Tell(ctx, os.Stdout, guarded, s.Env...)
	if err != nil {
		return nil, false, err
	}
	switch {
	case late == nil:
		fmt.Println("worker-1 was told that its write was taken")
	case strings.Contains(late.Error(), fence.ErrStale.Error()):
		fmt.Println("worker-1 was refused:", late)
	default:
		fmt.Println("worker-1 ended with:", late)
	}
	text, intact, err := s.Outcome(ctx)
	if err == nil {
		fmt.Println(text)
	}
	return late, intact, err
}

// Refused logs refusals where the worker's errors go.
var Refused = fence.LogRefusals(slog.New(slog.NewTextHandler(os.Stderr, nil)))
