// Package faultproxy stands between a client and a DynamoDB and does to their
// requests what networks, middleboxes and DynamoDB itself do: it loses them,
// their answers, or half of an answer, it repeats and delays them, and it
// answers in DynamoDB's place. A test says which [Fault] the next requests of
// an operation meet, and sees what was sent and what came of it. Nothing is left
// to timing: what is late arrives when the test says so.
//
// Its faults are of whole requests and answers. It knows nothing of TLS, and it
// changes the host that a request is signed for: the engine behind it must not
// check signatures.
package faultproxy
