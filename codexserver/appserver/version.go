package appserver

import (
	"fmt"
	"strconv"
	"strings"
)

// version is a release of Codex. The zero value is an unknown one.
type version struct{ major, minor, patch int }

// oldest is the first version that the bridge drives. Older ones have today's words, too, but
// Codex 0.80.0 calls tools of MCP servers without asking, and 0.110.0 gives a command of
// command/exec the keys that it is told to leave out.
var oldest = version{0, 125, 0}

// keepsSnapshot is the first version measured whose snapshot of the shell leaves out the variables
// that commands must not get.
var keepsSnapshot = version{0, 169, 0}

// noOnFailure is the first version measured without the policy on-failure.
var noOnFailure = version{0, 143, 0}

// excludesTurns is a version that can leave the turns out of the answer to thread/resume.
// Some earlier ones need the experimental API for that.
var excludesTurns = version{0, 154, 0}

// continuesTurns is the first version measured whose rollouts have the id that a client gave to
// its message, and which lets no other process write to the conversation meanwhile.
var continuesTurns = version{0, 169, 0}

func (v version) String() string {
	if v == (version{}) {
		return "of unknown version"
	}
	return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch)
}

func (v version) less(w version) bool {
	if v.major != w.major {
		return v.major < w.major
	}
	if v.minor != w.minor {
		return v.minor < w.minor
	}
	return v.patch < w.patch
}

// parseVersion reads "0.169.0", also with a suffix as in "0.170.0-alpha.1".
func parseVersion(s string) (version, error) {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "-")
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return version{}, fmt.Errorf("%q is not a version", s)
	}
	var n [3]int
	for i, p := range parts {
		var err error
		if n[i], err = strconv.Atoi(p); err != nil || n[i] < 0 {
			return version{}, fmt.Errorf("%q is not a version", s)
		}
	}
	return version{n[0], n[1], n[2]}, nil
}

// agentVersion reads the version in a user agent, NAME/VERSION (…). The name is the
// client's in new versions and Codex's in old ones.
func agentVersion(userAgent string) (version, error) {
	_, rest, found := strings.Cut(userAgent, "/")
	if !found {
		return version{}, fmt.Errorf("user agent %q has no version", userAgent)
	}
	word, _, _ := strings.Cut(rest, " ")
	return parseVersion(word)
}
