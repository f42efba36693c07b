// Package must fails tests that get what they do not expect.
package must

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Get returns the value of a call such as os.Open(name), or ends the test with its error: Get(os.Open(name))(t).
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// OK ends the test at the first error that is not nil.
func OK(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Check fails the test, and goes on, unless err is nil.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Fail fails the test, and goes on, unless an error contains the words, or is nil if there are none. What says whose error it is.
func Fail(t testing.TB, what, words string, err error) {
	t.Helper()
	if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
		t.Errorf("%s: error %v, want %q", what, err, words)
	}
}

// Equal fails the test, and goes on, unless got equals want. What says what they are.
func Equal(t testing.TB, what string, want, got any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
