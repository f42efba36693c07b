package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// shapes reads a table of testdata, whose lines are "WHAT CELL | CELL …". Other packages read calls.txt, too.
func shapes(t testing.TB, name string) (all [][]string) {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile(filepath.Join("testdata", name)))(t))) {
		what, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || what == "#" {
			continue
		}
		shape := []string{what}
		for part := range strings.SplitSeq(rest+" ", " | ") {
			shape = append(shape, strings.TrimSpace(part))
		}
		all = append(all, shape)
	}
	if len(all) < 15 {
		t.Fatalf("%d lines in %s", len(all), name)
	}
	return all
}

// callFolder returns a working folder with base.md and a link to a secret file outside.
func callFolder(t *testing.T) string {
	t.Helper()
	dir := home(t, map[string]string{"secret": "s"})
	cwd := filepath.Join(dir, "work")
	must.OK(t, os.Mkdir(cwd, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(cwd, "base.md"), []byte("b"), 0o600))
	must.OK(t, os.Symlink("../secret", filepath.Join(cwd, "link")))
	return cwd
}

// callKeys reads a call's config, and returns what the engine gets.
func callKeys(text, cwd string, bounded bool) (keys protocol.Overrides, warnings []string, err error) {
	if err = json.Unmarshal([]byte(text), &keys); err == nil {
		keys, err = config.ReadCall(keys)
	}
	if err != nil {
		return nil, nil, err
	}
	return config.CallKeys(keys, cwd, bounded)
}

func TestCallKeys(t *testing.T) {
	cwd := callFolder(t)
	for _, shape := range shapes(t, "calls.txt") {
		t.Run(shape[1], func(t *testing.T) {
			keys, warnings, err := callKeys(shape[1], cwd, false)
			switch shape[0] {
			case "ok", "warn":
				want := shape[2]
				if want == "=" {
					want = shape[1]
				}
				must.OK(t, err)
				got := must.Get(json.Marshal(keys))(t)
				must.Equal(t, "the engine gets", canonical(t, want), canonical(t, string(got)))
				if shape[0] == "ok" && len(warnings) > 0 || shape[0] == "warn" && len(warnings) == 0 {
					t.Errorf("warnings %q", warnings)
				}
				for name := range strings.FieldsSeq(strings.Join(shape[3:], " ")) {
					if text := strings.Join(warnings, "\n"); !strings.Contains(text, fmt.Sprintf("%q", name)) {
						t.Errorf("no warning names %s: %s", name, text)
					}
				}
			case "refuse":
				named := strings.Join(strings.Fields(shape[2]), `", "`)
				if want := `a call may not set "` + named + `"; calls.trusted = true in codex-mcp.toml allows it`; err == nil || err.Error() != want {
					t.Errorf("%v, want %s", err, want)
				}
			default:
				if err == nil || strings.Contains(err.Error(), "a call may not") || !strings.Contains(err.Error(), shape[2]) {
					t.Errorf("error %v, want %q", err, shape[2])
				}
			}
		})
	}
}

// TestCallKeysOfFolders has a server that limits the folders of calls, and instructions by their absolute path.
func TestCallKeysOfFolders(t *testing.T) {
	cwd := callFolder(t)
	const nine = `{"hooks":[],"profile":"p","otel.a":1,"otel.b":1,"otel.c":1,"otel.d":1,"otel.e":1,"otel.f":1,"otel.g":1}`
	for _, tt := range []struct {
		call, cwd string
		bounded   bool
		want      string // of the error
		warning   string
	}{
		{fmt.Sprintf(`{"experimental_instructions_file":%q}`, cwd+"/base.md"), cwd, false, "", ""},
		{fmt.Sprintf(`{"experimental_instructions_file":%q}`, cwd+"/base.md"), "", false, "a call may not set", ""},
		{fmt.Sprintf(`{"experimental_instructions_file":%q}`, cwd+"/../secret"), cwd, false, "a call may not set", ""},
		{`{"notify":["x"]}`, cwd, true, "", "a call may not name programs to start; no setting allows it"},
		{`{"notify":["x"]}`, cwd, false, "", "a call may not name programs to start; calls.trusted = true in codex-mcp.toml allows it"},
		{`{"nosuch":1}`, cwd, false, "", `"nosuch" left out: no such key is known`},
		{nine, cwd, true, `"otel.g", "profile"; no setting allows it`, ""},
		{strings.Replace(nine, "otel.g", "otel."+strings.Repeat("x", 1<<10), 1), cwd, false, `xxx…; calls.trusted = true in codex-mcp.toml`, ""},
	} {
		_, warnings, err := callKeys(tt.call, tt.cwd, tt.bounded)
		if got := fmt.Sprint(err); err != nil && tt.want == "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", tt.call, got, tt.want)
		}
		if got := strings.Join(warnings, "; "); tt.warning == "" && got != "" || !strings.Contains(got, tt.warning) {
			t.Errorf("%s: warns %q, want %q", tt.call, got, tt.warning)
		}
	}
}

// canonical decodes JSON and keeps numbers exact.
func canonical(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// TestNamedRoots checks that the roots of the configuration do not include a writable root of a call.
func TestNamedRoots(t *testing.T) {
	const file = "[sandbox_workspace_write]\nwritable_roots = [\"/file\"]\n[profiles.p.sandbox_workspace_write]\nwritable_roots = [\"/profile\"]"
	call := raw("sandbox_workspace_write", `{"writable_roots":["/call"]}`)
	for _, tt := range []struct {
		name  string
		flags map[string]any
		call  protocol.Config
		want  []string
		roots []string
	}{
		{"file", nil, protocol.Config{FromCall: true}, []string{"/file"}, []string{"/file"}},
		{"profile", nil, protocol.Config{FromCall: true, Profile: "p", Overrides: call}, []string{"/profile"}, []string{"/call"}},
		{"flag", map[string]any{"sandbox_workspace_write.writable_roots": []any{"/flag"}}, protocol.Config{FromCall: true, Overrides: call}, []string{"/flag"}, []string{"/call"}},
		{"call", nil, protocol.Config{FromCall: true, Overrides: call}, []string{"/file"}, []string{"/call"}},
		{"user's configuration", nil, protocol.Config{Overrides: call}, []string{"/call"}, []string{"/call"}},
	} {
		c := loaded(t, file, config.Layers{Overrides: tt.flags, Call: tt.call})
		must.Equal(t, tt.name, [][]string{tt.want, tt.roots}, [][]string{c.NamedRoots, c.SandboxWorkspaceWrite.WritableRoots})
	}
}

// TestChooses finds a key in each of its forms.
func TestChooses(t *testing.T) {
	for text, want := range map[string]bool{
		`{"tools":{"web_search":true}}`: true, `{"tools.web_search.location":{}}`: true, `{"tools . 'web_search'":null}`: false, `{"tools":{"web_search":null}}`: true,
		`{"tools.\"web\\u005fsearch\"":1}`: true, `{"tools":"{\"web_search\":1}"}`: true, `{"tools":{"view_image":true}}`: false, `{"tools":true}`: false, `{"tools":{"web_search.'a' b":1}}`: true, `{"tools":{"'web_search'":1}}`: true, `{"tools":{"web_search\u00a0":1}}`: true, `{"tool":{"web_search":1},"tools.web_searching":1}`: false,
	} {
		var given protocol.Overrides
		must.OK(t, json.Unmarshal([]byte(text), &given))
		call := must.Get(config.ReadCall(given))(t)
		if got := config.Chooses(call, "tools.web_search"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestReadCall(t *testing.T) {
	for _, row := range shapes(t, "read.txt") {
		want := must.Get(config.ReadCall(raw(row[0], row[2])))(t)
		must.Equal(t, row[0], want, must.Get(config.ReadCall(raw(row[0], row[1])))(t))
	}
	for _, tt := range [][3]string{{"tools.'web_search' b", `1`, "expected '='"}, {"a..b", `1`, "want a name"}, {"'tools.web_search'", `1`, "want a name without quotes"}} {
		_, err := config.ReadCall(raw(tt[0], tt[1]))
		must.Fail(t, tt[0], tt[2], err)
	}
}
