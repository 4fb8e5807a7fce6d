package apigw

// An Event is a request in payload format 2.0, as far as the adapter reads it.
// Its members are described in the API Gateway Developer Guide, "Create AWS
// Lambda proxy integrations for HTTP APIs in API Gateway".
//
// It stands in for the type in package events, which refuses a whole event when
// one claim of a token is not a string.
type Event struct {
	Version         string            `json:"version"`                  // "2.0"
	RouteKey        string            `json:"routeKey"`                 // "$default", or a method and the path of a route
	PathParameters  map[string]string `json:"pathParameters,omitempty"` // by name, what RouteKey's path has in braces
	RawPath         string            `json:"rawPath"`                  // decoded, with the stage or an API mapping in front, or neither
	RawQueryString  string            `json:"rawQueryString"`           // as the client sent it, without "?"
	Cookies         []string          `json:"cookies,omitempty"`        // taken out of the headers, each "name=value"
	Headers         map[string]string `json:"headers"`                  // names in lower case, repeated values joined with commas
	Body            string            `json:"body,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded"` // says how Body is written
	RequestContext  struct {
		Stage      string `json:"stage"`
		RequestID  string `json:"requestId"`
		DomainName string `json:"domainName"`
		TimeEpoch  int64  `json:"timeEpoch"` // milliseconds since 1970
		HTTP       struct {
			Method   string `json:"method"`
			Protocol string `json:"protocol"` // such as "HTTP/1.1"
			SourceIP string `json:"sourceIp"` // IPv4 or IPv6, without port or brackets
		} `json:"http"`
		Authorizer Authorizer `json:"authorizer,omitzero"`
	} `json:"requestContext"`
}
