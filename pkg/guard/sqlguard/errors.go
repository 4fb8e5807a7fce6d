package sqlguard

import (
	"errors"
	"reflect"
	"strings"
)

// repeatable reports whether the database ended a transaction, or made it give up
// waiting, and the same may go through the next time.
func repeatable(err error) bool {
	if errors.Is(err, errChanged) {
		return true
	}
	switch number(err) {
	case 1213, 1205, 1020: // a deadlock, a lock timeout, a row that changed (MariaDB)
		return true
	}
	return strings.HasPrefix(state(err), "40")
}

// errChanged is for a fence or a binding that another transaction changed between
// two statements of ours.
var errChanged = errors.New("the fence was changed meanwhile")

// state returns the SQLSTATE that the drivers of PostgreSQL have in their errors,
// or "".
func state(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// number returns the number that the driver of MySQL has in its errors, or 0. That
// has no method for it, and this package knows no driver.
func number(err error) uint64 {
	if err == nil {
		return 0
	}
	if v := reflect.Indirect(reflect.ValueOf(err)); v.Kind() == reflect.Struct {
		if n := v.FieldByName("Number"); n.IsValid() && n.CanUint() {
			return n.Uint()
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return number(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			if n := number(each); n != 0 {
				return n
			}
		}
	}
	return 0
}
