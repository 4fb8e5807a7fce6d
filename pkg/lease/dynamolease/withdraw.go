package dynamolease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// withdraw makes transitions until there is none left to make: after a read, one
// as a rule.
func (s *Store) withdraw(ctx context.Context, n lease.Name, w protocol.Withdrawal) (lease.State, error) {
	seen, now, err := s.read(ctx, n)
	found, changed := seen, false // the last that was seen before a change, and whether there may have been one
	for round := 1; err == nil; round++ {
		// A clock that is ahead takes the markers of others for old. One that is behind
		// sets a marker that is.
		if _, err = s.clock.verdict(s.time()); err != nil {
			break
		}
		if err = s.Rules.Open(now, lease.CallFrom(ctx)); err != nil {
			break
		}
		var next protocol.Record
		next, err = seen.Withdraw(now, w, s.Rules)
		switch {
		case err != nil:
		case next == seen:
			state := seen.Withdrawn(n, now, w)
			state.Ended = found.Withdrawn(n, now, w).Ended
			return state, nil
		case round > maxRounds:
			err = &lease.RetryError{Err: lease.ErrUnavailable, After: 100 * time.Millisecond}
		default:
			var o outcome
			o, err = s.update(ctx, n, withdrawing(seen, next, w))
			seen, now = o.Record, s.now()
			if o.refused {
				found = seen
			}
			changed = changed || err == nil && !o.refused || o.unanswered
		}
	}
	if changed && !errors.Is(err, lease.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: ended, and not withdrawn for as long as it should be: %w", lease.ErrOutcomeUnknown, err)
	}
	return lease.State{}, err
}

// withdrawing turns the record seen into next, the one after w. Grants and
// renewals in between do not stop it, unless the grant is that of the request.
// A grant that was taken back has the expiry of the lease before it, and keeps it.
func withdrawing(seen, next protocol.Record, w protocol.Withdrawal) change {
	var u expression.UpdateBuilder
	only := unspent
	values := map[string]types.AttributeValue{":rid": str(w.RequestID)}
	if seen.RequestID == w.RequestID {
		only = rid.Equal(param("rid")).And(lid.AttributeNotExists().Or(exp.Equal(pexp)))
	}
	if seen.LeaseID != next.LeaseID {
		u, only = u.Set(free, hold).Remove(lid).Remove(exp), named.And(exp.GreaterThan(pexp))
		values = map[string]types.AttributeValue{":lid": str(seen.LeaseID), ":tok": num(seen.Token)}
	}
	switch {
	case next.Retire == seen.Retire: // an item that is made anew, after a retirement, has to retire too
		only = only.And(gc.AttributeExists())
	case seen.Retire == 0:
		u, only = u.Set(gc, param("gc")), only.And(gc.AttributeNotExists())
		values[":gc"] = num(next.Retire)
	default:
		u, only = u.Set(gc, param("gc")), only.And(gc.Equal(param("old")))
		values[":gc"], values[":old"] = num(next.Retire), num(seen.Retire)
	}
	until := num(next.Markers.Until(w.Mark()))
	switch {
	case next.Markers == seen.Markers:
	case seen.Markers == protocol.Markers{}: // there is no map, or an empty one
		u, only = u.Set(x, param("x")), only.And(x.AttributeNotExists().Or(x.Size().Equal(param("zero"))))
		values[":x"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{w.Mark(): until}}
		values[":zero"] = num(0)
	default:
		values[":until"], values[":most"] = until, num(len(next.Markers))
		return replacing(seen.Markers, next.Markers, w.Mark(), u, only, values)
	}
	return change{statement: compile(u, only), values: values}
}

// replacing adds to an update and its condition that the marker new is set, and
// that those are removed which next no longer has. Conditions see the map as it
// was: when it is full, there is room where the first that is replaced still is.
func replacing(seen, next protocol.Markers, new string, u expression.UpdateBuilder, only expression.ConditionBuilder, values map[string]types.AttributeValue) change {
	marks := []string{new}
	u = u.Set(mark, param("until"))
	room := x.Size().LessThan(param("most"))
	if seen.Until(new) != 0 {
		room = room.Or(mark.AttributeExists())
	}
	for _, old := range seen.All() {
		if next.Until(old.Mark) != 0 {
			continue
		}
		d := expression.Name("x.d" + strconv.Itoa(len(marks)))
		if u = u.Remove(d); len(marks) == 1 {
			room = room.Or(d.AttributeExists())
		}
		marks = append(marks, old.Mark)
	}
	c := change{statement: compile(u, only.And(room)), values: values}
	c.nameMarks(marks...)
	return c
}

// nameMarks gives the markers of a statement their names in the map: w, then
// those that it replaces.
func (c *change) nameMarks(marks ...string) {
	c.names = maps.Clone(c.names)
	for i, m := range marks {
		alias := "#w"
		if i > 0 {
			alias = "#d" + strconv.Itoa(i)
		}
		c.names[alias] = m
	}
}
