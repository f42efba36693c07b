package servertest

import "testing"

// Plays reports whether a test plays row n of a large table: the gate plays three quarters of the rows in the step test,
// and the others with the race detector, where tests are short and a row takes ten times as long. Whole, for the step soak,
// plays all.
func Plays(n int, whole bool) bool {
	return whole || (n%4 == 1) == testing.Short()
}
