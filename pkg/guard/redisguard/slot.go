package redisguard

import (
	"fmt"
	"strings"
)

// FenceKey returns the key of the hash that remembers the tokens of the data
// under key: "fence:{key}" or, if the key has a hash tag, "fence/key". Both are in
// the hash slot of the data. It fails for an empty key, for keys of that form
// themselves, and for the odd key with a "}" and no hash tag, whose slot no other
// key can be made to share: set [Guard.Fence] for those.
func FenceKey(key string) (string, error) {
	switch {
	case key == "", strings.HasPrefix(key, "fence:{"), strings.HasPrefix(key, "fence/"):
		return "", fmt.Errorf("redisguard: %q cannot be the key of guarded data", key)
	case tagged(key):
		return "fence/" + key, nil
	case strings.Contains(key, "}"):
		return "", fmt.Errorf("redisguard: the hash slot of %q has no name: set Guard.Fence", key)
	}
	return "fence:{" + key + "}", nil
}

// tagged reports whether only a part of the key decides its slot: what is between
// the first "{" and the next "}", if that is anything.
func tagged(key string) bool {
	_, rest, open := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return open && closed && tag != ""
}
