package access

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const run, approve, read = mcphttp.ScopeRun, mcphttp.ScopeApprove, mcphttp.ScopeRead

// TestAccessTokens checks the user of each token, and that it gets the scopes that both the
// token and the configuration allow.
func TestAccessTokens(t *testing.T) {
	i := newIssuer(t)
	s, _, _ := i.settings(nil)
	a := i.enter(s)
	for name, tt := range map[string]struct {
		token  string
		who    string
		scopes []mcphttp.Scope
	}{
		"all":                  {i.token(nil, nil), "ann", mcphttp.Scopes()},
		"none":                 {i.token(nil, object{"scope": "openid"}), "ann", []mcphttp.Scope{}},
		"no scope":             {i.token(nil, object{"scope": nil}), "ann", []mcphttp.Scope{}},
		"a scope that is none": {i.token(nil, object{"scope": []string{"codex:run"}}), "ann", []mcphttp.Scope{}},
		"scp, a text":          {i.token(nil, object{"scope": nil, "scp": "codex:run x"}), "ann", []mcphttp.Scope{run}},
		"scp, a list":          {i.token(nil, object{"scope": nil, "scp": []any{"codex:run", 5, "codex:read"}}), "ann", []mcphttp.Scope{run, read}},
		"bounded and some":     {i.token(nil, object{"sub": "bob@example.com", "scope": "codex:approve codex:read"}), "bob", []mcphttp.Scope{read}},
		"several audiences":    {i.token(nil, object{"aud": []string{"other", resource}}), "ann", mcphttp.Scopes()},
		"typ in capitals":      {i.token(object{"typ": "AT+JWT"}, nil), "ann", mcphttp.Scopes()},
		"within the leeway":    {i.token(nil, object{"exp": i.claims()["exp"].(int64) - 310, "nbf": i.claims()["iat"].(int64) + 10}), "ann", mcphttp.Scopes()},
		"an elliptic key":      {i.signed(header().with(object{"alg": "ES256", "kid": "e1"}), i.claims(), es256(t, i.ec)), "ann", mcphttp.Scopes()},
		"no kid":               {i.token(object{"kid": nil}, nil), "ann", mcphttp.Scopes()},
	} {
		must.Equal(t, name, mcphttp.Principal{Name: tt.who, Scopes: tt.scopes}, must.Get(a.Identify(with("Bearer "+tt.token)))(t))
	}
	if n := i.count(keysURL); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// TestClaim checks that another claim than sub can identify the principal.
func TestClaim(t *testing.T) {
	i := newIssuer(t)
	for _, tt := range []struct {
		claim  string
		claims object
		want   string
	}{
		{"email", object{"sub": "1", "email": "bob@example.com", "email_verified": true}, "bob"},
		{"email", object{"sub": "1", "email": "bob@example.com", "email_verified": false}, ""},
		{"email", object{"sub": "1", "email": "bob@example.com"}, ""},
		{"preferred_username", object{"sub": "1", "preferred_username": "ann"}, "ann"},
		{"preferred_username", object{"sub": "ann"}, ""},
	} {
		s, _, _ := i.settings(func(s *settings.HTTP) { s.OAuth.Claim = tt.claim })
		a := i.enter(s)
		r := with("Bearer " + i.token(nil, tt.claims))
		if tt.want == "" {
			if why := refusal(t, a, r); why.Status != 403 {
				t.Errorf("%s %v: %+v", tt.claim, tt.claims, why)
			}
			continue
		}
		if got, err := a.Identify(r); err != nil || got.Name != tt.want {
			t.Errorf("%s %v: %+v, %v", tt.claim, tt.claims, got, err)
		}
	}
}

// TestIssuerDown checks that access tokens are refused while the issuer is down, and that
// static tokens are accepted.
func TestIssuerDown(t *testing.T) {
	i := newIssuer(t)
	i.bodys = map[string]string{}
	s, ann, _ := i.settings(nil)
	a := i.enter(s)
	if why := refusal(t, a, with("Bearer "+i.token(nil, nil))); why.Status != 503 || why.RetryAfter <= 0 {
		t.Errorf("%+v", why)
	}
	if _, err := a.Identify(with("Bearer " + ann)); err != nil {
		t.Errorf("a static token: %v", err)
	}
	if why := refusal(t, a, with("Bearer "+i.token(nil, object{"iss": "https://other.example.com"}))); why.Code != "invalid_token" {
		t.Errorf("a token of another issuer causes a fetch of the keys: %+v", why)
	}
}
