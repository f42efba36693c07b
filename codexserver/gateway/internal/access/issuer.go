package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxDocument bounds a document from the issuer, in bytes.
	maxDocument = 256 << 10
	// maxKeys bounds how many keys of an issuer are used.
	maxKeys = 32
)

// issuerClient returns the client for requests to the issuer. It does not follow redirects,
// because one could lead to another host, or away from TLS.
func issuerClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetchKeys fetches the public keys for the signatures of an issuer.
func fetchKeys(ctx context.Context, c *http.Client, issuer string) ([]jose.JSONWebKey, error) {
	at, err := discover(ctx, c, issuer)
	if err != nil {
		return nil, err
	}
	body, err := get(ctx, c, at)
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		// Ignore keys of an unknown kind, and use the others.
		if key.UnmarshalJSON(raw) != nil || key.Use != "" && key.Use != "sig" || !key.IsPublic() {
			continue
		}
		if keys = append(keys, key); len(keys) == maxKeys {
			break
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no public key for signatures", at)
	}
	return keys, nil
}

// discover returns the URL of an issuer's keys. It tries the documents of RFC 8414 and of
// OpenID Connect Discovery in the order that MCP specifies.
func discover(ctx context.Context, c *http.Client, issuer string) (string, error) {
	var faults []error
	for _, at := range wellKnown(issuer) {
		body, err := get(ctx, c, at)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		var m struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		switch err := json.Unmarshal(body, &m); {
		case err != nil:
			faults = append(faults, fmt.Errorf("%s: %w", at, err))
		case m.Issuer != issuer:
			faults = append(faults, fmt.Errorf("%s: issuer is %q, want %q", at, m.Issuer, issuer))
		case !trusted(m.Keys, issuer):
			faults = append(faults, fmt.Errorf("%s: jwks_uri is not an https URL", at))
		default:
			return m.Keys, nil
		}
	}
	return "", errors.Join(faults...)
}

// wellKnown returns the URLs where an issuer may publish its metadata.
func wellKnown(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil // cannot happen: the configuration was checked
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	const oauth, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	if path == "" {
		return []string{origin + oauth, origin + oidc}
	}
	return []string{origin + oauth + path, origin + oidc + path, origin + path + oidc}
}

// trusted reports whether the keys of an issuer may come from a URL: by https, or from this machine if the issuer is
// there, too. The configuration has no other issuer with http.
func trusted(text, issuer string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && webaddr.Loopback(u.Hostname()) &&
		strings.HasPrefix(issuer, "http://")
}

// get fetches a JSON document of at most maxDocument bytes.
func get(ctx context.Context, c *http.Client, at string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d", at, answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("%s: longer than %d bytes", at, maxDocument)
	}
	return body, nil
}
