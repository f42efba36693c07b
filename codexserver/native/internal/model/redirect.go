package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// redirectError reports a redirect to another host. The request was not sent there, because
// it has the conversation and the key.
type redirectError struct {
	from, to *url.URL
}

func (e redirectError) Error() string {
	return fmt.Sprintf("the provider at %s://%s redirects to another host, %s://%s, which is not followed: correct "+
		"its base_url",
		e.from.Scheme, e.from.Host, e.to.Scheme, e.to.Host)
}

// staying returns a client that follows redirects only within a host.
func staying(c *http.Client) *http.Client {
	own := *c
	own.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		const most = 10
		switch from := via[0].URL; {
		case !sameHost(from, r.URL):
			return redirectError{from, r.URL}
		case c.CheckRedirect != nil:
			return c.CheckRedirect(r, via)
		case len(via) >= most:
			return errors.New("stopped after 10 redirects")
		case via[0].Method != r.Method:
			return resend(r, via[0])
		}
		return nil
	}
	return &own
}

// resend makes r, to which a request with a body was redirected by 301, 302 or 303, that request again: browsers ask for
// a page then, and a provider has none.
func resend(r, first *http.Request) (err error) {
	r.Method, r.GetBody = first.Method, first.GetBody
	if r.Body, err = first.GetBody(); err == nil {
		r.ContentLength = first.ContentLength
		r.Header.Set("Content-Type", first.Header.Get("Content-Type"))
	}
	return err
}

// sameHost reports whether two URLs have the same host, and the same scheme and port. A
// change from http to https with default ports is allowed.
func sameHost(from, to *url.URL) bool {
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	upgraded := from.Scheme == "http" && to.Scheme == "https" && port(from) == "80" && port(to) == "443"
	return from.Scheme == to.Scheme && port(from) == port(to) || upgraded
}
