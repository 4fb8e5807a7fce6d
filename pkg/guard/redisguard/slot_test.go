package redisguard_test

import (
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/guard/redisguard"
)

func TestTheFenceIsInTheSlotOfTheData(t *testing.T) {
	if got := crc16("123456789"); got != 0x31C3 { // as the specification of Redis Cluster says
		t.Fatalf("crc16 is %#x", got)
	}
	fences := make(map[string]string)
	for _, key := range []string{
		"a", "orders:42", "{orders}42", "orders{42}", "a{b}c{d}", "a{b", "{a", "a{b{c}d}e", "日本", strings.Repeat("x", 1000), "{a}", " ", "f", "fence",
	} {
		own, err := redisguard.FenceKey(key)
		if err != nil {
			t.Errorf("%q: %v", key, err)
			continue
		}
		if slot(own) != slot(key) {
			t.Errorf("%q has slot %d, its fence %q %d", key, slot(key), own, slot(own))
		}
		if other, taken := fences[own]; taken {
			t.Errorf("%q and %q share the fence %q", key, other, own)
		}
		fences[own] = key
		if again, err := redisguard.FenceKey(own); err == nil {
			t.Errorf("the fence %q may be data, with the fence %q", own, again)
		}
	}
	for _, key := range []string{"", "a}b", "{}a", "}{", "a{}{b}", "a\xff", "a\x00b", "a\n", "fence:{a}", "fence/{a}b"} {
		if own, err := redisguard.FenceKey(key); err == nil {
			t.Errorf("%q has the fence %q in slot %d, want none", key, own, slot(own))
		}
	}
}

// slot is that of Redis Cluster.
func slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			key = key[open+1 : open+1+end]
		}
	}
	return crc16(key) % 16384
}

func crc16(s string) (crc uint16) {
	for _, b := range []byte(s) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc
}
