package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// MaxHost is the length of the longest name of a host that a command may ask for: a person sees all of it.
const MaxHost = 100

// hostName matches a name with a dot. The last part of an address is a number, perhaps 0x….
var hostName = lazyregexp.Regexp{Text: `^([A-Za-z0-9_-]{1,63}\.)+[A-Za-z][A-Za-z0-9_-]{0,62}\.?$`}

// Host returns the name of a host as rules and questions have it, in lower case and without a dot at its end. The error
// says what is wrong with the name. An address is none, in whatever spelling, nor is a name without a dot, which leads to
// this machine or its neighbours. A name of other letters is written in ASCII, as xn--….
func Host(name string) (string, error) {
	if len(name) > MaxHost || !hostName.Get().MatchString(name) {
		return "", fmt.Errorf("want a name in ASCII with a dot, of at most %d characters, and no address", MaxHost)
	}
	return strings.ToLower(strings.TrimSuffix(name, ".")), nil
}

// HostPattern checks the host of a rule: a name, or *.name for what is below it. It returns it in lower case.
func HostPattern(pattern string) (string, error) {
	below, isBelow := strings.CutPrefix(pattern, "*.")
	host, err := Host(below)
	if err != nil {
		return "", fmt.Errorf(`%q: %w, such as "proxy.golang.org", or "*.npmjs.org"`, pattern, err)
	}
	if isBelow {
		host = "*." + host
	}
	return host, nil
}

// CoversHost reports whether one of the patterns covers a host, as [Host] returns it.
func CoversHost(patterns []string, host string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, is := strings.CutPrefix(p, "*")
		return p == host || is && strings.HasSuffix(host, below)
	})
}
