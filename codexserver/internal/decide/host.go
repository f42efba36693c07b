package decide

import (
	"errors"
	"fmt"
	"strings"
)

// MaxHost is the length of the longest name of a host that a command may ask for: a person sees all of it.
const MaxHost = 100

// Host returns the name of a host as rules and questions have it, in lower case and without a dot at its end. The error
// says what is wrong with the name. An address is none, in whatever spelling, nor is a name without a dot, which leads to
// this machine or its neighbours. A name of other letters is written in ASCII, as xn--….
func Host(name string) (string, error) {
	if len(name) > MaxHost {
		return "", fmt.Errorf("a name of more than %d characters", MaxHost)
	}
	host := strings.TrimSuffix(name, ".")
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, noLetter) {
			return "", errors.New("not the name of a host in ASCII")
		}
	}
	host = strings.ToLower(host)
	// The last part of an address is a number, perhaps 0x….
	if last := host[strings.LastIndexByte(host, '.')+1:]; last[0] < 'a' || last[0] > 'z' {
		return "", errors.New("want a name, and no address")
	}
	if len(labels) == 1 {
		return "", errors.New("want a name with a dot")
	}
	return host, nil
}

func noLetter(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
}

// HostPattern checks the host of a rule: a name, or *.name for what is below it. It returns it in lower case.
func HostPattern(pattern string) (string, error) {
	below, isBelow := strings.CutPrefix(pattern, "*.")
	host, err := Host(below)
	if err != nil {
		return "", fmt.Errorf(`%q: %w; want a host such as "proxy.golang.org" or "*.npmjs.org"`, pattern, err)
	}
	if isBelow {
		host = "*." + host
	}
	return host, nil
}

// CoversHost reports whether one of the patterns covers a host, as [Host] returns it.
func CoversHost(patterns []string, host string) bool {
	for _, p := range patterns {
		if below, is := strings.CutPrefix(p, "*"); is && strings.HasSuffix(host, below) || p == host {
			return true
		}
	}
	return false
}
