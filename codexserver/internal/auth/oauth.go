package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// exchangeTimeout bounds one request to the token endpoint.
const exchangeTimeout = 30 * time.Second

// ErrNotConfigured says that no issuer is configured to sign in with.
var ErrNotConfigured = errors.New("auth: signing in with ChatGPT needs auth.issuer and auth.client_id, which are not set: " +
	"run \"codex login\" of the Codex CLI, whose sign-in is used here too, or use an API key")

// configured says what is wrong with the options, if anything.
func (k *Keeper) configured() error {
	if k.options.Issuer == "" || k.options.ClientID == "" {
		return ErrNotConfigured
	}
	u, err := url.Parse(k.options.Issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("auth: auth.issuer: want an address such as https://auth.example.com")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errors.New("auth: auth.issuer: want https; http is for loopback alone")
	}
	if p := k.options.Port; p < 0 || p > 65535 {
		return fmt.Errorf("auth: auth.port: %d is not a port", p)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// oauth is the flow with the browser coming back to redirect.
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

// client hands the HTTP client to the library. It follows no redirects: what it
// posts is for the issuer alone.
func (k *Keeper) client(ctx context.Context) context.Context {
	c := http.Client{}
	if k.options.HTTPClient != nil {
		c = *k.options.HTTPClient
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return context.WithValue(ctx, oauth2.HTTPClient, &c)
}

// worded says why the server sent no tokens. It keeps only the error's code of the
// answer, which may repeat what it was sent.
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
		return fmt.Errorf("auth: the issuer cannot be asked: %w", request.Err)
	}
	return errors.New("auth: the issuer's answer cannot be read")
}

// printable is an OAuth error code (RFC 6749, section 4.1.2.1: printable ASCII
// but for " and \), cut short; "" for anything else.
func printable(code string) string {
	for _, r := range code {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return ""
		}
	}
	return code[:min(len(code), 100)]
}
