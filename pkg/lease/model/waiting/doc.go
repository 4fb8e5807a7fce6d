// Package waiting checks the queue of a lock and the release by request id: up
// to three callers, each with one request that may wait, and all the orders in
// which the requests to the store can be carried out.
//
//	TOKEN    every grant has a larger token than all before
//	EXCL     nothing is granted while a lease holds the lock
//	MINHOLD  nothing is granted before a minimum hold has ended
//	CANCEL   once a release by request id was answered, the request holds
//	         nothing and is never granted, whatever arrives late or twice
//	FIFO     no living waiter is passed over by one that stands behind it
//	LIVE     a free lock is granted while someone waits for it
//	BOUND    a queue has no more tickets than places
//	LEFT     no ticket of before a restore counts when its quarantine has ended
//
// FIFO and LIVE are promised only where a request takes less than a tick and
// every living waiter looks in time; the other invariants need no such thing.
// There are no renewals here, and leases are not trusted by any clock: package
// grants has both.
package waiting
