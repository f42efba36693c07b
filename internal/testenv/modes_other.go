//go:build !unix

package testenv

// usualModes does nothing: files have no modes.
func usualModes() {}
