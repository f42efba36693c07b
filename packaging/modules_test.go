//go:build release

package packaging_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// tryModules installs the programs as go install does at a version, and builds a module that imports the published modules, in an
// empty folder. The modules come from the tags of a repository, all others from this machine's module cache.
func tryModules(t *testing.T, repo, version string) {
	for _, published := range publishedModules(t) { // what they need, so that the cache has it
		command(t, filepath.Join(repo, published), "go", "mod", "download")
	}
	home := t.TempDir()
	env := append(os.Environ(), "GOFLAGS=-mod=mod -trimpath -modcacherw", "CGO_ENABLED=0", "GOBIN="+home,
		"GOMODCACHE="+filepath.Join(home, "modules"), "GOSUMDB=off", // these versions are only here; go.sum has checked all others in the cache
		"GOPROXY=file://"+goProxy(t, repo, "v"+version)+",file://"+strings.TrimSpace(command(t, ".", "go", "env", "GOMODCACHE"))+"/cache/download")
	run := func(t *testing.T, dir, line string) string {
		t.Helper()
		cmd := exec.Command("sh", "-ec", line)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	for _, program := range []struct{ page, name string }{{"README.md", "codex-mcp"}, {"codexserver/gateway/README.md", "codex-mcp-gateway"}} {
		t.Run(program.name, func(t *testing.T) {
			run(t, t.TempDir(), documented(t, program.page, "go install "+module+"/codexserver/"))
			want := program.name + " " + version + " (" + runtime.Version() + ", "
			if line := run(t, home, "./"+program.name+" --version"); !strings.HasPrefix(line, want) {
				t.Errorf("--version: %q, want %q", line, want)
			}
		})
	}
	t.Run("import", func(t *testing.T) {
		dir := t.TempDir()
		text := "package m\n\nimport (\n\t\"" + module + "/codexserver\"\n\t\"" + module + "/contrib/gosdkmcp\"\n)\n\n" +
			"var (\n\t_ codexserver.Server\n\t_ gosdkmcp.Transport\n)\n"
		put(t, filepath.Join(dir, "m.go"), text)
		run(t, dir, "go mod init example.test/m && go get . && go build .")
		for _, m := range []string{"", "/contrib"} {
			must.Equal(t, m, "v"+version+" <nil>\n", run(t, dir, "go list -m -f '{{.Version}} {{.Replace}}' "+module+m))
		}
	})
}

// goProxy returns a folder with the layout of a module proxy, with one version of each published module, made from its tag.
func goProxy(t *testing.T, repo, version string) string {
	dir := t.TempDir()
	for _, folder := range append(publishedModules(t), ".") {
		tag, name, sub := path.Join(folder, version), path.Join(module, folder), strings.TrimPrefix(folder, ".")
		to := filepath.Join(dir, name, "@v")
		info := must.Get(json.Marshal(map[string]string{"Version": version, "Time": time.Now().UTC().Format(time.RFC3339)}))(t)
		put(t, filepath.Join(to, "list"), version+"\n")
		put(t, filepath.Join(to, version+".info"), string(info))
		mod := command(t, repo, "git", "show", "refs/tags/"+tag+":"+path.Join(folder, "go.mod"))
		put(t, filepath.Join(to, version+".mod"), mod)
		f := must.Get(os.Create(filepath.Join(to, version+".zip")))(t)
		must.OK(t, zip.CreateFromVCS(f, gomodule.Version{Path: name, Version: version}, repo, "refs/tags/"+tag, sub))
		must.OK(t, f.Close())
	}
	return dir
}
