package leasetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// A holding is all that the model of a lock remembers.
type holding struct {
	token fence.Token // of the last grant
	held  bool
}

// lock is the specification of a lock whose leases do not run out.
var lock = porcupine.Model{
	Init: func() any { return holding{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(holding), input.(Op)
		mine := s.held && s.token == op.Lease.Token
		switch {
		case errors.Is(op.Err, lease.ErrThrottled), errors.Is(op.Err, lease.ErrUnavailable):
			return true, s
		case op.Kind == Acquire && op.Err == nil:
			return !s.held && op.Lease.Token > s.token, holding{op.Lease.Token, true}
		case op.Kind == Acquire:
			return errors.Is(op.Err, lease.ErrHeld) && s.held, s
		case op.Kind == Renew:
			return mine == (op.Err == nil), s
		case op.Err != nil: // the release of a lease that is held
			return false, s
		}
		return mine, holding{s.token, false}
	},
	DescribeOperation: func(input, _ any) string {
		op := input.(Op)
		return fmt.Sprintf("caller %d: %s token %d: %v", op.Caller, op.Kind, op.Lease.Token, op.Err)
	},
}

// Linearizable checks that there is one order of the operations, in agreement
// with real time, in which a lock without any concurrency would have answered
// the same. It is for short histories in which no lease ran out and none was
// broken; how long it takes grows exponentially with how many callers overlap.
// The error of a history without such an order says where the history and a
// picture of it were written: to ARTIFACTS, or to the directory for temporary files.
func (h *History) Linearizable(timeout time.Duration) error {
	all := h.Ops()
	var ops []porcupine.Operation
	for _, op := range all {
		ops = append(ops, porcupine.Operation{
			ClientId: op.Caller,
			Input:    op,
			Call:     op.Called.UnixNano(),
			Return:   op.Ended.UnixNano(),
		})
	}
	switch porcupine.CheckOperationsTimeout(lock, ops, timeout) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%d operations could not be checked in %v", len(ops), timeout)
	}
	_, info := porcupine.CheckOperationsVerbose(lock, ops, timeout) // what the first check did not keep
	return unexplained(all, info)
}
