// Package gateway is an API Gateway HTTP API (payload format 2.0) and a Lambda
// service on one machine: a compiled bootstrap runs behind it as it would run
// in AWS, with the same events, the same checks and the same refusals.
//
//	request ─▶ Gateway ─▶ route ─▶ throttle ─▶ Authorizer ─▶ event ─▶ Lambda ─▶ bootstrap
//	              ▲          404        429        401/403               │   one process per
//	              └───────── response, or 500/503 {"message": …} ◀───────┘   concurrent invoke
//
// It imports nothing of the service, so that a mistake there is not repeated
// here. Where AWS documents a behaviour it follows the documentation;
// where AWS does not, the comment beside the code says what was chosen and why.
//
// What it does not imitate: policies (an authenticated IAM caller may call
// everything), presigned URLs, route scopes, CORS, custom domains, mutual TLS,
// the quotas on headers and on Lambda payloads, extensions, and response
// streaming. A process is not frozen between invokes: goroutines that a
// function leaves behind go on running, where in AWS they would stop. Tests
// that depend on these need a real account.
package gateway
