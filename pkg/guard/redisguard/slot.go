package redisguard

import (
	"fmt"
	"math"
	"strings"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// FenceKey returns the key of the hash that remembers the tokens of the data
// under key: "fence:{key}" or, if the key has a hash tag, "fence/key". Both are in
// the hash slot of the data. It fails for what cannot be a key of guarded data, such
// as a fence itself, and for the odd key with a "}" and no hash tag, whose slot no
// other key can be made to share: set [Guard.Fence] for those.
func FenceKey(key string) (string, error) {
	if err := check(key); err != nil {
		return "", fmt.Errorf("redisguard: %w", err)
	}
	switch {
	case tagged(key):
		return "fence/" + key, nil
	case strings.Contains(key, "}"):
		return "", fmt.Errorf("redisguard: the hash slot of %q has no name: set Guard.Fence", key)
	}
	return "fence:{" + key + "}", nil
}

// check refuses what cannot be the key of guarded data: what no lock can be called
// but for its length, and a fence of this package, with which the tokens of other
// keys would go.
func check(key string) error {
	if err := fence.CheckName(key, math.MaxInt); err != nil {
		return fmt.Errorf("the key: %w", err)
	}
	if strings.HasPrefix(key, "fence:{") || strings.HasPrefix(key, "fence/") {
		return fmt.Errorf("%q is the key of a fence, not of data", key)
	}
	return nil
}

// tagged reports whether only a part of the key decides its slot: what is between
// the first "{" and the next "}", if that is anything.
func tagged(key string) bool {
	_, rest, open := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return open && closed && tag != ""
}
