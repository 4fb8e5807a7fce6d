// Package routes says which calls the deployed API has, who may make them, and
// which function answers: it reads that from the template of the API stack, so
// that what serves the calls on one machine cannot differ from what is deployed.
//
// It knows the shape that package infra gives a template, and fails on another.
// It needs neither the CDK nor node.
package routes

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

//go:embed template.json
var committed []byte

// A Route is one call.
type Route struct {
	Key    string // a method and a path: "POST /v1/{namespace}/acquire"
	Public bool   // for everyone; else the API's authorizer is asked
	Throttle
	Function
}

// A Throttle is what the gateway lets in: requests a second, and at once.
type Throttle struct {
	Rate  float64 `json:"ThrottlingRateLimit"`
	Burst int     `json:"ThrottlingBurstLimit"`
}

// A Function answers calls.
type Function struct {
	ID          string        // of the resource
	Timeout     time.Duration // after which Lambda ends it
	Concurrency int           // reserved; 0 means none
}

// Deployed returns the routes of the default stack, as it was committed. A test
// in package infra holds the template against what the stack is.
func Deployed() ([]Route, error) { return Read(committed) }

// Read returns the routes of a synthesized template, in the order of their keys.
func Read(template []byte) ([]Route, error) {
	var t struct {
		Resources map[string]struct {
			Type       string
			Properties json.RawMessage
		}
	}
	if err := json.Unmarshal(template, &t); err != nil {
		return nil, fmt.Errorf("routes: template: %w", err)
	}
	property := func(id, kind string, into any) error {
		r := t.Resources[id]
		if r.Type != kind {
			return fmt.Errorf("routes: %q is a %q, want %s", id, r.Type, kind)
		}
		if err := json.Unmarshal(r.Properties, into); err != nil {
			return fmt.Errorf("routes: %s: %w", id, err)
		}
		return nil
	}
	var stage struct{ RouteSettings map[string]Throttle }
	for id, r := range t.Resources {
		if r.Type == "AWS::ApiGatewayV2::Stage" {
			if err := property(id, r.Type, &stage); err != nil {
				return nil, err
			}
		}
	}
	var routes []Route
	for id, r := range t.Resources {
		if r.Type != "AWS::ApiGatewayV2::Route" {
			continue
		}
		var route struct {
			RouteKey, AuthorizationType string
			Target                      struct {
				Join []json.RawMessage `json:"Fn::Join"`
			}
		}
		var integration struct {
			IntegrationURI struct {
				GetAtt []string `json:"Fn::GetAtt"`
			} `json:"IntegrationUri"`
		}
		var function struct{ Timeout, ReservedConcurrentExecutions int }
		err := property(id, r.Type, &route)
		if err == nil {
			err = property(reference(route.Target.Join), "AWS::ApiGatewayV2::Integration", &integration)
		}
		of := append(integration.IntegrationURI.GetAtt, "")[0]
		if err == nil {
			err = property(of, "AWS::Lambda::Function", &function)
		}
		if err == nil && stage.RouteSettings[route.RouteKey].Burst == 0 {
			err = fmt.Errorf("routes: %s has no throttle", route.RouteKey)
		}
		if err != nil {
			return nil, err
		}
		routes = append(routes, Route{
			Key:      route.RouteKey,
			Public:   route.AuthorizationType == "NONE",
			Throttle: stage.RouteSettings[route.RouteKey],
			Function: Function{
				ID:          of,
				Timeout:     time.Duration(function.Timeout) * time.Second,
				Concurrency: function.ReservedConcurrentExecutions,
			},
		})
	}
	slices.SortFunc(routes, func(a, b Route) int { return strings.Compare(a.Key, b.Key) })
	return routes, nil
}

// reference returns the resource in the two arguments of a join of a text and a
// reference.
func reference(join []json.RawMessage) string {
	var parts []json.RawMessage
	if len(join) != 2 || json.Unmarshal(join[1], &parts) != nil || len(parts) != 2 {
		return ""
	}
	var ref struct{ Ref string }
	if json.Unmarshal(parts[1], &ref) != nil {
		return ""
	}
	return ref.Ref
}
