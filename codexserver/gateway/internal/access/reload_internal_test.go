package access

import (
	"maps"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestReload replaces the users. What changed counts at once for new requests and for those that were
// admitted before, and nothing else does.
func TestReload(t *testing.T) {
	i := newIssuer(t)
	s, annToken, bobToken := i.settings(nil)
	annJWT, bobJWT := i.token(nil, nil), i.token(nil, object{"sub": "bob@example.com"})
	other, otherHash := NewToken()
	tokens := map[string]string{"ann": annToken, "ann's JWT": annJWT, "bob": bobToken, "bob's JWT": bobJWT, "other": other}
	change := func(name string, f func(*settings.Principal)) func(map[string]settings.Principal) {
		return func(all map[string]settings.Principal) {
			p := all[name]
			f(&p)
			all[name] = p
		}
	}
	for name, tt := range map[string]struct {
		change func(map[string]settings.Principal)
		enter  []string // the tokens that are accepted afterwards
		still  []string // those of before whose open requests go on
	}{
		"nothing":         {func(map[string]settings.Principal) {}, []string{"ann", "ann's JWT", "bob", "bob's JWT"}, []string{"ann", "ann's JWT", "bob", "bob's JWT"}},
		"a user goes":     {func(all map[string]settings.Principal) { delete(all, "ann") }, []string{"bob", "bob's JWT"}, []string{"bob", "bob's JWT"}},
		"a token goes":    {change("ann", func(p *settings.Principal) { p.Tokens = nil }), []string{"ann's JWT", "bob", "bob's JWT"}, []string{"ann's JWT", "bob", "bob's JWT"}},
		"a token comes":   {change("ann", func(p *settings.Principal) { p.Tokens = append(slices.Clone(p.Tokens), otherHash) }), []string{"ann", "ann's JWT", "bob", "bob's JWT", "other"}, []string{"ann", "ann's JWT", "bob", "bob's JWT"}},
		"a scope goes":    {change("bob", func(p *settings.Principal) { p.Scopes = []string{"codex:read"} }), []string{"ann", "ann's JWT", "bob", "bob's JWT"}, []string{"ann", "ann's JWT"}},
		"another subject": {change("bob", func(p *settings.Principal) { p.Subject = "rob" }), []string{"ann", "ann's JWT", "bob"}, []string{"ann", "ann's JWT", "bob"}},
		"a token is moved": {func(all map[string]settings.Principal) {
			change("bob", func(p *settings.Principal) { p.Tokens = all["ann"].Tokens })(all)
			change("ann", func(p *settings.Principal) { p.Tokens = nil })(all)
		}, []string{"ann", "ann's JWT", "bob's JWT"}, []string{"ann's JWT", "bob's JWT"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := i.enter(s)
			before := map[string]mcphttp.Principal{}
			for token, text := range tokens {
				if who, err := a.Identify(with("Bearer " + text)); err == nil {
					before[token] = who
				}
			}
			all := maps.Clone(s.Principals)
			tt.change(all)
			apply := must.Get(a.Reload(all))(t)
			for token, who := range before { // until it is applied nothing has changed
				if !a.Still(t.Context(), with("Bearer "+tokens[token]).Header, who) {
					t.Errorf("%s does not go on before the users are replaced", token)
				}
			}
			apply()
			var entered, still []string
			for _, token := range slices.Sorted(maps.Keys(tokens)) {
				r := with("Bearer " + tokens[token])
				if _, err := a.Identify(r); err == nil {
					entered = append(entered, token)
				}
				if who, was := before[token]; was && a.Still(t.Context(), r.Header, who) {
					still = append(still, token)
				}
			}
			must.Equal(t, "who enters, and who goes on", [][]string{tt.enter, tt.still}, [][]string{entered, still})
			if a.Still(t.Context(), nil, mcphttp.Principal{Name: "bob"}) || a.Still(t.Context(), with("Bearer "+tokens["bob's JWT"]+"x").Header, before["bob's JWT"]) {
				t.Error("a request without a valid token goes on")
			}
		})
	}
}

// TestReloadRefused checks that users who are refused at the start are refused later, and change nothing.
func TestReloadRefused(t *testing.T) {
	s, ann, _ := team(t, nil)
	a := enter(t, s)
	for _, all := range []map[string]settings.Principal{nil, {"ann": {Tokens: []string{"sha256:x"}}}} {
		if _, err := a.Reload(all); err == nil {
			t.Errorf("%v is accepted", all)
		}
	}
	if who, err := a.Identify(with("Bearer " + ann)); err != nil || who.Name != "ann" {
		t.Errorf("%+v, %v", who, err)
	}
}
