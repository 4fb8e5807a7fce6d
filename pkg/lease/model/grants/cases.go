package grants

import (
	"slices"

	"github.com/pawl-lock/pawl/pkg/lease/model/explore"
)

// base are the bounds that most cases start from.
func base() config {
	return config{
		clients: 2, units: 8, until: 7, skew: 1, ttl: 2, grace: 2, retention: 2,
		requestIDs: 1, retries: 1, renewals: 1, copies: 2, inFlight: 2,
	}
}

func entry(name, breaks string, long bool, set func(*config)) explore.Case {
	c := base()
	set(&c)
	return explore.Case{Name: name, Breaks: breaks, Long: long, Run: func(limit int) explore.Result {
		return explore.Run(&model{config: c}, limit)
	}}
}

func sound(name string, set func(*config)) explore.Case { return entry(name, "", false, set) }
func long(name string, set func(*config)) explore.Case  { return entry(name, "", true, set) }

func planted(name, breaks string, set func(*config)) explore.Case {
	return entry(name, breaks, false, set)
}

// deep is for a bug that takes many states to find.
func deep(name, breaks string, set func(*config)) explore.Case { return entry(name, breaks, true, set) }

// times sets the bounds that differ most between cases.
func (c *config) times(until, ttl, requestIDs, retries, renewals, copies uint8) {
	c.until, c.ttl = until, ttl
	c.requestIDs, c.retries, c.renewals, c.copies = requestIDs, retries, renewals, copies
}

// retired items are deleted as early as any host could, while requests live for
// one tick.
func retired(c *config) { c.retires, c.life, c.retention = true, 1, 3 }

// runaway is a lock that was created by a host far ahead of all others.
func runaway(c *config) {
	c.ahead, c.unbounded, c.storedRetirement = 6, true, true
	c.retires, c.life, c.retention, c.skew, c.grace = true, 1, 1, 0, 0
	c.units = 4
	c.times(11, 2, 2, 0, 1, 1)
}

// Cases returns what must hold.
func Cases() []explore.Case {
	return slices.Concat(lives(), ends(), restores())
}

func lives() []explore.Case {
	return []explore.Case{
		sound("copies, retries, a renewal", func(c *config) { c.until = 6 }),
		long("copies, retries, a renewal, later", func(*config) {}),
		sound("late answers", func(c *config) { c.lateAnswers, c.retries = true, 0 }),
		sound("a margin instead of a grace", func(c *config) { c.grace, c.margin = 0, 2; c.times(8, 4, 1, 0, 1, 2) }),
		sound("half of each", func(c *config) { c.grace, c.margin = 1, 1; c.times(8, 3, 1, 0, 1, 2) }),
		long("two renewals", func(c *config) { c.times(7, 2, 1, 0, 2, 2); c.inFlight = 3 }),
		sound("two renewals, two requests at a time", func(c *config) { c.times(7, 2, 1, 0, 2, 2) }),
		sound("two attempts", func(c *config) { c.times(4, 1, 2, 0, 0, 2) }),
		long("two attempts, three requests at a time", func(c *config) { c.times(4, 1, 2, 0, 0, 2); c.inFlight = 3 }),
		sound("guarded storage", func(c *config) { c.guarded = true; c.times(6, 2, 1, 1, 0, 2) }),
		sound("3 clients", func(c *config) { c.clients, c.inFlight = 3, 3; c.times(6, 1, 1, 0, 0, 2) }),
		sound("3 clients, guarded storage", func(c *config) {
			c.clients, c.guarded = 3, true
			c.times(7, 1, 1, 0, 0, 1)
		}),
		sound("minimum hold", func(c *config) { c.minHold = 2; c.times(8, 3, 1, 0, 1, 2) }),
		sound("clocks that agree", func(c *config) { c.skew, c.grace = 0, 0; c.times(3, 2, 2, 1, 1, 2) }),
		sound("ticks of one token, retries", func(c *config) { c.units = 1; c.times(5, 1, 1, 1, 0, 2); c.inFlight = 3 }),
		sound("ticks of one token, two attempts", func(c *config) { c.units = 1; c.times(6, 1, 2, 0, 0, 1) }),
		sound("guessed request ids", func(c *config) { c.guesses = true; c.times(5, 2, 1, 1, 0, 1) }),
		sound("releases are answered", func(c *config) { c.past = true; c.times(6, 2, 1, 0, 0, 2) }),
		sound("releases are answered, two attempts", func(c *config) { c.past = true; c.times(4, 1, 2, 0, 0, 2) }),
		long("releases are answered, two attempts, later", func(c *config) { c.past = true; c.times(5, 1, 2, 0, 0, 2) }),
		sound("releases are answered, 3 clients, clocks that agree", func(c *config) {
			c.past, c.clients, c.skew, c.grace = true, 3, 0, 0
			c.times(5, 1, 1, 0, 0, 2)
		}),
	}
}

func ends() []explore.Case {
	return []explore.Case{
		sound("break", func(c *config) { c.breaks = true; c.times(5, 2, 1, 0, 1, 2) }),
		long("break, two attempts", func(c *config) { c.breaks = true; c.times(4, 2, 2, 0, 0, 2) }),
		sound("break, guarded storage", func(c *config) { c.breaks, c.guarded = true, true; c.times(6, 2, 1, 0, 0, 2) }),
		sound("break, releases are answered", func(c *config) { c.breaks, c.past = true, true; c.times(5, 2, 1, 0, 0, 2) }),
		sound("break, releases are answered, renewals", func(c *config) {
			c.breaks, c.past, c.skew, c.grace = true, true, 0, 0
			c.times(5, 2, 1, 0, 1, 2)
		}),
		sound("retirement", func(c *config) { retired(c); c.times(10, 1, 1, 1, 0, 2) }),
		long("retirement, two attempts", func(c *config) { retired(c); c.times(10, 1, 2, 0, 0, 1) }),
		sound("retirement, guarded storage, a renewal", func(c *config) {
			retired(c)
			c.guarded = true
			c.times(10, 1, 1, 0, 1, 1)
		}),
		sound("retirement, releases are answered", func(c *config) { retired(c); c.past = true; c.times(9, 1, 1, 0, 0, 2) }),
		long("ticks of one token, retirement", func(c *config) { c.units = 1; retired(c); c.times(8, 1, 2, 0, 0, 2) }),
		long("ticks of one token, retirement, break", func(c *config) {
			c.units, c.breaks = 1, true
			retired(c)
			c.times(8, 1, 2, 0, 0, 1)
		}),
		long("a creator that is ahead, retirement", runaway),
	}
}

func restores() []explore.Case {
	restored := func(set func(*config)) func(*config) {
		return func(c *config) { c.restores = true; set(c) }
	}
	return []explore.Case{
		sound("restore", restored(func(c *config) { c.times(8, 1, 1, 0, 0, 2) })),
		long("restore, two attempts", restored(func(c *config) { c.times(6, 1, 2, 0, 0, 1) })),
		sound("restore, a renewal", restored(func(c *config) { c.times(9, 2, 1, 0, 1, 1) })),
		long("restore, a renewal, longer", restored(func(c *config) { c.times(10, 3, 1, 0, 1, 1) })),
		long("restore, copies, retries", restored(func(c *config) { c.times(7, 1, 1, 1, 0, 2) })),
		sound("restore, retirement", restored(func(c *config) { retired(c); c.times(11, 1, 1, 0, 0, 1) })),
		sound("restore, break", restored(func(c *config) { c.breaks = true; c.times(8, 2, 1, 0, 0, 1) })),
		long("restore, break, a renewal", restored(func(c *config) { c.breaks = true; c.times(9, 2, 1, 0, 1, 1) })),
		long("restore, break, guarded storage", restored(func(c *config) {
			c.breaks, c.guarded = true, true
			c.times(10, 3, 1, 0, 0, 1)
		})),
		long("restore, 3 clients, guarded storage", restored(func(c *config) {
			c.clients, c.guarded = 3, true
			c.times(8, 1, 1, 0, 0, 1)
		})),
		sound("restore, then a longer maximum TTL", restored(func(c *config) {
			c.laterTTL = 5
			c.times(9, 2, 1, 0, 1, 1)
		})),
		long("restore, then a shorter maximum TTL", restored(func(c *config) {
			c.laterTTL = 1
			c.times(10, 4, 1, 0, 1, 1)
		})),
		sound("restore, releases are answered", restored(func(c *config) { c.past = true; c.times(8, 1, 1, 0, 0, 1) })),
		long("retirement, restore, break", restored(func(c *config) {
			retired(c)
			c.breaks = true
			c.times(10, 1, 1, 0, 0, 1)
		})),
	}
}
