package httplease

// What came of a call, in the member "outcome" of its log line. Metrics and
// queries refer to these names; they are not on the wire, but for those of the
// refusals, each the code of its problem.
const (
	OutcomeGranted          = "granted"           // to an acquire
	OutcomeGrantedAbandoned = "granted_abandoned" // after a lease that ran out
	OutcomeRepeated         = "repeated"          // the lease that this request id had been granted
	OutcomeRenewed          = "renewed"
	OutcomeReleased         = "released"
	OutcomeReleasedBefore   = "released_before" // and now again
	OutcomeReleasedLate     = "released_late"   // after it had run out: its TTL is too short
	OutcomeWithdrawn        = "withdrawn"       // a request that had no lease, and gets none
	OutcomeBroken           = "broken"
	OutcomeAlreadyFree      = "already_free" // and so not broken
	OutcomeRead             = "read"

	OutcomeUnknown          = "outcome_unknown"
	OutcomeHeld             = "held"
	OutcomeRequestSpent     = "request_spent"
	OutcomeRequestConflict  = "request_conflict"
	OutcomeTokenChanged     = "token_changed"
	OutcomeExpired          = "lease_expired"
	OutcomeLost             = "lease_lost"
	OutcomeInvalid          = "invalid"
	OutcomeForbidden        = "forbidden"
	OutcomeNotFound         = "not_found"
	OutcomeMethodNotAllowed = "method_not_allowed"
	OutcomeTooLarge         = "too_large"
	OutcomeThrottled        = "throttled"
	OutcomeTooManyWithdrawn = "too_many_withdrawn"
	OutcomeMisconfigured    = "misconfigured"
	OutcomeUnavailable      = "unavailable"
	OutcomeClockSkew        = "clock_skew"
	OutcomeQuarantine       = "quarantine"
)
