// Package settings reads the keys of codex-mcp.toml that only codex-mcp-gateway has: its
// users, its authorization server and its metrics.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/text"
)

// HTTP has the settings of the table http.
type HTTP struct {
	config.HTTP
	// Metrics is the address on this machine that serves metrics; "" means no metrics.
	Metrics string
	// WorkerIdle is how long a user's process lasts without a request, a session or
	// running work; 0 means no limit.
	WorkerIdle time.Duration
	// URL is the server's URL for clients, such as https://codex.example.com/mcp. It is
	// the server's identifier as an OAuth resource.
	URL string
	// OAuth is the authorization server; the zero value means none.
	OAuth OAuth
	// Principals are the users by name.
	Principals map[string]Principal
}

// Load reads the settings of the table http in home, with the key=value arguments. shared
// are the other settings from the same place.
func Load(home string, args []string, shared *config.Settings) (HTTP, error) {
	t := &httpTable{WorkerIdle: config.Duration(defaultWorkerIdle)}
	if err := config.LoadHTTP(home, args, t, t.check); err != nil {
		return HTTP{}, err
	}
	return t.settings(shared), nil
}

// OAuth says which access tokens the server accepts (RFC 9068).
type OAuth struct {
	// Issuer is the authorization server's issuer identifier.
	Issuer string `json:"issuer"`
	// Audience is the value that the aud of a token must contain. Default: [HTTP].URL.
	Audience string `json:"audience"`
	// Claim is the claim that must equal [Principal].Subject. Default: sub.
	Claim string `json:"claim"`
}

// Principal is one user.
type Principal struct {
	// Tokens are the hashes of the user's tokens, each as sha256:HEX.
	Tokens []string `json:"tokens"`
	// Subject identifies the user in access tokens. See [OAuth].Claim. Default: the name.
	Subject string `json:"subject"`
	// Scopes bound what the user may do, even if a token allows more. Default: [Scopes].
	Scopes []string `json:"scopes"`
	// Folders are the absolute paths of the folders that the user's threads may work in.
	// Calls may not name files elsewhere.
	Folders []string `json:"folders"`
	// Home is the user's own $CODEX_HOME. Default: a folder below the server's.
	Home string `json:"home"`
	// Limits bound the user's work.
	Limits PrincipalLimits `json:"limits"`
}

// subject returns what identifies the principal with a name in access tokens.
func (p *Principal) subject(name string) string { return cmp.Or(p.Subject, name) }

// PrincipalLimits bound the work of one user. 0 means the default.
type PrincipalLimits struct {
	// Turns is how many turns may run at a time. Default: 16.
	Turns int `json:"turns"`
	// Tasks is how many unfinished tasks the user may have. Default: limits.tasks.
	Tasks int `json:"tasks"`
}

const (
	defaultWorkerIdle = time.Hour

	// defaultTurns is that of PrincipalLimits.
	defaultTurns = 16
)

// Scopes are all scopes: to run turns, to decide questions, and to read. Callers must not
// change it.
var Scopes = []string{"codex:run", "codex:approve", "codex:read"}

// httpTable is the table http of the configuration file.
type httpTable struct {
	UnlockedArguments []string             `json:"unlocked_arguments"`
	Hosts             []string             `json:"hosts"`
	Origins           []string             `json:"origins"`
	Drain             config.Duration      `json:"drain_timeout"`
	Metrics           string               `json:"metrics"`
	WorkerIdle        config.Duration      `json:"worker_idle"`
	URL               string               `json:"url"`
	OAuth             OAuth                `json:"oauth"`
	Principals        map[string]Principal `json:"principals"`
}

// settings returns the settings of the table, with defaults for missing keys.
func (t *httpTable) settings(shared *config.Settings) HTTP {
	h := HTTP{HTTP: shared.HTTP, Metrics: t.Metrics, WorkerIdle: time.Duration(t.WorkerIdle), URL: t.URL,
		OAuth: t.OAuth}
	if t.OAuth != (OAuth{}) {
		h.OAuth.Audience, h.OAuth.Claim = cmp.Or(h.OAuth.Audience, h.URL), cmp.Or(h.OAuth.Claim, "sub")
	}
	for name, p := range t.Principals {
		if h.Principals == nil {
			h.Principals = map[string]Principal{}
		}
		p.Subject = p.subject(name)
		if p.Scopes == nil {
			p.Scopes = slices.Clone(Scopes)
		}
		p.Limits.Turns = cmp.Or(p.Limits.Turns, defaultTurns)
		p.Limits.Tasks = cmp.Or(p.Limits.Tasks, shared.Tasks.Limit)
		h.Principals[name] = p
	}
	return h
}

func (t *httpTable) check() error {
	if t.Metrics != "" {
		if err := checkLoopback(t.Metrics); err != nil {
			return fmt.Errorf("http.metrics: %w", err)
		}
	}
	if t.URL != "" {
		if err := checkURL(t.URL); err != nil {
			return fmt.Errorf("http.url: %w", err)
		}
	}
	if err := t.checkOAuth(); err != nil {
		return err
	}
	// Check the principals in the order of their names, so that the same configuration
	// always fails with the same error.
	names := slices.Sorted(maps.Keys(t.Principals))
	tokens, subjects := map[string]string{}, map[string]string{}
	for _, name := range names {
		p := t.Principals[name]
		key := "http.principals." + config.JoinKey(name)
		if err := t.checkPrincipal(name, &p); err != nil {
			return fmt.Errorf("%s%w", key, err)
		}
		for _, token := range p.Tokens {
			if other, taken := tokens[token]; taken {
				return fmt.Errorf("%s.tokens: %s has the same token; want a different one for each user", key, other)
			}
			tokens[token] = name
		}
		subject := p.subject(name)
		if other, taken := subjects[subject]; taken {
			return fmt.Errorf("%s.subject: %s has the subject %q too; want a different one for each user", key, other,
				subject)
		}
		subjects[subject] = name
		if err := checkFolders(name, p.Folders); err != nil {
			return fmt.Errorf("%s.folders%w", key, err)
		}
	}
	return nil
}

func (t *httpTable) checkOAuth() error {
	o := t.OAuth
	if o == (OAuth{}) {
		return nil
	}
	switch {
	case o.Issuer == "":
		return errors.New("http.oauth.issuer: missing")
	case t.URL == "":
		return errors.New("http.url: missing; http.oauth needs the URL that clients use")
	case len(t.Principals) == 0:
		return errors.New("http.principals: missing; http.oauth needs a table for each user")
	}
	if err := checkURL(o.Issuer); err != nil {
		return fmt.Errorf("http.oauth.issuer: %w", err)
	}
	return nil
}

// checkLoopback fails unless the address is a loopback IP address with a port.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("want an address of this machine such as 127.0.0.1:9464, not %q: everyone who can connect "+
			"can read the metrics", address)
	}
	return nil
}

// checkURL fails unless the URL is https, or http on this machine.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	name := u.Hostname()
	local := name == "localhost" || name == "127.0.0.1" || name == "::1"
	if name == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" &&
		(u.Scheme != "http" || !local) {
		return fmt.Errorf("want an https URL without a query, not %q", u.Redacted())
	}
	return nil
}

var (
	principalName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`) })
	tokenHash     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`) })
)

// CheckPrincipalName fails if the name of a principal is invalid.
func CheckPrincipalName(name string) error {
	if !principalName().MatchString(name) {
		return fmt.Errorf("%q: want a name of small letters, digits, - and _", name)
	}
	return nil
}

// checkPrincipal checks one principal without comparing it with others. The caller puts the key
// of the principal before its errors.
func (t *httpTable) checkPrincipal(name string, p *Principal) error {
	if !principalName().MatchString(name) {
		return errors.New(": want a name of small letters, digits, - and _")
	}
	for _, hash := range p.Tokens {
		if !tokenHash().MatchString(hash) {
			return errors.New(".tokens: want sha256: and 64 hexadecimal digits, as codex-mcp-gateway --new-token " +
				"prints them")
		}
	}
	switch {
	case len(p.Tokens) == 0 && t.OAuth.Issuer == "":
		return errors.New(".tokens: missing; without http.oauth a user needs a token, which codex-mcp-gateway " +
			"--new-token makes")
	case p.Subject != "" && t.OAuth.Issuer == "":
		return errors.New(".subject: has no effect without http.oauth; remove it")
	case p.Scopes != nil && len(p.Scopes) == 0:
		return errors.New(".scopes: empty; remove it to allow all scopes")
	}
	for _, scope := range p.Scopes {
		if !slices.Contains(Scopes, scope) {
			return fmt.Errorf(".scopes: %q is not one of %s", scope, text.Or(Scopes))
		}
	}
	if p.Home != "" && !filepath.IsAbs(p.Home) {
		return fmt.Errorf(".home: %q is not an absolute path", p.Home)
	}
	if min(p.Limits.Turns, p.Limits.Tasks) < 0 {
		return errors.New(".limits: turns and tasks must not be negative")
	}
	return nil
}

// checkFolders checks the folders of one principal. That they lie in none of another user is checked where workers
// start, when their symbolic links are known. The caller puts the key before the errors.
func checkFolders(name string, folders []string) error {
	if len(folders) == 0 {
		return errors.New(": missing; name the folders that the user works in")
	}
	for _, folder := range folders {
		if !filepath.IsAbs(folder) || filepath.Clean(folder) != folder || filepath.Dir(folder) == folder {
			return fmt.Errorf(": %q is not an absolute path such as /work/%s", folder, name)
		}
	}
	return nil
}
