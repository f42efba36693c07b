package appserver_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sentLimits are the sandbox and the approval policy of a turn, as the bridge sent them.
type sentLimits struct {
	Sandbox json.RawMessage `json:"sandboxPolicy"`
	Policy  json.RawMessage `json:"approvalPolicy"`
}

func accessOf(h *recorder) protocol.Access {
	return h.events[0].(protocol.SessionConfigured).Access
}

// limitsOf runs a turn and returns what it was started with. It fails unless all threads were begun read-only.
func limitsOf(t *testing.T, f *fake, load func(*appserver.Engine, engine.Host) (engine.Conversation, error)) (limits string, err error) {
	t.Helper()
	f.turn = answered
	threads, turns := f.keep("thread/start", "thread/resume"), f.keep("turn/start")
	h := &recorder{}
	conv, err := load(f.engine(appserver.Options{}), h)
	if err != nil {
		return "", err
	}
	must.OK(t, conv.Turn(t.Context(), text("go")))
	for _, sent := range *threads {
		if !strings.Contains(sent, `"sandbox":"read-only"`) || strings.Contains(sent, "sandbox_") || strings.Contains(sent, "default_permissions") {
			t.Errorf("a thread was begun with %s", sent)
		}
	}
	var sent sentLimits
	must.OK(t, json.Unmarshal([]byte((*turns)[0]), &sent))
	var told struct{ WritableRoots []string }
	must.OK(t, json.Unmarshal(sent.Sandbox, &told))
	must.Equal(t, "the folders that are looked at for changes", told.WritableRoots, h.events[0].(protocol.SessionConfigured).WritableRoots, cmpopts.EquateEmpty())
	return string(sent.Sandbox) + " " + string(sent.Policy), nil
}

const (
	reads  = `{"networkAccess":false,"type":"readOnly"}`
	writes = `{"networkAccess":false,"type":"workspaceWrite"}`
	all    = `{"type":"dangerFullAccess"}`
)

// TestSandboxOfTurns starts conversations under configurations of Codex. Each thread is begun
// read-only, and its turns get the sandbox that Codex would have chosen.
func TestSandboxOfTurns(t *testing.T) {
	cwd := t.TempDir()
	git, elsewhere := filepath.Join(cwd, "git"), filepath.Join(cwd, "elsewhere")
	deep, tree, faked := filepath.Join(git, "a", "b"), filepath.Join(cwd, "tree"), filepath.Join(cwd, "faked")
	boxtest.Lay(t, cwd, "git/a/b/", "elsewhere/", "faked/")
	for _, args := range [][]string{
		{"init", "-q", git},
		{"-C", git, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", git, "worktree", "add", "-q", tree},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	pointer := must.Get(os.ReadFile(filepath.Join(tree, ".git")))(t)
	writeFile(t, filepath.Join(faked, ".git"), string(pointer))
	trusted := func(folder, level string) map[string]any {
		return map[string]any{"projects": map[string]any{folder: map[string]any{"trust_level": level}}}
	}
	type keys = map[string]any
	for _, tt := range []struct {
		name        string
		config      keys
		layers      []keys // the strongest first; nil is config alone
		cfg         protocol.Config
		want, fails string
	}{
		{name: "nothing", config: keys{}, want: reads},
		{name: "configured", config: keys{"sandbox_mode": "workspace-write"}, want: writes},
		{name: "full access configured", config: keys{"sandbox_mode": "danger-full-access"}, want: all},
		{name: "a table alone", config: keys{"sandbox_workspace_write": keys{"network_access": true}}, want: reads},
		{name: "a table", config: keys{"sandbox_mode": "workspace-write", "sandbox_workspace_write": keys{"network_access": true, "writable_roots": []string{"/a"}, "exclude_slash_tmp": true, "exclude_tmpdir_env_var": true}},
			want: `{"excludeSlashTmp":true,"excludeTmpdirEnvVar":true,"networkAccess":true,"type":"workspaceWrite","writableRoots":["/a"]}`},
		{name: "a table of another type", config: keys{"sandbox_mode": "workspace-write", "sandbox_workspace_write": keys{"network_access": 1}}, fails: "sandbox_workspace_write.network_access"},
		{name: "an unknown mode", config: keys{"sandbox_mode": "all"}, fails: `sandbox_mode: "all" is none of read-only`},
		{name: "the argument", config: keys{"sandbox_mode": "danger-full-access", "default_permissions": ":danger-full-access"}, cfg: protocol.Config{Sandbox: protocol.SandboxWorkspaceWrite}, want: writes},
		{name: "the call's key", config: keys{"sandbox_mode": "read-only"}, cfg: protocol.Config{Overrides: raw("sandbox_mode", `"workspace-write"`, "sandbox_workspace_write.writable_roots", `["r", "/a"]`)},
			want: `{"networkAccess":false,"type":"workspaceWrite","writableRoots":["` + cwd + `/r","/a"]}`},
		{name: "a null", config: keys{"sandbox_mode": "workspace-write"}, cfg: protocol.Config{Overrides: raw("sandbox_mode", `null`)}, want: writes},

		{name: "a profile of permissions", config: keys{"default_permissions": ":workspace", "sandbox_workspace_write": keys{"network_access": true}}, want: writes},
		{name: "read-only by one", config: keys{"default_permissions": ":read-only", "sandbox_mode": "danger-full-access"}, want: reads},
		{name: "full access by one", config: keys{"default_permissions": ":danger-full-access"}, want: all},
		{name: "one that cannot be given", config: keys{"default_permissions": "mine"}, fails: `default_permissions: the profile of permissions "mine" cannot be given`},
		{name: "the argument in its place", config: keys{"default_permissions": "mine"}, cfg: protocol.Config{Sandbox: protocol.SandboxReadOnly}, want: reads},
		{name: "a stronger mode", config: keys{"default_permissions": ":workspace", "sandbox_mode": "read-only"}, layers: []keys{{"sandbox_mode": "read-only"}, {"default_permissions": ":workspace"}}, want: reads},
		{name: "a stronger profile", config: keys{"default_permissions": ":workspace", "sandbox_mode": "read-only"}, layers: []keys{{"model": "m"}, {"default_permissions": ":workspace"}, {"sandbox_mode": "read-only"}}, want: writes},

		{name: "trusted", config: trusted(cwd, "trusted"), want: writes},
		{name: "not trusted", config: trusted(cwd, "untrusted"), want: writes},
		{name: "trusted and configured", config: keys{"sandbox_mode": "read-only", "projects": trusted(cwd, "trusted")["projects"]}, want: reads},
		{name: "another is trusted", config: trusted(elsewhere, "trusted"), want: reads},
		{name: "the folder above is trusted", config: trusted(cwd, "trusted"), cfg: protocol.Config{Cwd: elsewhere}, want: reads},
		{name: "the repository is trusted", config: trusted(git, "trusted"), cfg: protocol.Config{Cwd: deep}, want: writes},
		{name: "in a worktree", config: trusted(git, "trusted"), cfg: protocol.Config{Cwd: tree}, want: writes},
		{name: "in what says that it is one", config: trusted(git, "trusted"), cfg: protocol.Config{Cwd: faked}, want: reads},
		{name: "a review", config: keys{"sandbox_mode": "danger-full-access"}, cfg: protocol.Config{ReadOnly: true}, want: reads},
	} {
		inBubble(t, tt.name, func(t *testing.T, f *fake) {
			f.config = tt.config
			if tt.cfg.ReadOnly {
				f.policy = `"never"`
			}
			var layers []map[string]any
			for _, l := range tt.layers {
				layers = append(layers, map[string]any{"config": l, "name": map[string]any{"type": "user"}, "version": "1"})
			}
			if layers != nil { // one that does not count
				f.layers = append([]map[string]any{{"config": keys{"sandbox_mode": "danger-full-access"}, "disabledReason": "not trusted"}}, layers...)
			}
			tt.cfg.Cwd = cmp.Or(tt.cfg.Cwd, cwd)
			got, err := limitsOf(t, f, func(e *appserver.Engine, h engine.Host) (engine.Conversation, error) {
				return e.Start(t.Context(), tt.cfg, h)
			})
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("%v, want %s", err, tt.fails)
				}
				return
			}
			want := tt.want + ` "` + strings.Trim(cmp.Or(f.policy, "on-request"), `"`) + `"`
			if err != nil || got != want {
				t.Errorf("%v, the turn got %s, want %s", err, got, want)
			}
		})
	}
}

// TestAccess compares what a call asks for with the configuration.
func TestAccess(t *testing.T) {
	base := t.TempDir()
	cwd, tmp := filepath.Join(base, "cwd"), filepath.Join(base, "tmp")
	boxtest.Lay(t, base, "cwd/", "tmp/", "link -> cwd")
	t.Setenv("TMPDIR", tmp)
	link := filepath.Join(base, "link")
	type keys = map[string]any
	type access = protocol.Access
	const ws, full = protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess
	provider := keys{"mine": keys{"base_url": "http://mine"}, "other": keys{"base_url": "http://other"}}
	granular := `{"granular":{"mcp_elicitations":true,"rules":true,"sandbox_approval":true}}`
	for _, tt := range []struct {
		name    string
		config  keys
		options appserver.Options
		policy  string // what Codex reports
		cfg     protocol.Config
		want    access
	}{
		{name: "nothing", config: keys{}},
		{name: "what is configured", config: keys{"sandbox_mode": "danger-full-access", "approval_policy": "never"}, policy: `"never"`, cfg: protocol.Config{Sandbox: full, ApprovalPolicy: protocol.ApprovalNever}},
		{name: "less", config: keys{"sandbox_mode": "danger-full-access", "approval_policy": "never"}, cfg: protocol.Config{Sandbox: protocol.SandboxReadOnly}},
		{name: "a folder is chosen", config: keys{}, cfg: protocol.Config{Sandbox: ws, Cwd: link}, want: access{Mode: ws}},
		{name: "a folder is chosen, as configured", config: keys{"sandbox_mode": "workspace-write"}, want: access{Mode: ws}},
		{name: "full access", config: keys{"sandbox_mode": "workspace-write"}, cfg: protocol.Config{Sandbox: full}, want: access{Mode: full, Policy: "on-request", Network: true, WebSearch: true}},
		{name: "full access by a key", config: keys{}, policy: `"never"`, cfg: protocol.Config{Overrides: raw("sandbox_mode", `"danger-full-access"`, "approval_policy", `"never"`)}, want: access{Mode: full, Policy: "never", Network: true, WebSearch: true}},
		{name: "full access by a profile of permissions", config: keys{}, cfg: protocol.Config{Overrides: raw("default_permissions", `":danger-full-access"`)}, want: access{Mode: full, Policy: "on-request", Network: true, WebSearch: true}},
		{name: "full access by a profile", config: keys{}, cfg: protocol.Config{Profile: "wide"}, want: access{Mode: full, Policy: "on-request", Network: true, WebSearch: true, Provider: "mine"}},
		{name: "a profile of the server", config: keys{}, options: appserver.Options{Overrides: map[string]any{"profile": "wide"}}},
		{name: "a profile without effect", config: keys{"sandbox_mode": "danger-full-access", "model_provider": "mine"}, cfg: protocol.Config{Profile: "wide"}},
		{name: "a configuration that cannot be judged", config: keys{"default_permissions": "mine"}, cfg: protocol.Config{Sandbox: ws}, want: access{Mode: ws}},

		{name: "a looser policy in full access", config: keys{"sandbox_mode": "danger-full-access", "approval_policy": "untrusted"}, cfg: protocol.Config{ApprovalPolicy: protocol.ApprovalOnRequest}, want: access{Policy: "on-request"}},
		{name: "as loose", config: keys{"sandbox_mode": "danger-full-access", "approval_policy": "on-request"}, policy: `"never"`, cfg: protocol.Config{ApprovalPolicy: protocol.ApprovalNever}},
		{name: "finer rules in full access", config: keys{"sandbox_mode": "danger-full-access", "approval_policy": "untrusted"}, policy: granular, cfg: protocol.Config{Overrides: raw("approval_policy", granular)}, want: access{Policy: protocol.ApprovalPolicy(granular)}},
		{name: "a looser policy in the sandbox", config: keys{"approval_policy": "untrusted"}, policy: `"never"`, cfg: protocol.Config{ApprovalPolicy: protocol.ApprovalNever}},
		{name: "in full access without trust", config: keys{"sandbox_mode": "danger-full-access", "projects": keys{cwd: keys{"trust_level": "untrusted"}}}, cfg: protocol.Config{ApprovalPolicy: protocol.ApprovalOnRequest}, want: access{Policy: "on-request"}},

		{name: "network", config: keys{"sandbox_mode": "workspace-write"}, cfg: protocol.Config{Overrides: raw("sandbox_workspace_write.network_access", `true`)}, want: access{Mode: ws, Network: true}},
		{name: "network without a sandbox for it", config: keys{}, cfg: protocol.Config{Overrides: raw("sandbox_workspace_write.network_access", `true`)}},
		{name: "network as configured", config: keys{"sandbox_workspace_write": keys{"network_access": true}, "sandbox_mode": "workspace-write"}, cfg: protocol.Config{Sandbox: ws}, want: access{Mode: ws}},
		{name: "network of a sandbox that is not configured", config: keys{"sandbox_workspace_write": keys{"network_access": true}}, cfg: protocol.Config{Sandbox: ws}, want: access{Mode: ws, Network: true}},

		{name: "a root", config: keys{}, cfg: protocol.Config{Sandbox: ws, Overrides: raw("sandbox_workspace_write", `{"writable_roots":["/opt/x","in","/opt/x"]}`)}, want: access{Mode: ws, Roots: []string{"/opt/x"}}},
		{name: "a configured root", config: keys{"sandbox_workspace_write": keys{"writable_roots": []string{"/opt"}}}, cfg: protocol.Config{Sandbox: ws, Overrides: raw("sandbox_workspace_write", `{"writable_roots":["/opt/x"]}`)}, want: access{Mode: ws}},
		{name: "/tmp", config: keys{"sandbox_workspace_write": keys{"exclude_slash_tmp": true, "exclude_tmpdir_env_var": true}}, cfg: protocol.Config{Sandbox: ws, Overrides: raw("sandbox_workspace_write.exclude_slash_tmp", `false`)}, want: access{Mode: ws, Roots: []string{"/tmp"}}},
		{name: "$TMPDIR", config: keys{"sandbox_workspace_write": keys{"exclude_slash_tmp": true, "exclude_tmpdir_env_var": true}}, cfg: protocol.Config{Sandbox: ws, Overrides: raw("sandbox_workspace_write", `{"exclude_tmpdir_env_var":false}`)}, want: access{Mode: ws, Roots: []string{tmp}}},
		{name: "folders for temporary files as configured", config: keys{}, cfg: protocol.Config{Sandbox: ws, Overrides: raw("sandbox_workspace_write", `{"exclude_slash_tmp":false}`)}, want: access{Mode: ws}},

		{name: "web search", config: keys{}, cfg: protocol.Config{Choices: protocol.Choices{WebSearch: new(true)}}, want: access{WebSearch: true}},
		{name: "web search as configured", config: keys{"web_search": "live"}, cfg: protocol.Config{Choices: protocol.Choices{WebSearch: new(true)}}},
		{name: "no web search", config: keys{"web_search": "live"}, cfg: protocol.Config{Choices: protocol.Choices{WebSearch: new(false)}}},
		{name: "web search by a feature", config: keys{}, cfg: protocol.Config{Overrides: raw("features.web_search_request", `true`)}, want: access{WebSearch: true}},
		{name: "web search by an unknown word", config: keys{"web_search": "live"}, cfg: protocol.Config{Overrides: raw("web_search", `"far"`)}, want: access{WebSearch: true}},
		{name: "another web search", config: keys{}, cfg: protocol.Config{Overrides: raw("features.standalone_web_search", `true`)}, want: access{WebSearch: true}},
		{name: "a tool", config: keys{}, cfg: protocol.Config{Overrides: raw("tools.web_search", `true`)}, want: access{WebSearch: true}},
		{name: "a tool as configured", config: keys{"tools": keys{"web_search": true}}, cfg: protocol.Config{Overrides: raw("tools.web_search", `true`)}},
		{name: "none, and other domains", config: keys{}, cfg: protocol.Config{Choices: protocol.Choices{WebSearch: new(false)}, Overrides: raw("tools.web_search.allowed_domains", `["b.org"]`)}},
		{name: "other domains", config: keys{"tools": keys{"web_search": keys{"allowed_domains": []string{"a.org"}}}}, cfg: protocol.Config{Overrides: raw("tools.web_search.allowed_domains", `["b.org"]`)}, want: access{WebSearch: true}},

		{name: "a provider", config: keys{"model_providers": provider, "model_provider": "mine"}, cfg: protocol.Config{Overrides: raw("model_provider", `"other"`)}, want: access{Provider: "other at http://other"}},
		{name: "the provider", config: keys{"model_providers": provider, "model_provider": "mine"}, cfg: protocol.Config{Overrides: raw("model_provider", `"mine"`)}},
		{name: "another address", config: keys{"model_providers": provider, "model_provider": "mine"}, cfg: protocol.Config{Overrides: raw("model_providers.mine.base_url", `"http://x"`)}, want: access{Provider: "mine at http://x"}},
		{name: "an address of Codex's own provider", config: keys{}, cfg: protocol.Config{Overrides: raw("openai_base_url", `"http://x"`)}, want: access{Provider: "openai at http://x"}},
		{name: "what is said of another provider", config: keys{"model_providers": provider, "model_provider": "mine"}, cfg: protocol.Config{Overrides: raw("model_providers.other.base_url", `"http://x"`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			writeFile(t, filepath.Join(home, "wide.config.toml"), "sandbox_mode = \"danger-full-access\"\nmodel_provider = \"mine\"\n")
			bubble(t, func(t *testing.T, f *fake) {
				f.home, f.config, f.policy = home, tt.config, cmp.Or(tt.policy, `"on-request"`)
				tt.cfg.Cwd = cmp.Or(tt.cfg.Cwd, cwd)
				f.cwd = tt.cfg.Cwd
				h := &recorder{}
				must.Get(f.engine(tt.options).Start(t.Context(), tt.cfg, h))(t)
				tt.want.Folder = cwd
				must.Equal(t, "result", tt.want, accessOf(h))
			})
		})
	}
}

// TestNoRootsAtAll begins a conversation without the folders of the configuration. Codex would add them to the sandbox of
// a turn that names none, unless the thread has none.
func TestNoRootsAtAll(t *testing.T) {
	for text, want := range map[string]bool{`{"writable_roots":[]}`: true, `{"writable_roots":["/b"]}`: false} {
		bubble(t, func(t *testing.T, f *fake) {
			f.config = map[string]any{"sandbox_mode": "workspace-write", "sandbox_workspace_write": map[string]any{"writable_roots": []string{"/a", "/b"}}}
			sent := f.keep("thread/start")
			must.Get(f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Overrides: raw("sandbox_workspace_write", text)}, &recorder{}))(t)
			if got := strings.Contains((*sent)[0], `"sandbox_workspace_write.writable_roots":[]`); got != want {
				t.Errorf("sent %s", *sent)
			}
		})
	}
}

// TestResumedProvider resumes a thread of another model provider, which Codex does not change.
func TestResumedProvider(t *testing.T) {
	for was, want := range map[string]string{"openai": "", "other": "other at http://other", "gone": "gone"} {
		bubble(t, func(t *testing.T, f *fake) {
			f.config = map[string]any{"model_providers": map[string]any{"other": map[string]any{"base_url": "http://other"}}}
			f.on["thread/read"] = reply(fmt.Sprintf(`{"thread":{"path":"/r.jsonl","cwd":"/project","modelProvider":%q}}`, was))
			h := &recorder{}
			must.Get(f.engine(appserver.Options{}).Resume(t.Context(), savedAt(writeRollout(t)), protocol.Config{}, h))(t)
			must.Equal(t, was, want, accessOf(h).Provider)
		})
	}
}
