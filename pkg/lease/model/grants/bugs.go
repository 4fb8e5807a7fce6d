package grants

import (
	"slices"

	"github.com/pawl-lock/pawl/pkg/lease/model/explore"
)

// PlantedBugs returns what must be found.
func PlantedBugs() []explore.Case {
	return slices.Concat(acquireBugs(), leaseBugs(), tableBugs(), clientBugs())
}

func acquireBugs() []explore.Case {
	return []explore.Case{
		deep("a fast grant ignores acq", "DUPLICATE", func(c *config) { c.bugs.fastIgnoresClock, c.drifts = true, true }),
		planted("a fast grant ignores acq, a release forgets rid", "DUPLICATE", func(c *config) {
			c.bugs.fastIgnoresClock, c.bugs.releaseForgetsRequest = true, true
		}),
		planted("a fast grant ignores free", "BELIEF", func(c *config) { c.bugs.fastIgnoresFree = true }),
		planted("OR without parentheses", "BELIEF", func(c *config) { c.bugs.fastWithoutParentheses = true }),
		planted("read, then write", "BELIEF", func(c *config) { c.bugs.readsThenWrites = true }),
		planted("a spent request id is granted", "REFUSED", func(c *config) { c.bugs.spentIgnored = true }),
		planted("a guessed request id gets the lease", "REPLAY", func(c *config) {
			c.guesses, c.bugs.anyPrincipal = true, true
			c.times(5, 2, 1, 1, 0, 1)
		}),
		planted("no slow grant", "LIVE", func(c *config) { c.bugs.noSlowPath = true }),
		deep("a slow grant does not compare tok", "DUPLICATE", func(c *config) {
			c.bugs.slowWithoutCompare, c.drifts = true, true
			c.times(4, 2, 2, 0, 0, 2)
		}),
		deep("a slow grant sets acq to its clock", "DUPLICATE", func(c *config) {
			c.bugs.slowClockIsNow, c.drifts = true, true
			c.times(5, 1, 2, 0, 0, 2)
		}),
		deep("a slow grant does not count acq up", "TOKEN", func(c *config) {
			c.bugs.slowClockIsMax, c.units, c.drifts = true, 1, true
			retired(c)
			c.times(11, 1, 3, 0, 0, 1)
		}),
		planted("a release forgets the minimum hold", "MINHOLD", func(c *config) {
			c.minHold, c.ttl, c.bugs.releaseDropsHold = 2, 3, true
			c.retries, c.renewals = 0, 0
		}),
	}
}

func leaseBugs() []explore.Case {
	return []explore.Case{
		deep("a renewal ignores the token of a reused lease id", "FOREIGN", func(c *config) {
			c.bugs.renewIgnoresToken, c.bugs.leaseIDPerClient = true, true
			c.clients, c.requestIDs, c.until = 1, 2, 6
		}),
		deep("a renewal ignores lease id and token", "FOREIGN", func(c *config) {
			c.bugs.renewIgnoresID, c.bugs.renewIgnoresToken = true, true
		}),
		deep("a renewal without a condition", "FOREIGN", func(c *config) { c.bugs.renewUpserts, c.drifts = true, true }),
		deep("a renewal's OR without parentheses", "FOREIGN", func(c *config) {
			c.bugs.renewWithoutParentheses, c.until = true, 8
		}),
		deep("a late renewal shortens the lease", "BELIEF", func(c *config) {
			c.bugs.renewShortens, c.skew, c.grace, c.inFlight = true, 0, 0, 3
			c.times(8, 3, 1, 0, 2, 2)
		}),
		deep("a release without conditions", "FOREIGN", func(c *config) { c.bugs.releaseIgnoresAll = true }),
		planted("a release ignores the token of a reused lease id", "FOREIGN", func(c *config) {
			c.bugs.releaseIgnoresToken, c.bugs.leaseIDPerClient = true, true
			c.clients, c.requestIDs, c.renewals = 1, 2, 0
		}),
		planted("a release deletes the item", "TOKEN", func(c *config) { c.bugs.releaseDeletes = true; c.copies = 1 }),
		planted("a break ignores the token", "FOREIGN", func(c *config) {
			c.breaks, c.bugs.breakIgnoresToken = true, true
			c.renewals, c.retries = 0, 0
		}),
		deep("a break leaves acq", "TOKEN", func(c *config) {
			c.breaks, c.bugs.breakIgnoresClock, c.units, c.drifts = true, true, 1, true
			retired(c)
			c.times(11, 1, 2, 0, 0, 1)
		}),
		planted("a release leaves exp", "ABANDONED", func(c *config) {
			c.past, c.bugs.releaseKeepsExpiry = true, true
			c.times(6, 2, 1, 0, 0, 1)
		}),
		planted("released before, however it ended", "RELEASED", func(c *config) {
			c.past, c.bugs.releasedHoweverItEnded = true, true
			c.times(7, 1, 1, 0, 0, 1)
		}),
		planted("a release does not look at the lease before", "REPEATED", func(c *config) {
			c.past, c.bugs.noSecondRule = true, true
			c.times(6, 2, 1, 0, 0, 2)
		}),
		planted("a break uses up no token", "RELEASED", func(c *config) {
			c.past, c.breaks, c.bugs.breakDoesNotCount = true, true, true
			c.times(5, 2, 1, 0, 0, 1)
		}),
	}
}

func tableBugs() []explore.Case {
	restored := func(name, breaks string, set func(*config)) explore.Case {
		return planted(name, breaks, func(c *config) { c.restores = true; set(c) })
	}
	deepRestored := func(name, breaks string, set func(*config)) explore.Case {
		return deep(name, breaks, func(c *config) { c.restores = true; set(c) })
	}
	return []explore.Case{
		planted("a new item starts at 0", "TOKEN", func(c *config) {
			retired(c)
			c.bugs.startsAtZero = true
			c.times(9, 1, 1, 0, 0, 1)
		}),
		planted("an item is retired in use", "BELIEF", func(c *config) {
			c.retires, c.bugs.retiresInUse, c.bugs.retiresAboveClock = true, true, true
		}),
		planted("the retention is shorter than a request lives", "DUPLICATE", func(c *config) {
			c.retires, c.life, c.retention = true, 2, 2
			c.bugs.retiresAboveClock = true
			c.times(10, 1, 1, 0, 0, 2)
		}),
		planted("an item is retired when idle, whatever its clock", "DUPLICATE", func(c *config) {
			retired(c)
			c.bugs.retiresAboveClock = true
			c.times(11, 1, 1, 0, 0, 2)
		}),
		deep("a renewal's gc forgets tok", "TOKEN", func(c *config) { runaway(c); c.bugs.renewRetiresByExpiry = true }),
		deep("a slow grant's gc forgets tok", "TOKEN", func(c *config) {
			runaway(c)
			c.renewals, c.bugs.slowRetiresByExpiry = 0, true
		}),
		restored("grants ignore the floor", "FLOOR", func(c *config) {
			c.bugs.grantIgnoresFloor = true
			c.times(9, 1, 2, 0, 0, 1)
		}),
		deepRestored("the floor is the time of the restore", "TOKEN", func(c *config) {
			c.bugs.floorAtRestore = true
			c.times(8, 1, 2, 0, 0, 1)
		}),
		restored("a fast grant ignores the floor", "FLOOR", func(c *config) {
			c.bugs.fastIgnoresFloor, c.drifts = true, true
			c.times(8, 1, 2, 0, 0, 1)
		}),
		deepRestored("a slow grant does not jump over the floor", "FLOOR", func(c *config) {
			c.bugs.slowDoesNotJump, c.drifts = true, true
			c.times(8, 1, 2, 0, 0, 1)
		}),
		deepRestored("a renewal ignores the floor", "EXCLUSION", func(c *config) {
			c.breaks, c.bugs.renewIgnoresFloor = true, true
			c.times(9, 2, 1, 0, 1, 1)
		}),
		deepRestored("a break ignores the floor", "TOKEN", func(c *config) {
			c.breaks, c.bugs.breakIgnoresFloor, c.drifts = true, true, true
			c.times(9, 1, 1, 0, 0, 1)
		}),
		restored("no quarantine", "FLOOR", func(c *config) { c.bugs.noQuarantine = true; c.times(7, 3, 1, 0, 0, 1) }),
		restored("a quarantine that is one tick short", "EXCLUSION", func(c *config) {
			c.bugs.shortQuarantine = true
			c.times(9, 2, 1, 0, 1, 1)
		}),
		deepRestored("a repeat's remaining time is not capped", "EXCLUSION", func(c *config) {
			c.bugs.remainingNotCapped = true
			c.times(9, 2, 1, 1, 1, 1)
		}),
		restored("the floor follows the maximum TTL", "FLOOR", func(c *config) {
			c.bugs.floorFromLimits, c.laterTTL, c.drifts = true, 5, true
			c.times(10, 2, 1, 0, 0, 1)
		}),
		restored("the quarantine follows a longer maximum TTL", "REOPENED", func(c *config) {
			c.bugs.quarantineFromLimits, c.laterTTL = true, 5
			c.times(9, 2, 1, 0, 0, 1)
		}),
		restored("the quarantine follows a shorter maximum TTL", "EXCLUSION", func(c *config) {
			c.bugs.quarantineFromLimits, c.laterTTL = true, 1
			c.times(10, 4, 1, 0, 0, 1)
		}),
	}
}

func clientBugs() []explore.Case {
	return []explore.Case{
		planted("neither grace nor margin", "BELIEF", func(c *config) { c.grace = 0 }),
		planted("a grace of half the difference of two clocks", "BELIEF", func(c *config) { c.grace = 1 }),
		planted("a deadline from the receipt", "BELIEF", func(c *config) {
			c.bugs.deadlineFromReceipt, c.lateAnswers = true, true
			c.skew, c.grace = 0, 0
		}),
		planted("a repeat gets the full TTL", "BELIEF", func(c *config) {
			c.bugs.fullTTLForRepeat = true
			c.skew, c.grace = 0, 0
		}),
		planted("trust after a release", "BELIEF", func(c *config) {
			c.bugs.trustsAfterRelease = true
			c.renewals, c.retries = 0, 0
		}),
		deep("an unanswered renewal is taken as made", "BELIEF", func(c *config) { c.bugs.assumesRenewed = true }),
		deep("the guard does not store the token", "FENCING", func(c *config) {
			c.guarded, c.bugs.guardDoesNotStore = true, true
		}),
		deep("the guard compares backwards", "LOCKOUT", func(c *config) { c.guarded, c.bugs.guardBackwards = true, true }),
		planted("the guard wants a larger token", "LOCKOUT", func(c *config) { c.guarded, c.bugs.guardStrict = true, true }),
	}
}
