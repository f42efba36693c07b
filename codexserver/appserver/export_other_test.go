//go:build !linux

package appserver

// Left finds nothing here.
func (e *Engine) Left() []string { return nil }
