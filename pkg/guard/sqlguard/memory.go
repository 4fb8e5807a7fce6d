package sqlguard

import (
	"sync"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A memory has the tokens of which this process knows that they were committed,
// for a check to share the row of a lock instead of rewriting it. Whether they
// are still the largest it does not know, so it decides nothing.
type memory struct {
	mu     sync.Mutex
	tokens map[string]fence.Token
}

// enough is how many locks it has at most.
const enough = 1024

func (m *memory) learn(h fence.Holding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tokens == nil || len(m.tokens) >= enough {
		m.tokens = make(map[string]fence.Token)
	}
	for lock, token := range h.All() {
		m.tokens[lock] = token
	}
}

func (m *memory) has(lock string, token fence.Token) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tokens[lock] == token
}

func (m *memory) forget(lock string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tokens, lock)
}
