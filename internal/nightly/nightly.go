// Package nightly says how much tests do: little in the gate, and all that they can at night, when CODEXMCP_NIGHTLY
// is set. What a test has only at night it also has with a flag of its own.
package nightly

import "os"

// Tests reports whether tests do all that they can.
func Tests() bool { return os.Getenv("CODEXMCP_NIGHTLY") != "" }

// Number returns few, or many at night.
func Number(few, many int) int {
	if Tests() {
		return many
	}
	return few
}
