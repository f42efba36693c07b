package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// chatGPTAuth is an auth.json with tokens that are not real.
const chatGPTAuth = `{"OPENAI_API_KEY":null,"tokens":{"id_token":"eyJhbGciOiJub25lIn0.eyJlbWFpbCI6InVzZXJAZXhhbXBsZS5jb20iLCJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9wbGFuX3R5cGUiOiJwcm8iLCJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2MifX0.c2ln","access_token":"fake-access","refresh_token":"fake-refresh","account_id":"acc"},"last_refresh":"2099-01-01T00:00:00Z"}`

// inHome makes an engine whose home has these files.
func inHome(t testing.TB, o native.Options, files map[string]string) (*native.Engine, string) {
	t.Helper()
	o.CodexHome = t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(o.CodexHome, name), text)
	}
	return open(t, o), o.CodexHome
}

// TestAuthStatus has the answers of Codex 0.42.
func TestAuthStatus(t *testing.T) {
	custom := "model_provider = \"p\"\n[model_providers.p]\nname = \"P\"\nbase_url = \"http://localhost:1/v1\"\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		token bool
		want  string
	}{
		{"no user", nil, true, `{"requiresOpenaiAuth":true}`},
		{"another provider", map[string]string{"config.toml": custom, "auth.json": chatGPTAuth}, true, `{"requiresOpenaiAuth":false}`},
		{"key", map[string]string{"auth.json": `{"OPENAI_API_KEY":"sk-fake"}`}, true, `{"authMethod":"apikey","authToken":"sk-fake","requiresOpenaiAuth":true}`},
		{"key, without includeToken", map[string]string{"auth.json": `{"OPENAI_API_KEY":"sk-fake"}`}, false, `{"authMethod":"apikey","requiresOpenaiAuth":true}`},
		{"ChatGPT", map[string]string{"auth.json": chatGPTAuth}, true, `{"authMethod":"chatgpt","authToken":"fake-access","requiresOpenaiAuth":true}`},
		{"old tokens", map[string]string{"auth.json": strings.Replace(chatGPTAuth, "2099", "2020", 1)}, true, `{"requiresOpenaiAuth":true}`},
		{"a file that cannot be read", map[string]string{"auth.json": `{nope`}, true, `{"requiresOpenaiAuth":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := inHome(t, native.Options{}, tt.files)
			for _, refresh := range []bool{false, true} {
				got, err := e.AuthStatus(t.Context(), protocol.GetAuthStatusParams{IncludeToken: &tt.token, RefreshToken: &refresh})
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(got)
				if err != nil {
					t.Fatal(err)
				}
				diff(t, fmt.Sprint("refresh ", refresh), tt.want, string(text))
			}
		})
	}
}

func TestLogout(t *testing.T) {
	e, home := inHome(t, native.Options{}, map[string]string{"auth.json": `{"OPENAI_API_KEY":"sk-fake"}`})
	if err := e.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(home, "auth.json")); err == nil {
		t.Error("auth.json is still there")
	}
}
