package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/webaddr"
	"golang.org/x/oauth2"
)

// exchangeTimeout bounds one request to the token endpoint.
const exchangeTimeout = 30 * time.Second

// ErrNotConfigured is returned if no issuer is configured.
var ErrNotConfigured = errors.New("signing in with ChatGPT needs auth.issuer and auth.client_id, which are not set: " +
	"run \"codex login\" of the Codex CLI, whose sign-in is used here too, or use an API key")

// configured checks the options.
func (k *Keeper) configured() error {
	if k.options.Issuer == "" || k.options.ClientID == "" {
		return ErrNotConfigured
	}
	u, err := url.Parse(k.options.Issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("auth.issuer: want an address such as https://auth.example.com")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !webaddr.Loopback(u.Hostname())) {
		return errors.New("auth.issuer: want an https address (http is accepted for localhost only)")
	}
	if p := k.options.Port; p < 0 || p > 65535 {
		return fmt.Errorf("auth.port: want 0 to 65535, have %d", p)
	}
	return nil
}

// oauth returns the flow that sends the browser back to redirect.
func (k *Keeper) oauth(redirect string) *oauth2.Config {
	issuer := strings.TrimRight(k.options.Issuer, "/")
	return &oauth2.Config{
		ClientID:    k.options.ClientID,
		RedirectURL: redirect,
		Scopes:      []string{"openid", "profile", "email", "offline_access"},
		Endpoint: oauth2.Endpoint{
			AuthURL:   issuer + "/oauth/authorize",
			TokenURL:  issuer + "/oauth/token",
			AuthStyle: oauth2.AuthStyleInParams,
		},
	}
}

// client returns a context that holds the HTTP client for the oauth2 library. The client
// follows no redirects, so that only the issuer receives codes and tokens.
func (k *Keeper) client(ctx context.Context) context.Context {
	c := http.Client{}
	if k.options.HTTPClient != nil {
		c = *k.options.HTTPClient
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return context.WithValue(ctx, oauth2.HTTPClient, &c)
}

// worded returns the reason why the server sent no tokens. Of the answer it quotes only
// the error code: the rest may repeat the secrets that were sent.
func worded(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		status := 0
		if refused.Response != nil {
			status = refused.Response.StatusCode
		}
		if code := printable(refused.ErrorCode); code != "" {
			return fmt.Errorf("auth: the issuer refused: %s (HTTP %d)", code, status)
		}
		if status >= 300 && status < 400 {
			return fmt.Errorf("auth: the issuer redirects to another address (HTTP %d), which is not followed: set auth.issuer to it", status)
		}
		return fmt.Errorf("auth: the issuer refused (HTTP %d)", status)
	}
	var request *url.Error
	if errors.As(err, &request) {
		return fmt.Errorf("auth: the issuer (auth.issuer) cannot be reached: %w", request.Err)
	}
	return errors.New("auth: the issuer's answer has no valid tokens: check auth.issuer")
}

// printable returns the first 100 bytes of an OAuth error code, or "" if it is not one
// (RFC 6749, section 4.1.2.1: printable ASCII except " and \).
func printable(code string) string {
	for _, r := range code {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return ""
		}
	}
	return code[:min(len(code), 100)]
}
