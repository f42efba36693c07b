package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/google/go-cmp/cmp"
)

// TestLockedOverHTTP lists the arguments that calls over HTTP may not choose.
func TestLockedOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		unlocked, everywhere []string
		want                 string
	}{
		{nil, nil, "[approval-policy config profile sandbox]"},
		{[]string{"config"}, nil, "[approval-policy profile sandbox]"},
		{[]string{"config"}, []string{"config", "model"}, "[config model approval-policy profile sandbox]"},
	} {
		h := &config.HTTP{UnlockedArguments: tt.unlocked}
		if got := fmt.Sprint(h.Locked(tt.everywhere)); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// TestLoadHTTP reads the table http for another program's keys.
func TestLoadHTTP(t *testing.T) {
	type table struct {
		URL string `json:"url"`
	}
	for _, tt := range []struct{ file, arg, url, problem string }{
		{file: "shared = true"},
		{file: "[http]\nurl = \"a\"", url: "a"},
		{file: "[http]\nurl = \"a\"", arg: "http.url=b", url: "b"},
		{file: "[http", problem: "FILE:1:"},
		{file: "\n[http]\nulr = \"a\"", problem: "FILE:3: http.ulr: unknown key"},
		{file: "[http]\nurl = 1", problem: "FILE:2: http.url: want a string"},
		{file: "http = 1", problem: "FILE:1: http: want a table"},
		{file: "[http]\nurl = \"bad\"", problem: "FILE:2: http.url: is bad"},
		{arg: "http.url=bad", problem: "-c http.url: is bad"},
		{arg: "http", problem: "-c http: want KEY=VALUE"},
	} {
		dir := home(t, map[string]string{config.SettingsFile: tt.file})
		var args []string
		if tt.arg != "" {
			args = []string{tt.arg}
		}
		var got table
		err := config.LoadHTTP(dir, args, &got, func() error {
			if got.URL == "bad" {
				return errors.New("http.url: is bad")
			}
			return nil
		})
		if want := strings.Replace(tt.problem, "FILE", filepath.Join(dir, config.SettingsFile), 1); want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q %s: %v, want %s", tt.file, tt.arg, err, want)
			}
		} else if err != nil || got.URL != tt.url {
			t.Errorf("%q %s: %q, %v", tt.file, tt.arg, got.URL, err)
		}
	}
}

// TestHand checks that a principal's home receives the configuration without the settings by
// which other principals sign in.
func TestHand(t *testing.T) {
	server, own := t.TempDir(), t.TempDir()
	write := func(dir string, files map[string]string) {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	hash := "sha256:" + strings.Repeat("ab", 32)
	write(server, map[string]string{
		"codex-mcp.toml": `calls.tools = ["codex-list"]
[http]
hosts = ["example.com"]
[http.principals.ann]
tokens = ["` + hash + `"]
folders = ["/srv/ann"]
[approvals]
log = "/var/log/approvals"
page_port = 4000
page_origin = "https://pages.example"
timeout = "90s"
deny = [["rm", "-rf"]]
[limits]
tasks = 7
`,
		"config.toml": "model = 'a'\n", "work.config.toml": "model = 'b'\n", "AGENTS.md": "rules", "rules/default.rules": "forbid",
		"auth.json": "secret", "codex-mcp/http-token": "secret",
	})
	write(own, map[string]string{"config.toml": "model = 'old'\n", "loose.config.toml": "sandbox_mode = 'danger-full-access'\n", "auth.json": "own", "other": "stays"})
	for _, name := range []string{"AGENTS.md", "AGENTS.override.md"} {
		if err := os.Symlink(own+"/other", filepath.Join(own, name)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := config.Hand(server)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if strings.Contains(string(text), hash[7:]) || strings.Contains(string(text), "secret") {
			t.Errorf("%s has %s", name, text)
		}
	}
	if err := config.Take(own, files); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"config.toml", "work.config.toml", "loose.config.toml", "AGENTS.md", "AGENTS.override.md", "rules/default.rules", "auth.json", "other"} {
		if text, err := os.ReadFile(filepath.Join(own, name)); err == nil {
			got[name] = string(text)
		}
	}
	want := map[string]string{
		"config.toml": "model = 'a'\n", "work.config.toml": "model = 'b'\n", "AGENTS.md": "rules", "rules/default.rules": "forbid", "auth.json": "own", "other": "stays",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the principal's home (-want +got):\n%s", diff)
	}
	of := func(home string) *config.Settings {
		t.Helper()
		s, _, err := config.LoadSettings(home, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := of(server), of(own)
	a.HTTP, a.Approvals.Log, a.Approvals.PagePort, a.Approvals.PageOrigin = b.HTTP, nil, 0, ""
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the settings (-server +principal):\n%s", diff)
	}
	if err := config.Take(own, map[string][]byte{"../config.toml": nil}); err == nil {
		t.Error("a file outside of the home was written")
	}
	for _, folder := range []string{"full.config.toml/x", "AGENTS.override.md/x"} {
		from, to := t.TempDir(), t.TempDir()
		write(from, map[string]string{folder: ""})
		write(to, map[string]string{folder: ""})
		if files, err := config.Hand(from); err == nil {
			t.Errorf("a folder in place of a file was handed: %q", files)
		}
		if err := config.Take(to, nil); err == nil {
			t.Error("an earlier file stays without an error")
		}
	}
	if err := config.Take(filepath.Join(own, "other"), files); err == nil {
		t.Error("files were written into a file")
	}
	write(server, map[string]string{"codex-mcp.toml": "tools = ["})
	if files, err := config.Hand(server); err == nil {
		t.Errorf("settings that cannot be read were handed: %q", files)
	}
}

// TestLinked makes links in a home as programs that manage configuration files do.
func TestLinked(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(top, "home")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(home, "codex-mcp"), 0o755), os.MkdirAll(filepath.Join(top, "dots", "prompts"), 0o755),
		os.Symlink("../dots/first", filepath.Join(home, "config.toml")), os.Symlink("second", filepath.Join(top, "dots", "first")),
		os.WriteFile(filepath.Join(top, "dots", "second"), nil, 0o600),
		os.Symlink(filepath.Join(top, "dots", "missing"), filepath.Join(home, "codex-mcp.toml")),
		os.Symlink("../../dots/rules", filepath.Join(home, "codex-mcp", "rules.json")),
		os.Symlink("../dots/prompts", filepath.Join(home, "prompts")),
		os.Symlink("../texts/one.md", filepath.Join(top, "dots", "prompts", "one.md")), // which is below dots, not below home
		os.Symlink("loop", filepath.Join(home, "loop")),
		os.WriteFile(filepath.Join(home, "auth.json"), nil, 0o600),
	} {
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
	}
	var got []string
	for _, path := range config.Linked(home) {
		if rel := strings.TrimPrefix(path, top+string(filepath.Separator)); !slices.Contains(got, rel) {
			got = append(got, rel)
		}
	}
	slices.Sort(got)
	want := []string{"dots/first", "dots/missing", "dots/prompts", "dots/rules", "dots/second", "dots/texts/one.md", "home/loop"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := config.Linked(filepath.Join(top, "none")); got != nil {
		t.Errorf("without a home: %q", got)
	}
}
