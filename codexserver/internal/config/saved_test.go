package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func homeWith(t testing.TB, configTOML string) string {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(configTOML), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// TestSaved compares with the answers of Codex 0.42 to getUserSavedConfig.
func TestSaved(t *testing.T) {
	full, err := os.ReadFile("testdata/saved/full.toml")
	if err != nil {
		t.Fatal(err)
	}
	const nulls = `"modelProvider":null,"approvalPolicy":null,"modelReasoningEffort":null,"modelReasoningSummary":null,"modelVerbosity":null,"chatgptBaseUrl":null`
	for _, tt := range []struct{ name, file, want string }{
		{"full", string(full), `{"approvalPolicy":"on-request","sandboxMode":"workspace-write","sandboxSettings":{"writableRoots":["/tmp"],"networkAccess":true,"excludeTmpdirEnvVar":true,"excludeSlashTmp":true},"model":"gpt-5","modelReasoningEffort":"low","modelReasoningSummary":"detailed","modelVerbosity":"medium","tools":{"webSearch":false,"viewImage":true},"profile":"test","profiles":{"test":{"model":"gpt-4o","modelProvider":"openai","approvalPolicy":"on-failure","modelReasoningEffort":"high","modelReasoningSummary":"auto","modelVerbosity":"high","chatgptBaseUrl":"https://api.chatgpt.com"}}}`},
		{"partial", "[sandbox_workspace_write]\nnetwork_access = true\n[tools]\nweb_search = true\n[profiles.p]\nmodel = \"m\"\n",
			`{"sandboxSettings":{"writableRoots":[],"networkAccess":true,"excludeTmpdirEnvVar":false,"excludeSlashTmp":false},"tools":{"webSearch":true},"profiles":{"p":{"model":"m",` + nulls + `}}}`},
		{"empty", "", `{"profiles":{}}`},
		{"empty tables", "[sandbox_workspace_write]\n[tools]\n", `{"sandboxSettings":{"writableRoots":[],"networkAccess":false,"excludeTmpdirEnvVar":false,"excludeSlashTmp":false},"tools":{},"profiles":{}}`},
		{"the other name of web_search", "[tools]\nweb_search_request = true\nview_image = false\n", `{"tools":{"webSearch":true,"viewImage":false},"profiles":{}}`},
		{"keys that are not shown", "foo = 1\nmodel_provider = \"p\"\n[bar]\n[profiles.x]\nfoo = 2\n", `{"profiles":{"x":{"model":null,` + nulls + `}}}`},
		{"an unknown profile", "profile = \"nosuch\"\n", `{"profile":"nosuch","profiles":{}}`},
		{"an empty model", "model = \"\"\n", `{"model":"","profiles":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			saved, err := config.Saved(homeWith(t, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(saved, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			want := jsontext.Value(tt.want)
			if err := want.Canonicalize(); err != nil {
				t.Fatal(err)
			}
			have := jsontext.Value(got)
			if err := have.Canonicalize(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(have)); diff != "" {
				t.Error("(-want +got)\n" + diff)
			}
		})
	}
	if saved, err := config.Saved(t.TempDir()); err != nil || saved.Profiles == nil {
		t.Errorf("no file: %+v, %v", saved, err)
	}
}

func TestSavedRefused(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"model = \n", "config.toml:1:"},
		{"model = 5\n", "model: want a string, have a number"},
		{"profile = 5\n", "profile: want a string"},
		{"approval_policy = \"nope\"\n", `approval_policy: "nope"`},
		{"sandbox_mode = \"\"\n", "sandbox_mode"},
		{"model_verbosity = \"zz\"\n", "model_verbosity"},
		{"model_reasoning_effort = \"\"\n", "model_reasoning_effort"},
		{"[profiles.a]\napproval_policy = {}\n", "profiles.a.approval_policy"},
		{"[profiles.a]\nmodel_reasoning_summary = \"zz\"\n", "profiles.a.model_reasoning_summary"},
		{"[profiles]\na = 5\n", "profiles.a: want a table"},
		{"tools = []\n", "tools: want a table"},
	} {
		_, err := config.Saved(homeWith(t, tt.file))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "config.toml") {
			t.Errorf("%q: error %v, want %s", tt.file, err, tt.want)
		}
	}
}
