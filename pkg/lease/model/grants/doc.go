// Package grants checks the life of one lock's leases: acquire, renew, release,
// break, retirement and restore, by up to three clients, in all the orders in
// which the requests to the store can be carried out.
//
// What the real system leaves open is a choice here: which time a host reads
// (the true one, more or less the skew), when a request is carried out, whether
// twice, whether its answer arrives, and whether the client tries again, goes on,
// or is never heard of again.
//
//	TOKEN      every grant and break has a larger token than all before
//	EXCLUSION  at most one client trusts a lease
//	BELIEF     the item holds the lease that a client trusts
//	DUPLICATE  one request to acquire is granted once
//	REPLAY     a repeat is answered with the grant of its own request and caller
//	REFUSED    a client's own repeat is not told that another holds the lock
//	FOREIGN    renew, release and break change the lease that they name
//	MINHOLD    nothing is granted before a minimum hold has ended
//	LIVE       a free lock is granted in two requests
//	DRIFT      the counter stays near the clock of the grants
//	ABANDONED  a grant tells of the lease before if, and only if, that ran out
//	RELEASED   "released before" is said of a lease that was released
//	REPEATED   a repeated release is told so while the next lease is the last
//	FLOOR      no lease that was granted after a restore is below its floor
//	REOPENED   a quarantine that has ended does not begin again
//	FENCING    guarded storage accepts no write of a grant after one of a later
//	LOCKOUT    guarded storage accepts the writes of the newest grant
//
// It knows one lock, a few ticks of the clock and one restore. Clocks are off
// within their bound, and do not drift or stand still.
package grants
