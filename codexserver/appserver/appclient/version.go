package appclient

import (
	"fmt"
	"slices"
	"strings"
)

// Version is a release of Codex, its three numbers. The zero value is an unknown one.
type Version [3]int

// Oldest is the first version that this package drives: the first one without a server of its own, and
// the oldest that is tested.
func Oldest() Version { return Version{0, 154, 0} }

// TooOldError means that this package does not drive a Codex that old.
type TooOldError struct {
	// Found and Needed are versions such as "0.59.0".
	Found, Needed string
}

// Error implements error.
func (e *TooOldError) Error() string {
	return fmt.Sprintf("codex %s is too old: %s or newer is needed; update it with `npm i -g @openai/codex@latest`",
		e.Found, e.Needed)
}

// Check returns a [*TooOldError] for a version that this package does not drive.
func (v Version) Check() error {
	if oldest := Oldest(); v.Less(oldest) {
		return &TooOldError{Found: v.String(), Needed: oldest.String()}
	}
	return nil
}

// String returns a version as "0.169.0".
func (v Version) String() string {
	if v == (Version{}) {
		return "of unknown version"
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool {
	return slices.Compare(v[:], w[:]) < 0
}

// ParseVersion reads "0.169.0", also with a suffix as in "0.170.0-alpha.1".
func ParseVersion(s string) (Version, error) {
	var v Version
	s, _, _ = strings.Cut(strings.TrimSpace(s), "-")
	if _, err := fmt.Sscanf(s, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || v.String() != s {
		return Version{}, fmt.Errorf("%q is not a version", s)
	}
	return v, nil
}
