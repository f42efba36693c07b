//go:build !linux

package mcp

// startOf returns "": this system does not tell when a process began.
func startOf(int) string { return "" }
