package model

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// RedirectError reports a redirect to another host. The request was not sent there, because
// it has the conversation and the key.
type RedirectError struct {
	// From and To are URLs without path and query.
	From, To string
}

// Error implements error.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("the provider at %s redirects to another host, %s, which is not followed: correct its base_url", e.From, e.To)
}

const maxRedirects = 10

// staying returns a client that follows redirects only within a host.
func staying(c *http.Client) *http.Client {
	own := *c
	own.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if from := via[0].URL; !sameHost(from, r.URL) {
			return &RedirectError{From: origin(from), To: origin(r.URL)}
		}
		if c.CheckRedirect != nil {
			return c.CheckRedirect(r, via)
		}
		if len(via) >= maxRedirects {
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
	return &own
}

// sameHost reports whether two URLs have the same host, and the same scheme and port. A
// change from http to https with default ports is allowed.
func sameHost(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	upgraded := from.Scheme == "http" && to.Scheme == "https" && port(from) == "80" && port(to) == "443"
	return from.Scheme == to.Scheme && port(from) == port(to) || upgraded
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
