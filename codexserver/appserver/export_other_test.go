//go:build !linux

package appserver

// Left returns nothing on this system.
func (e *Engine) Left() []string { return nil }
