//go:build release

package packaging_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/tools/txtar"
)

// TestReleaseInHostileProject starts the program as the plugin does, and as the pages say, with the real npm in
// projects that want their own program started. The project chooses neither the program nor what starts it.
func TestReleaseInHostileProject(t *testing.T) {
	root(t)
	root := must.Get(os.Getwd())(t)
	plugin := filepath.Join(root, "packaging", "plugin")
	version := pluginVersion(t)
	cpu := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	system := runtime.GOOS + "-" + cpu

	user := t.TempDir()
	t.Setenv("HOME", user)
	t.Setenv("PATH", filepath.Join(user, "global/bin")+":"+os.Getenv("PATH"))
	r, evil := newRegistry(t), newRegistry(t)
	npmrc := func(r *registry) string {
		return "registry=" + r.url + "\nprefix=" + user + "/global\nupdate-notifier=false\nnoproxy=127.0.0.1\naudit=false\nfund=false\n" + strings.TrimPrefix(r.url, "http:") + "/:_authToken=any\n"
	}
	for r, word := range map[*registry]string{evil: "EVIL", r: "REAL"} {
		put(t, filepath.Join(user, ".npmrc"), npmrc(r))
		dir := t.TempDir()
		put(t, filepath.Join(dir, "program/package.json"), `{"name":"@codexmcp/codex-mcp-`+system+`","version":"`+version+`","files":["codex-mcp"]}`)
		put(t, filepath.Join(dir, "program/codex-mcp"), "#!/bin/sh\necho "+word+" $0 $PWD\n")
		launcher := readJSON(t, "packaging/npm/package.json").(map[string]any)
		launcher["version"], launcher["optionalDependencies"] = version, map[string]string{"@codexmcp/codex-mcp-" + system: version}
		text := must.Get(json.Marshal(launcher))(t)
		put(t, filepath.Join(dir, "launcher/package.json"), string(text))
		put(t, filepath.Join(dir, "launcher/codex-mcp.js"), read(t, "packaging/npm/codex-mcp.js"))
		for _, name := range []string{"program", "launcher"} {
			command(t, filepath.Join(dir, name), "npm", "publish", "--access", "public")
		}
	}
	put(t, filepath.Join(user, ".npmrc"), npmrc(r))

	var set struct {
		MCPServers struct {
			Codex struct {
				Command string
				Args    []string
			}
		}
	}
	must.OK(t, json.Unmarshal([]byte(read(t, "packaging/plugin/.claude-plugin/plugin.json")), &set))
	server := set.MCPServers.Codex
	install := documented(t, "docs/releasing.md", "npm install --global @")
	projects := map[string]map[string]string{}
	for _, file := range must.Get(txtar.ParseFile("packaging/testdata/hostile.txtar"))(t).Files {
		project, path, _ := strings.Cut(file.Name, "/")
		if projects[project] == nil {
			projects[project] = map[string]string{}
		}
		projects[project][path] = string(file.Data)
	}
	for name, files := range projects {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			work := filepath.Join(around, "work")
			in := strings.NewReplacer("WORK", work, "REGISTRY", evil.url, "VERSION", version, "SYSTEM", system)
			for file, text := range files {
				put(t, filepath.Join(work, in.Replace(file)), in.Replace(text))
			}
			run := func(name string, args ...string) string {
				cmd := exec.Command(name, args...)
				cmd.Dir = work
				cmd.Env = append(os.Environ(), "CLAUDE_PLUGIN_ROOT="+plugin, "CLAUDE_PLUGIN_DATA="+filepath.Join(around, "data"), "npm_config_cache="+filepath.Join(around, "cache"))
				out, err := cmd.CombinedOutput()
				if err != nil || strings.Contains(string(out), "EVIL") {
					t.Errorf("%s %q: %v\n%s", name, args, err, out)
				}
				return string(out)
			}
			var args []string
			for _, arg := range server.Args {
				args = append(args, strings.ReplaceAll(arg, "${CLAUDE_PLUGIN_ROOT}", plugin))
			}
			for range 2 { // the second start finds the first one's program
				if out := run(server.Command, args...); !strings.HasSuffix(out, " "+work+"\n") || !strings.Contains(out, "REAL") {
					t.Errorf("the plugin: %q", out)
				}
			}
			words := strings.Fields(install)
			run(words[0], words[1:]...)
			if out := run("codex-mcp"); !strings.HasPrefix(out, "REAL "+user+"/global/") || !strings.HasSuffix(out, " "+work+"\n") {
				t.Errorf("%s: %q", install, out)
			}
		})
	}
}
