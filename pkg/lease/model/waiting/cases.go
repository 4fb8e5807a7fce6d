package waiting

import "github.com/pawl-lock/pawl/pkg/lease/model/explore"

// base are the bounds that most cases start from.
func base() config {
	return config{
		callers: 2, until: 6, ttl: 2, wait: 5, sleep: 1, patience: 2,
		places: most, marker: 20, retention: 20, calls: 1,
	}
}

func entry(name, breaks string, long bool, set func(*config)) explore.Case {
	c := base()
	set(&c)
	return explore.Case{Name: name, Breaks: breaks, Long: long, Run: func(limit int) explore.Result {
		return explore.Run(&model{c}, limit)
	}}
}

func sound(name string, set func(*config)) explore.Case { return entry(name, "", false, set) }
func long(name string, set func(*config)) explore.Case  { return entry(name, "", true, set) }

func planted(name, breaks string, set func(*config)) explore.Case {
	return entry(name, breaks, false, set)
}

// deep is for a bug that takes many states to find.
func deep(name, breaks string, set func(*config)) explore.Case { return entry(name, breaks, true, set) }

// three prompt callers, which wait for as long as the model runs.
func three(c *config) {
	c.callers, c.prompt = 3, true
	c.until, c.wait, c.ttl = 8, 8, 1
}

// held starts with a lock that a stranger holds until the given time.
func held(c *config, free uint8) {
	c.start = func(s *state) {
		s.maxTok = 1
		s.item = item{exists: true, tok: 1, acq: 1, lid: stranger, rid: stranger, free: free, gc: 99}
	}
}

// released starts with a lock that was released, and whose minimum hold ends at
// the given time.
func released(c *config, hold uint8) {
	c.start = func(s *state) {
		s.maxTok = 1
		s.item = item{exists: true, tok: 1, acq: 1, rid: stranger, free: hold, hold: hold, gc: 99}
	}
}

// skewed hosts. The lock delay is what the worst difference of two clocks asks for.
func skewed(c *config) {
	c.skew, c.delay, c.prompt = 1, 2, true
	c.until, c.wait, c.ttl = 12, 12, 1
	held(c, 5)
}

// idle starts with a lock that nobody has asked for since long ago: its item may
// be retired at any moment.
func idleLock(c *config) {
	c.retires = true
	c.start = func(s *state) {
		s.t, s.maxTok = 3, 1
		s.item = item{exists: true, tok: 1, acq: 1, rid: stranger, gc: 2}
	}
}

// deadFirst starts with a free lock, and in front of everybody the ticket of a
// dead waiter, which has the given end.
func deadFirst(c *config, end uint8) {
	k := c.callers - 1
	c.start = func(s *state) {
		s.maxTok = 1
		s.item = item{exists: true, tok: 1, acq: 1, rid: stranger, gc: 99}
		s.item.q[k] = ticket{arrival: 1, end: end}
		s.callers[k] = caller{phase: gone, fate: dead}
	}
}

// Cases returns what must hold.
func Cases() []explore.Case {
	return []explore.Case{
		sound("cancels, copies", func(c *config) { c.cancels, c.twice = true, true; c.until, c.wait = 5, 4 }),
		sound("deaths, copies", func(c *config) { c.deaths, c.twice = true, true }),
		sound("prompt, deaths, cancels", func(c *config) {
			c.prompt, c.deaths, c.cancels = true, true, true
			c.until, c.wait = 8, 7
		}),
		sound("3 callers, prompt", three),
		sound("3 callers, prompt, deaths", func(c *config) { three(c); c.deaths = true; c.until = 7 }),
		long("3 callers, prompt, cancels", func(c *config) { three(c); c.cancels = true; c.until, c.wait = 4, 3 }),
		long("3 callers, cancels", func(c *config) {
			c.callers, c.cancels = 3, true
			c.until, c.wait, c.ttl = 3, 2, 1
		}),
		sound("3 callers, sleeps of 2, deaths", func(c *config) {
			three(c)
			c.deaths, c.sleep, c.patience = true, 2, 3
			c.until, c.wait = 9, 9
		}),
		sound("2 callers behind a dead one, sleeps of 2", func(c *config) {
			three(c)
			deadFirst(c, 60)
			c.sleep, c.patience = 2, 3
			c.until, c.wait = 12, 12
		}),
		sound("2 callers behind a dead one, whose ticket ends", func(c *config) {
			three(c)
			deadFirst(c, 5)
			c.patience, c.until, c.wait = 3, 12, 12
		}),
		sound("skew, deaths", func(c *config) { skewed(c); c.deaths = true; c.until, c.wait = 9, 9 }),
		long("3 callers, skew, deaths", func(c *config) {
			skewed(c)
			held(c, 4)
			c.callers, c.deaths = 3, true
			c.until, c.wait = 7, 5
		}),
		sound("skew, minimum hold", func(c *config) { skewed(c); released(c, 5); c.minHold, c.ttl = 2, 2 }),
		sound("skew, a wait that ends", func(c *config) { skewed(c); c.wait = 4; c.deaths = true }),
		sound("skew, cancels, copies", func(c *config) {
			c.skew, c.delay, c.cancels, c.twice = 1, 2, true, true
			c.until, c.wait, c.ttl = 4, 2, 1
		}),
		sound("minimum hold, lock delay", func(c *config) {
			three(c)
			c.minHold, c.ttl, c.delay = 2, 2, 1
			c.deaths = true
			c.until = 7
		}),
		sound("break", func(c *config) { three(c); c.breaks = true; c.ttl = 3; c.minHold = 3 }),
		sound("break, cancels, copies", func(c *config) {
			c.breaks, c.cancels, c.twice = true, true, true
			c.until, c.wait = 4, 3
		}),
		sound("1 place for 3 callers", func(c *config) { three(c); c.places = 1; c.until, c.wait = 9, 9 }),
		sound("1 place, deaths, copies", func(c *config) {
			c.callers, c.deaths, c.twice, c.places = 2, true, true, 1
			c.until, c.wait, c.ttl = 6, 2, 1
		}),
		sound("an idle lock is retired; cancels, copies", func(c *config) {
			idleLock(c)
			c.cancels, c.twice, c.life, c.marker = true, true, 1, 4
			c.until, c.wait, c.ttl = 8, 1, 1
		}),
		long("an idle lock is retired; cancels, later copies", func(c *config) {
			idleLock(c)
			c.cancels, c.twice, c.life, c.marker = true, true, 2, 5
			c.until, c.wait, c.ttl = 10, 2, 1
		}),
		sound("retirement with waiters", func(c *config) {
			idleLock(c)
			c.prompt, c.deaths, c.retention = true, true, 2
			c.until, c.wait, c.ttl = 11, 4, 1
		}),
		sound("markers end; cancels, copies", func(c *config) {
			c.cancels, c.twice, c.life, c.marker = true, true, 2, 5
			c.until, c.wait, c.ttl = 9, 2, 1
		}),
		sound("restore", func(c *config) {
			three(c)
			c.restore, c.quarantine = true, 4
			c.callers = 2
			c.until, c.wait, c.ttl = 10, 3, 1
		}),
		long("3 callers, restore", func(c *config) {
			three(c)
			c.restore, c.quarantine = true, 3
			c.until, c.wait, c.ttl = 8, 2, 1
		}),
		long("restore, cancels", func(c *config) {
			c.restore, c.cancels, c.quarantine = true, true, 3
			c.until, c.wait, c.ttl = 6, 2, 1
		}),
		long("restore, skew", func(c *config) {
			c.restore, c.skew, c.delay, c.quarantine = true, 1, 2, 6
			c.until, c.wait, c.ttl = 10, 1, 1
		}),
		sound("calls that keep their place", func(c *config) {
			c.prompt, c.calls, c.gap, c.patience = true, 2, 1, 2
			c.until, c.wait, c.ttl = 10, 3, 1
			c.callers = 3
		}),
		long("calls that keep their place, deaths", func(c *config) {
			held(c, 99)
			c.breaks, c.deaths = true, true
			c.prompt, c.calls, c.gap, c.patience = true, 2, 1, 2
			c.until, c.wait, c.ttl = 7, 2, 1
			c.callers = 3
		}),
	}
}
