package access

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
)

// FuzzAccessToken checks that a token is refused if the issuer has not signed it.
func FuzzAccessToken(f *testing.F) {
	for _, token := range []string{
		"", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCJ9.e30.AAAA",
		"eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6ImEifQ.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlLmNvbS90ZWFtIiwic3ViIjoiYW5uIn0.AAAA",
	} {
		f.Add(token)
	}
	s := newKeySet(where, slog.New(slog.DiscardHandler))
	var set struct {
		Keys []jose.JSONWebKey `json:"keys"`
	}
	const keys = `{"keys":[{"kty":"EC","crv":"P-256","kid":"a","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`
	if err := json.Unmarshal([]byte(keys), &set); err != nil {
		f.Fatal(err)
	}
	s.keys, s.fetched, s.tried = set.Keys, time.Now(), time.Now()
	v := &verifier{oauth: settings.OAuth{Issuer: where, Audience: "x", Claim: "sub"}, keys: s, subjects: map[string]*principal{"ann": {name: "ann"}}}
	f.Fuzz(func(t *testing.T, token string) {
		if !looksSigned(token) {
			return
		}
		who, scopes, err := v.verify(t.Context(), token)
		var why *mcphttp.Refusal
		if who != nil || scopes != nil || !errors.As(err, &why) {
			t.Errorf("accepted as %v with %q, error %v", who, scopes, err)
		}
	})
}
