package servertest

import "testing"

// Plays reports whether a test plays row n of a large table: the gate plays half of the rows in the
// step test, and the other half with the race detector, where tests are short. Whole, for the
// step soak, plays all.
func Plays(n int, whole bool) bool {
	return whole || (n%2 == 1) == testing.Short()
}
