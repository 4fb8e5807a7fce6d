package faultproxy

import "sync"

// A Late keeps requests under way until the test lets them arrive. Its methods
// that take an [Exchange] are faults. The zero value is ready to use.
type Late struct {
	mu   sync.Mutex
	kept []*Exchange
}

// Copy lets a request pass and keeps a duplicate of it.
func (l *Late) Copy(x *Exchange) {
	l.keep(x)
	Pass(x)
}

// Delay keeps a request; the client waits until it gives up.
func (l *Late) Delay(x *Exchange) {
	l.keep(x)
	Hang(x)
}

// Overtaken lets everything that is kept arrive before a request passes.
func (l *Late) Overtaken(x *Exchange) {
	l.Arrive()
	Pass(x)
}

// Arrive lets everything that is kept arrive, the oldest first, and returns the
// answers that nobody waits for when all has been executed.
func (l *Late) Arrive() []Answer {
	l.mu.Lock()
	kept := l.kept
	l.kept = nil
	l.mu.Unlock()
	var answers []Answer
	for _, x := range kept {
		answers = append(answers, x.Forward())
	}
	return answers
}

func (l *Late) keep(x *Exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, x)
}
