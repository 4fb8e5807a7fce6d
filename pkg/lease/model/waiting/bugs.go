package waiting

import "github.com/pawl-lock/pawl/pkg/lease/model/explore"

// copied are two callers that may cancel, and requests that come twice.
func copied(c *config) { c.cancels, c.twice = true, true }

// PlantedBugs returns what must be found.
func PlantedBugs() []explore.Case {
	return []explore.Case{
		planted("a release by id leaves no marker", "CANCEL", func(c *config) {
			copied(c)
			c.bugs.markersIgnored = true
		}),
		planted("the first attempt ignores the marker", "CANCEL", func(c *config) {
			copied(c)
			c.bugs.firstIgnoresMarker = true
		}),
		planted("a waiter's attempt ignores the marker", "CANCEL", func(c *config) {
			copied(c)
			c.bugs.tryIgnoresMarker = true
		}),
		deep("a late ticket is written after a release by id", "CANCEL", func(c *config) {
			copied(c)
			c.bugs.ticketRemovesMarker = true
		}),
		planted("a release by id does not look for the grant", "CANCEL", func(c *config) {
			copied(c)
			c.bugs.cancelBlind = true
		}),
		planted("the marker ends before the requests do", "CANCEL", func(c *config) {
			copied(c)
			c.life, c.marker = 4, 2
		}),
		planted("the marker's item is retired", "CANCEL", func(c *config) {
			copied(c)
			idleLock(c)
			c.life, c.marker, c.bugs.markerRetires = 4, 6, true
		}),
		deep("a frozen handler goes on", "CANCEL", func(c *config) {
			copied(c)
			c.twice, c.life, c.marker, c.bugs.frozenGoesOn = false, 1, 3, true
			c.until, c.wait, c.ttl = 8, 1, 1
		}),
		planted("the place is ignored", "FIFO", func(c *config) { three(c); c.bugs.noPatience = true }),
		planted("a first attempt barges", "FIFO", func(c *config) { three(c); c.bugs.firstBarges = true }),
		planted("the same patience at each place", "FIFO", func(c *config) {
			three(c)
			deadFirst(c, 60)
			c.sleep, c.patience, c.bugs.flatPatience = 2, 3, true
			c.until, c.wait = 10, 10
		}),
		deep("a patience no longer than a sleep", "FIFO", func(c *config) {
			three(c)
			c.deaths, c.sleep, c.patience = true, 3, 3
			c.until, c.wait = 10, 10
		}),
		planted("patience counts from a time of one clock", "FIFO", func(c *config) {
			skewed(c)
			c.bugs.freeByOneClock = true
		}),
		planted("patience counts from the end of a minimum hold by one clock", "FIFO", func(c *config) {
			skewed(c)
			released(c, 5)
			c.bugs.freeByOneClock = true
		}),
		planted("a ticket ends with its call, by one clock", "FIFO", func(c *config) {
			skewed(c)
			held(c, 6)
			c.wait, c.bugs.endsWithCall = 5, true
		}),
		planted("patience goes on when the place changes", "FIFO", func(c *config) {
			three(c)
			deadFirst(c, 5)
			c.patience, c.bugs.countsOn = 3, true
		}),
		planted("patience starts anew at each look", "LIVE", func(c *config) {
			deadFirst(c, 60)
			c.prompt, c.bugs.startsOver = true, true
			c.until, c.wait = 12, 12
		}),
		planted("a first attempt ignores free", "EXCL", func(c *config) { c.bugs.firstIgnoresFree = true }),
		planted("a new item starts at 0", "TOKEN", func(c *config) {
			c.retires, c.retention, c.ttl, c.bugs.startsAtZero = true, 0, 1, true
		}),
		deep("a gap longer than the patience", "FIFO", func(c *config) {
			held(c, 99)
			c.breaks = true
			c.prompt, c.calls, c.gap = true, 2, 2
			c.until, c.wait, c.ttl = 12, 3, 1
		}),
		planted("a call that keeps its place ends without a last look", "FIFO", func(c *config) {
			held(c, 99)
			c.breaks = true
			c.prompt, c.calls, c.gap, c.bugs.noLastLook = true, 2, 1, true
			c.until, c.wait, c.ttl = 12, 3, 1
		}),
		deep("a repeated call comes with a new arrival", "FIFO", func(c *config) {
			held(c, 99)
			c.breaks = true
			c.prompt, c.calls, c.gap, c.patience = true, 2, 1, 3
			c.until, c.wait, c.ttl = 12, 4, 1
			c.bugs.newArrival = true
		}),
		deep("an expired ticket is replaced twice", "BOUND", func(c *config) {
			held(c, 99)
			c.callers, c.deaths, c.places = 3, true, 1
			c.until, c.wait, c.ttl, c.bugs.replacesBlindly = 6, 1, 5, true
		}),
		planted("a release forgets the minimum hold", "MINHOLD", func(c *config) {
			three(c)
			c.minHold, c.ttl, c.bugs.releaseDropsHold = 2, 2, true
		}),
		planted("a quarantine shorter than a ticket", "LEFT", func(c *config) {
			three(c)
			c.restore, c.quarantine = true, 2
		}),
	}
}
