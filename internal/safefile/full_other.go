//go:build !unix

package safefile

// IsFull returns false: a full disk counts as one that cannot be reached.
func IsFull(error) bool { return false }
