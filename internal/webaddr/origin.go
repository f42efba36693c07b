package webaddr

import (
	"errors"
	"strings"
)

// ParseOrigin returns the origin of pages that only the user reaches, in the form that browsers send:
// https://HOST or https://HOST:PORT. With http the host must be this machine, as of a port that ssh
// forwards, because others could read and change the pages on their way.
func ParseOrigin(text string) (string, error) {
	a, err := Parse(text)
	if err != nil {
		return "", err
	}
	switch origin := a.origin(); {
	case !strings.EqualFold(origin, strings.TrimSuffix(text, "/")):
		return "", errors.New("want https://HOST, with :PORT if it is not 443, and nothing after it")
	case !a.TLS() && !Loopback(a.host):
		return "", errors.New("want https, because others could read and change the page on its way; only localhost may have http")
	default:
		return origin, nil
	}
}
