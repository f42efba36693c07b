package worker

import (
	"net/http/httptest"
	"testing"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/google/go-cmp/cmp"
)

// TestAuthenticate takes the principal from the gateway if it is the user.
func TestAuthenticate(t *testing.T) {
	for _, tt := range []struct {
		names []string // of the header
		want  string   // "" for a refusal
	}{
		{[]string{"ann"}, "ann"}, {[]string{"bob"}, ""}, {nil, ""}, {[]string{""}, ""}, {[]string{"ann", "ann"}, ""}, {[]string{"ann", "bob"}, ""},
	} {
		r := httptest.NewRequest("POST", "/mcp", nil)
		for _, name := range tt.names {
			r.Header.Add(PrincipalHeader, name)
		}
		r.Header.Set(ScopesHeader, "codex:read")
		l := &Link{Settings: Settings{Principal: "ann"}}
		who, err := l.Authenticate(r)
		want := mcphttp.Principal{}
		if tt.want != "" {
			want = mcphttp.Principal{Name: tt.want, Scopes: []mcphttp.Scope{mcphttp.ScopeRead}}
		}
		if diff := cmp.Diff(want, who); diff != "" || (err == nil) != (tt.want != "") {
			t.Errorf("%q: %v (-want +got)\n%s", tt.names, err, diff)
		}
	}
}
