// Package openapi shows that programs of others can live with the spec of the
// HTTP API: a client that a generator made from it, and a tester that makes up
// calls from it. It has tests only. They need Python with its modules venv and
// pip, which install what is in generator.txt and schemathesis.txt into .tools.
//
// It says nothing of generators for other languages.
package openapi
