package page

import (
	"fmt"
	"net/http"
	"strings"
)

// headers are sent with every answer. None is of CORS, so no other origin can read an
// answer.
var headers = [][2]string{
	{"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; " +
		"trusted-types 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cache-Control", "no-store"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
}

// serve answers every request.
func (p *Page) serve(w http.ResponseWriter, r *http.Request) {
	for _, h := range headers {
		w.Header().Set(h[0], h[1])
	}
	if !p.work.enter() {
		refuse(w, http.StatusServiceUnavailable, "the page is closed")
		return
	}
	defer p.work.leave()
	if p.origin(r) == "" {
		refuse(w, http.StatusForbidden, "this is not %s: open the page by its link", p.host)
		return
	}
	if r.Method == http.MethodHead { // which the routes take for GET
		refuse(w, http.StatusMethodNotAllowed, "this address takes no HEAD")
		return
	}
	p.handler.ServeHTTP(w, r)
}

// origin returns the origin of the page that a request is for: its own, or that of
// Options.Origin; "" means neither. Only Host counts. What proxies add, such as
// X-Forwarded-Host, anybody can send.
func (p *Page) origin(r *http.Request) string {
	for _, origin := range []string{p.Address(), p.options.Origin} {
		if _, host, _ := strings.Cut(origin, "://"); host != "" && r.Host == host {
			return origin
		}
	}
	return ""
}

// own refuses a request that does not come from the page itself.
func (p *Page) own(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		origin, site := r.Header.Values("Origin"), r.Header.Values("Sec-Fetch-Site")
		if len(origin) > 1 || len(origin) == 1 && origin[0] != p.origin(r) || len(origin) == 0 &&
			r.Method == http.MethodPost ||
			len(site) > 1 || len(site) == 1 && site[0] != "same-origin" {
			refuse(w, http.StatusForbidden, "only the page itself may ask for this")
			return
		}
		next(w, r)
	}
}

// known refuses a request without a valid token.
func (p *Page) known(next func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if given := r.Header.Values("Authorization"); len(given) == 1 {
			if token, ok := strings.CutPrefix(given[0], "Bearer "); ok {
				if s := p.door.session(token); s != nil {
					p.crowd.isKnown(r)
					next(w, r, s)
					return
				}
			}
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "no valid token: open the page by a new link")
	}
}

// refuse answers with a status and a sentence.
func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, format+"\n", args...)
}
