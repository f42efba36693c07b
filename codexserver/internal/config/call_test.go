package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/google/go-cmp/cmp"
)

// callShapes reads testdata/calls.txt. Other packages read it too.
func callShapes(t testing.TB) (all [][]string) {
	t.Helper()
	b, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		what, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || what == "#" {
			continue
		}
		shape := []string{what}
		for part := range strings.SplitSeq(rest, " | ") {
			shape = append(shape, strings.TrimSpace(part))
		}
		all = append(all, shape)
	}
	if len(all) < 60 {
		t.Fatalf("%d shapes", len(all))
	}
	return all
}

// callFolder returns a working folder with base.md and a link to a secret file outside.
func callFolder(t *testing.T) string {
	t.Helper()
	dir := home(t, map[string]string{"secret": "s"})
	cwd := filepath.Join(dir, "work")
	if err := os.Mkdir(cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cwd, "base.md"), []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", filepath.Join(cwd, "link")); err != nil {
		t.Fatal(err)
	}
	return cwd
}

func members(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

func TestCallKeys(t *testing.T) {
	cwd := callFolder(t)
	for _, shape := range callShapes(t) {
		t.Run(shape[1], func(t *testing.T) {
			keys, warnings, err := config.CallKeys(members(t, shape[1]), cwd, false)
			switch shape[0] {
			case "ok", "warn":
				want := shape[2]
				if want == "=" {
					want = shape[1]
				}
				if err != nil {
					t.Fatal(err)
				}
				got, err := json.Marshal(keys)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(canonical(t, want), canonical(t, string(got))); diff != "" {
					t.Errorf("the engine gets (-want +got):\n%s", diff)
				}
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

// TestCallKeysOfFolders has a server that limits the folders of calls, and instructions by their
// absolute path.
func TestCallKeysOfFolders(t *testing.T) {
	cwd := callFolder(t)
	const nine = `{"hooks":[],"profile":"p","otel.a":1,"otel.b":1,"otel.c":1,"otel.d":1,"otel.e":1,"otel.f":1,"otel.g":1}`
	for _, tt := range []struct {
		call, cwd string
		bounded   bool
		want      string // of the error
		warning   string
	}{
		{`{"experimental_instructions_file":"` + cwd + `/base.md"}`, cwd, false, "", ""},
		{`{"experimental_instructions_file":"` + cwd + `/base.md"}`, "", false, "a call may not set", ""},
		{`{"experimental_instructions_file":"` + cwd + `/../secret"}`, cwd, false, "a call may not set", ""},
		{`{"notify":["x"]}`, cwd, true, "", "a call may not name programs to start; no setting allows it"},
		{`{"notify":["x"]}`, cwd, false, "", "a call may not name programs to start; calls.trusted = true in codex-mcp.toml allows it"},
		{`{"nosuch":1}`, cwd, false, "", `"nosuch" left out: no such key is known`},
		{nine, cwd, true, `"otel.g" and 1 more; no setting allows it`, ""},
		{strings.Replace(nine, `,"otel.g":1`, "", 1), cwd, false, `"profile"; calls.trusted = true in codex-mcp.toml`, ""},
	} {
		_, warnings, err := config.CallKeys(members(t, tt.call), tt.cwd, tt.bounded)
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

// FuzzCallKeys checks that an accepted config is accepted again without a change, and sets no
// key of another table.
func FuzzCallKeys(f *testing.F) {
	for _, shape := range callShapes(f) {
		f.Add(shape[1])
	}
	free := []string{
		"approval_policy", "compact_prompt", "developer_instructions", "experimental_use_exec_command_tool",
		"experimental_use_unified_exec_tool", "features", "hide_agent_reasoning", "mcp_servers", "model",
		"model_auto_compact_token_limit", "model_context_window", "model_provider", "model_reasoning_effort",
		"model_reasoning_summary", "model_reasoning_summary_format", "model_verbosity", "sandbox_mode",
		"sandbox_workspace_write", "shell_environment_policy", "show_raw_agent_reasoning", "tools",
	}
	f.Fuzz(func(t *testing.T, text string) {
		var call map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &call) != nil {
			return
		}
		keys, _, err := config.CallKeys(call, "", false)
		if err != nil {
			return
		}
		for key := range keys {
			if !slices.Contains(free, key) {
				t.Errorf("%q is accepted", key)
			}
		}
		again, warnings, err := config.CallKeys(quoted(keys), "", false)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("again: %v, %q", err, warnings)
		}
		if diff := cmp.Diff(keys, again); diff != "" {
			t.Errorf("again (-first +second):\n%s", diff)
		}
	})
}

// quoted quotes the top keys, so that each is one segment.
func quoted(keys map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for key, value := range keys {
		out[`"`+key+`"`] = value
	}
	return out
}
