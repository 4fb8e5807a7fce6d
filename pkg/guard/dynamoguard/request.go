package dynamoguard

import (
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A request is what one write of the caller comes to in all kinds of request.
type request struct {
	condition *string
	update    *string // nil for a put
	names     map[string]string
	values    Item
}

// A mark is what becomes of the mark of a tombstone.
type mark int

const (
	live mark = iota // it goes
	gone             // it is set
	same             // it stays as it is
)

// completed returns the request with the whole guard. What names the guard uses,
// begins with pawl, so that they are not the caller's.
func (c claim) completed(r request, seen map[string]fence.Token, m mark) (request, error) {
	r.names, r.values = maps.Clone(r.names), maps.Clone(r.values)
	if r.names == nil {
		r.names = make(map[string]string)
	}
	if r.values == nil {
		r.values = make(Item)
	}
	for name := range r.names {
		if strings.HasPrefix(name, "#pawl_") {
			return r, fmt.Errorf("%w: the request has the name %s, which is the guard's", fence.ErrInvalid, name)
		}
	}
	r.names["#pawl_lock"], r.values[":pawl_lock"] = c.a.lock(), binding(c.declared)
	r.names["#pawl_write"], r.values[":pawl_write"] = c.a.write(), text(c.id)
	r.names["#pawl_tombstone"] = c.a.tombstone()
	none := []string{
		"attribute_not_exists(#pawl_lock)", "attribute_not_exists(#pawl_write)", "attribute_not_exists(#pawl_tombstone)",
	}
	ours := []string{"#pawl_lock = :pawl_lock", "attribute_exists(#pawl_write)", "#pawl_write <> :pawl_write"}
	set := []string{"#pawl_lock = :pawl_lock", "#pawl_write = :pawl_write"}
	for i, lock := range c.declared {
		name, value := fmt.Sprintf("#pawl_fence%d", i), fmt.Sprintf(":pawl_token%d", i)
		r.names[name] = c.attribute(lock)
		none = append(none, fmt.Sprintf("attribute_not_exists(%s)", name))
		switch t := c.held(lock); {
		case t != 0:
			r.values[value] = number(t)
			ours, set = append(ours, name+" <= "+value), append(set, name+" = "+value)
		case r.update != nil:
			r.values[value] = number(0)
			set = append(set, fmt.Sprintf("%s = if_not_exists(%s, %s)", name, name, value))
		default: // a put must not forget it
			r.values[value] = number(seen[lock])
			ours = append(ours, name+" = "+value)
		}
	}
	guard := fmt.Sprintf("((%s) OR (%s))", strings.Join(none, " AND "), strings.Join(ours, " AND "))
	if r.condition != nil && strings.TrimSpace(*r.condition) != "" {
		guard = "(" + *r.condition + ") AND " + guard
	}
	r.condition = &guard
	if r.update == nil {
		return r, nil
	}
	remove := ""
	switch m {
	case live:
		remove = "#pawl_tombstone"
	case gone:
		set = append(set, "#pawl_tombstone = :pawl_true")
		r.values[":pawl_true"] = &types.AttributeValueMemberBOOL{Value: true}
	}
	edited := extend(extend(*r.update, "SET", strings.Join(set, ", ")), "REMOVE", remove)
	r.update = &edited
	return r, nil
}

// extend adds to a clause of an update expression, which has each at most once. A
// word is the name of a clause unless it stands where an operand must: names of
// attributes may be the same.
func extend(update, clause, more string) string {
	if more == "" {
		return update
	}
	operand := false // whether one has just ended
	for i := 0; i < len(update); {
		c := update[i]
		end := i + 1
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i = end
			continue
		case c == '#' || c == ':' || word(c):
			for end < len(update) && word(update[end]) {
				end++
			}
			isClause := word(c) && (operand || strings.TrimSpace(update[:i]) == "")
			if isClause && strings.EqualFold(update[i:end], clause) {
				return update[:end] + " " + more + ", " + strings.TrimLeft(update[end:], " \t\r\n")
			}
			operand = !isClause
		case c == ')' || c == ']':
			operand = true
		default: // , = + - ( [ .
			operand = false
		}
		i = end
	}
	return strings.TrimSpace(update + " " + clause + " " + more)
}

func word(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
