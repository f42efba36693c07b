package packaging_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/mod/modfile"
)

// publishedModules returns the folders of the nested modules with versions: those with a go.work,
// which takes the module of this checkout for the published one.
func publishedModules(t *testing.T) []string {
	t.Helper()
	var folders []string
	for _, file := range tracked(t, "*/go.work") {
		folders = append(folders, path.Dir(file))
	}
	return folders
}

// tracked returns the files that git knows by a pattern.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	testenv.NeedsPrograms(t, "git")
	out := must.Get(exec.Command("git", append([]string{"ls-files", "--"}, patterns...)...).Output())(t)
	return strings.Fields(string(out))
}

// TestPublishedModules checks that go install and go get accept the published modules: they have
// no replace line, and require the version that the next tag gives. go.work adds nothing but the module of this checkout, so that
// a build here has the dependencies of go.mod.
func TestPublishedModules(t *testing.T) {
	root(t)
	folders := publishedModules(t)
	must.Equal(t, "result", []string{"codexserver/gateway", "contrib"}, folders)
	version := pluginVersion(t)
	for _, file := range tracked(t, "go.mod", "*/go.mod") {
		for _, r := range modFile(t, file).Require {
			if (r.Mod.Path == module || strings.HasPrefix(r.Mod.Path, module+"/")) && r.Mod.Version != "v"+version {
				t.Errorf("%s requires %s, and the plugin has version %s", file, r.Mod, version)
			}
		}
	}
	for _, folder := range folders {
		if mod := modFile(t, folder+"/go.mod"); len(mod.Replace)+len(mod.Exclude) > 0 {
			t.Errorf("%s: go install refuses replace and exclude", folder)
		}
		work := must.Get(modfile.ParseWork(folder+"/go.work", []byte(read(t, folder, "go.work")), nil))(t)
		if len(work.Use) != 1 || work.Use[0].Path != "." || len(work.Replace) != 1 || work.Replace[0].Old.Path != module || path.Join(folder, work.Replace[0].New.Path) != "." {
			t.Errorf("%s/go.work does more than take this checkout", folder)
		}
	}
}

// pluginVersion returns the version of the plugin for Claude Code, which is that of the next or last release.
func pluginVersion(t *testing.T) string {
	t.Helper()
	return readJSON(t, "packaging/plugin/.claude-plugin/plugin.json").(map[string]any)["version"].(string)
}

// TestRegistryEntry validates server.json, which .ci/release completes, against the schema of the MCP registry.
func TestRegistryEntry(t *testing.T) {
	root(t)
	validate(t, "server.schema.json", readJSON(t, "packaging/server.json"))
}

// TestPlugin checks that the marketplace has the plugin, under the names of docs/hosts.md, and that the client starts only the
// plugin's own script, by its path, so that the page is asked too and an answer that no person gave does not approve.
func TestPlugin(t *testing.T) {
	root(t)
	var market struct {
		Name    string
		Plugins []struct{ Name, Source string }
	}
	var plugin struct {
		Name       string
		MCPServers map[string]any
	}
	for file, v := range map[string]any{".claude-plugin/marketplace.json": &market, "packaging/plugin/.claude-plugin/plugin.json": &plugin} {
		must.OK(t, json.Unmarshal([]byte(read(t, file)), v))
	}
	if len(market.Plugins) != 1 || market.Plugins[0].Source != "./packaging/plugin" || market.Plugins[0].Name != plugin.Name {
		t.Errorf("%+v does not have the plugin %s", market, plugin.Name)
	}
	const page = "docs/hosts.md"
	if got, want := documented(t, page, "claude plugin install "), "claude plugin install "+plugin.Name+"@"+market.Name; got != want {
		t.Errorf("%s has %q, want %q", page, got, want)
	}
	if got, want := documented(t, page, "claude plugin marketplace add "), "claude plugin marketplace add "+strings.TrimPrefix(module, "github.com/"); got != want {
		t.Errorf("%s has %q, want %q", page, got, want)
	}
	// The older word gives way to approvals.where of the user's file, which may say that the page alone asks.
	want := map[string]any{"codex": map[string]any{"command": "node", "args": []any{"${CLAUDE_PLUGIN_ROOT}/start.js", "--approvals", "both"}}}
	must.Equal(t, "result", want, plugin.MCPServers)
}

// TestInstallLinks decodes the links that add the server to editors: they are what the page says to write.
func TestInstallLinks(t *testing.T) {
	root(t)
	for file, tt := range map[string]struct {
		table string
		links []string
	}{
		"VS Code": {"servers", []string{"https://vscode.dev/redirect/mcp/install?", "vscode:mcp/install?"}},
		"Cursor":  {"mcpServers", []string{"https://cursor.com/en/install-mcp?", "cursor://anysphere.cursor-deeplink/mcp/install?"}},
	} {
		_, text, _ := strings.Cut(read(t, "docs/hosts.md"), "\n## "+file+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		_, block, _ := strings.Cut(text, "```json\n")
		block, _, _ = strings.Cut(block, "```")
		var set map[string]map[string]map[string]any
		must.OK(t, json.Unmarshal([]byte(block), &set))
		want := set[tt.table]["codex"]
		if want["command"] != "codex-mcp" {
			t.Fatalf("%s: %v", file, want)
		}
		for _, prefix := range tt.links {
			found := regexp.MustCompile(regexp.QuoteMeta(prefix)+`[^\s)]+`).FindAllString(text, -1)
			if len(found) != 1 {
				t.Errorf("%s has %d links %s", file, len(found), prefix)
				continue
			}
			name, got, err := decodeLink(strings.TrimPrefix(found[0], prefix))
			if err != nil || name != "codex" {
				t.Errorf("%s: the name %q, %v", found[0], name, err)
			}
			must.Equal(t, found[0], want, got)
		}
	}
}

// decodeLink reads the query of an install link: a JSON object with the name in it, or a name and
// a configuration, in JSON or in Base64 of JSON.
func decodeLink(query string) (name string, config map[string]any, err error) {
	text := ""
	if strings.HasPrefix(query, "%7B") {
		if text, err = url.PathUnescape(query); err != nil {
			return "", nil, err
		}
	} else {
		values, err := url.ParseQuery(query)
		if err != nil {
			return "", nil, err
		}
		name, text = values.Get("name"), values.Get("config")
		if !strings.HasPrefix(text, "{") {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return "", nil, err
			}
			text = string(b)
		}
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return "", nil, err
	}
	if name == "" {
		name, _ = config["name"].(string)
		delete(config, "name")
	}
	return name, config, nil
}
