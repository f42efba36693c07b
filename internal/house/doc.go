// Package house has the tests that guard the whole repository: who imports whom, what the
// public packages export, what the documents say, and what the program depends on and weighs.
// It has no other code.
package house
