package infra

import (
	"slices"
	"strings"

	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// behind names the function that answers a route.
func behind(key string) string {
	if strings.HasSuffix(key, "/acquire") {
		return "Acquire"
	}
	return "Rest"
}

// What a call takes, for the rate that goes with a burst: at a rate of burst over
// time there are as many calls under way as the burst has. A call that does not
// wait takes a few ms, but not while functions start; a contended acquire looks
// again and again.
const (
	callsPerSecond    = 10 // for each call at once: 100 ms
	acquiresPerSecond = 5  // 200 ms
)

// throttles returns one for every route: those that are set, and for all others a
// part of what the function behind them answers at a time. What is open to
// everyone, and breaks, which are made by hand, get little; the other routes
// share the rest evenly, so that no burst of reads takes what holders need to
// renew.
func (p *LockServiceProps) throttles() map[string]Throttle {
	all, public := httplease.Routes()
	t := make(map[string]Throttle)
	left := map[string]int{"Acquire": p.Acquire.concurrent(), "Rest": p.Rest.concurrent()}
	sharing := make(map[string][]string) // routes, by function
	for _, key := range all {
		function := behind(key)
		set, ok := p.Throttles[key]
		switch rare := slices.Contains(public, key) || strings.HasSuffix(key, "/break"); {
		case ok:
		case rare:
			set = Throttle{Rate: 5, Burst: max(1, p.Rest.concurrent()/20)}
		case p.Throttles[""] != Throttle{} && function == "Rest":
			set = p.Throttles[""]
		default:
			sharing[function] = append(sharing[function], key)
			continue
		}
		t[key] = set
		left[function] -= set.Burst
	}
	for function, keys := range sharing {
		rate := callsPerSecond
		if function == "Acquire" {
			rate = acquiresPerSecond
		}
		burst := max(1, left[function]/len(keys))
		for _, key := range keys {
			t[key] = Throttle{Rate: float64(rate * burst), Burst: burst}
		}
	}
	return t
}
