//go:build !linux && !darwin

package run

// unblocked calls start.
func unblocked(start func() error) error { return start() }
