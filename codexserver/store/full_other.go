//go:build !unix

package store

// isFull returns false: a full disk counts as a store that cannot be reached.
func isFull(error) bool { return false }
