package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// prefix is what the names of all our parameters start with in the context.
const prefix = "pawl:"

// parameters are read once each, by name. Errors are kept for the end, so that
// all of them can be told at once.
type parameters struct {
	given map[string]string
	known map[string]bool
	errs  []error
}

func newParameters(context map[string]any) *parameters {
	p := &parameters{given: make(map[string]string), known: make(map[string]bool)}
	for name, value := range context {
		if name, ours := strings.CutPrefix(name, prefix); ours {
			switch v := value.(type) {
			case float64: // from JSON: fmt would write it with an exponent
				p.given[name] = strconv.FormatFloat(v, 'f', -1, 64)
			default:
				p.given[name] = fmt.Sprint(v)
			}
		}
	}
	return p
}

func (p *parameters) text(name string) string {
	p.known[name] = true
	return p.given[name]
}

func (p *parameters) list(name string) []string {
	text := p.text(name)
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (p *parameters) number(name string) (n float64) {
	if text := p.text(name); text != "" {
		var err error
		if n, err = strconv.ParseFloat(text, 64); err != nil || n == 0 {
			p.errs = append(p.errs, fmt.Errorf("%s%s is %q, want a number that is not 0", prefix, name, text))
		}
	}
	return n
}

func (p *parameters) integer(name string) int {
	n := p.number(name)
	if n != float64(int(n)) {
		p.errs = append(p.errs, fmt.Errorf("%s%s is %v, want a whole number", prefix, name, n))
	}
	return int(n)
}

func (p *parameters) yes(name string) bool {
	switch text := p.text(name); text {
	case "true":
		return true
	case "", "false":
		return false
	default:
		p.errs = append(p.errs, fmt.Errorf("%s%s is %q, want true or false", prefix, name, text))
		return false
	}
}

// err reports what was wrong, and what nobody asked for: a limit with a typing
// error in its name would silently not be one.
func (p *parameters) err() error {
	errs := p.errs
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		if !p.known[name] {
			errs = append(errs, fmt.Errorf("%s%s is no parameter of this app", prefix, name))
		}
	}
	return errors.Join(errs...)
}
