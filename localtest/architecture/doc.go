// Package architecture keeps the rules about the whole repository that no
// compiler checks, as tests: who may import whom, what may depend on nothing
// but the standard library, that every package says what it promises, and that
// files stay readable. It has no code; a rule that only people can judge is not
// here.
package architecture
