package auth_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// idToken is unsigned.
const idToken = "eyJhbGciOiJub25lIn0.eyJlbWFpbCI6InVzZXJAZXhhbXBsZS5jb20iLCJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9wbGFuX3R5cGUiOiJwcm8iLCJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2MifX0.c2ln"

func write(t *testing.T, home, text string) {
	t.Helper()
	must.OK(t, os.WriteFile(filepath.Join(home, "auth.json"), []byte(text), 0o600))
}

// TestRead reads auth.json as Codex 0.42 was measured to read it.
func TestRead(t *testing.T) {
	tokens := func(key, last string) string {
		return `{"OPENAI_API_KEY":` + key + `,"tokens":{"id_token":"` + idToken + `","access_token":"fake-access","refresh_token":"fake-refresh","account_id":"acc"},"last_refresh":` + last + `}`
	}
	for _, tt := range []struct {
		name, file string
		want       auth.Credentials
	}{
		{"no file", "", auth.Credentials{}},
		{"key", `{"OPENAI_API_KEY":"sk-fake"}`, auth.Credentials{Method: auth.MethodAPIKey, Token: "sk-fake"}},
		{"empty key", `{"OPENAI_API_KEY":""}`, auth.Credentials{}},
		{"null key", `{"OPENAI_API_KEY":null}`, auth.Credentials{}},
		{"tokens", tokens(`null`, `"2099-01-01T00:00:00Z"`), auth.Credentials{Method: auth.MethodChatGPT, Token: "fake-access"}},
		{"a key takes precedence over tokens", tokens(`"sk-both"`, `"2099-01-01T00:00:00Z"`), auth.Credentials{Method: auth.MethodAPIKey, Token: "sk-both"}},
		{"old tokens", tokens(`null`, `"2020-01-01T00:00:00Z"`), auth.Credentials{}},
		{"tokens never refreshed", tokens(`null`, `null`), auth.Credentials{}},
		{"no access token", `{"tokens":{"id_token":"` + idToken + `","access_token":""}}`, auth.Credentials{}},
		{"invalid identity token", `{"tokens":{"id_token":"xx","access_token":"a","refresh_token":"r"},"last_refresh":"2099-01-01T00:00:00Z"}`,
			auth.Credentials{Method: auth.MethodChatGPT, Token: "a"}},
		{"members of later versions", `{"auth_mode":"apikey","OPENAI_API_KEY":"sk-fake","agent":{"x":1}}`, auth.Credentials{Method: auth.MethodAPIKey, Token: "sk-fake"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			if tt.file != "" {
				write(t, home, tt.file)
			}
			got := must.Get(auth.Read(home))(t)
			must.Equal(t, "result", tt.want, got)
		})
	}
}

func TestReadNamesNoSecret(t *testing.T) {
	for _, file := range []string{
		`{"OPENAI_API_KEY":"sk-secret`,
		`{"OPENAI_API_KEY":["sk-secret"]}`,
		`sk-secret`,
		`{"sk-secret":1,"sk-secret":2}`,
		`{"tokens":"sk-secret"}`,
		`{"last_refresh":"sk-secret"}`,
	} {
		home := t.TempDir()
		write(t, home, file)
		_, err := auth.Read(home)
		if err == nil || !strings.Contains(err.Error(), "auth.json") {
			t.Errorf("%s: error %v does not name the file", file, err)
		}
		// Only the name of a duplicate member may be quoted, even if it looks like a key.
		if err != nil && strings.Contains(err.Error(), "sk-secret") && !strings.Contains(file, ",") {
			t.Errorf("%s: error quotes the file: %v", file, err)
		}
	}
}

func TestRemove(t *testing.T) {
	home := t.TempDir()
	write(t, home, `{"OPENAI_API_KEY":"sk-fake-key"}`)
	for range 2 { // the second time there is no file, which is fine
		must.OK(t, auth.Remove(home))
		if _, err := os.Stat(filepath.Join(home, "auth.json")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("auth.json is still there: %v", err)
		}
	}
	must.OK(t, os.MkdirAll(filepath.Join(home, "auth.json", "x"), 0o700))
	if err := auth.Remove(home); err == nil {
		t.Error("a folder was removed")
	}
}

// TestAge reads tokens that are as old as they may be, and older ones. The clock of the test begins in the year 2000.
func TestAge(t *testing.T) {
	for last, stale := range map[string]bool{"1999-12-04T00:00:00Z": false, "1999-12-03T23:59:59Z": true} {
		home := t.TempDir()
		write(t, home, `{"tokens":{"access_token":"a"},"last_refresh":"`+last+`"}`)
		synctest.Test(t, func(t *testing.T) {
			if c, err := auth.Read(home); err != nil || (c.Token == "") != stale {
				t.Errorf("%s: %+v, %v", last, c, err)
			}
		})
	}
}
