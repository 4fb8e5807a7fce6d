package gateway

import (
	"fmt"
	"net/url"
	"strings"
)

// A Route is one route of the API and the function behind it.
type Route struct {
	// Key is a method (or ANY) and a path, as in "POST /v1/{namespace}/acquire";
	// {name+}, as the last segment, takes the rest of the path. "$default" takes
	// what no other route does.
	Key string

	// Public routes are open to everyone.
	Public bool

	// Throttle is the route's own; a stage has none for all. Nil means unlimited.
	Throttle *Throttle

	Lambda *Lambda
}

// decodePath returns the path that the function will see. An HTTP API decodes
// it, drops what follows a "?" that appeared, and then decodes it once more:
// %2F and %252F both arrive as "/", %3F ends the path, %253F arrives as "?",
// and %25 before anything but two hex digits is refused. This is not documented;
// it is what published captures of live events show.
func decodePath(escaped string) (string, error) {
	path, err := url.PathUnescape(escaped)
	if err == nil {
		path, _, _ = strings.Cut(path, "?")
		path, err = url.PathUnescape(path)
	}
	if err != nil {
		return "", fmt.Errorf("path: %w", err)
	}
	return path, nil
}

// route returns the most specific route for a decoded path, and its parameters.
// Segment by segment, a literal beats {name} beats {name+}; then a method beats
// ANY. There is no 405: an HTTP API knows no path apart from its method.
func (g *Gateway) route(method, path string) (best *Route, params map[string]string) {
	if g.Stage != "" && g.Stage != "$default" {
		var ok bool
		if path, ok = strings.CutPrefix(path, "/"+g.Stage); !ok || path != "" && path[0] != '/' {
			return nil, nil
		}
	}
	bestRank := ""
	for i := range g.Routes {
		if rank, p, ok := match(g.Routes[i].Key, method, path); ok && (best == nil || rank < bestRank) {
			best, bestRank, params = &g.Routes[i], rank, p
		}
	}
	return best, params
}

// match reports whether a route takes a request. Ranks compare as strings, the
// most specific first.
func match(key, method, path string) (rank string, params map[string]string, ok bool) {
	if key == "$default" {
		return "z", nil, true
	}
	routeMethod, pattern, _ := strings.Cut(key, " ")
	if routeMethod != method && routeMethod != "ANY" {
		return "", nil, false
	}
	params = map[string]string{}
	rest, segments := strings.TrimPrefix(path, "/"), strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for i, segment := range segments {
		name, isParam := strings.CutPrefix(strings.TrimSuffix(segment, "}"), "{")
		greedy, isGreedy := strings.CutSuffix(name, "+")
		got, after, more := strings.Cut(rest, "/")
		last := i == len(segments)-1
		switch {
		case isParam && isGreedy && last && rest != "":
			params[greedy] = rest
			rank += "2"
			more = false
		case isParam && !isGreedy && got != "":
			params[name] = got
			rank += "1"
		case !isParam && got == segment:
			rank += "0"
		default:
			return "", nil, false
		}
		if more && last {
			return "", nil, false
		}
		rest = after
	}
	if routeMethod == "ANY" {
		rank += "a"
	}
	return rank, params, true
}
