//go:build release

package packaging_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// registry is an npm registry on loopback, which keeps what npm publish sends.
type registry struct {
	url string

	mu       sync.Mutex
	packages map[string]map[string]any // by the name of the package
	files    map[string][]byte         // by the path
}

func newRegistry(t *testing.T) *registry {
	r := &registry{packages: map[string]map[string]any{}, files: map[string][]byte{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strings.TrimPrefix(req.URL.Path, "/")
	if req.Method == http.MethodPut {
		var published map[string]any
		if err := json.NewDecoder(req.Body).Decode(&published); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for file, a := range published["_attachments"].(map[string]any) {
			b, err := base64.StdEncoding.DecodeString(a.(map[string]any)["data"].(string))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.files["-/"+file] = b
			for _, version := range published["versions"].(map[string]any) {
				version.(map[string]any)["dist"].(map[string]any)["tarball"] = r.url + "/-/" + file
			}
		}
		delete(published, "_attachments")
		r.packages[name] = published
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("{}"))
		return
	}
	switch p, file := r.packages[name], r.files[name]; {
	case p != nil:
		_ = json.NewEncoder(w).Encode(p)
	case file != nil:
		_, _ = w.Write(file)
	default:
		http.Error(w, "{}", http.StatusNotFound)
	}
}

// tryRegistry publishes the packages to a registry, and installs the program with the command of docs/releasing.md. With -claude
// the real Claude Code installs the plugin of the repository, and connects to the server.
func tryRegistry(t *testing.T, dist, repo, version string) {
	r := newRegistry(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("npm_config_registry", r.url)
	t.Setenv("npm_config_cache", filepath.Join(home, "npm"))
	t.Setenv("npm_config_userconfig", filepath.Join(home, "npmrc"))
	t.Setenv("npm_config_update_notifier", "false")
	t.Setenv("npm_config_noproxy", "127.0.0.1")
	token := strings.TrimPrefix(r.url, "http:") + "/:_authToken=any\n" // npm publishes nothing without one
	put(t, filepath.Join(home, "npmrc"), token)
	packages, err := filepath.Glob(filepath.Join(dist, "*.tgz"))
	if err != nil || len(packages) < 2 {
		t.Fatalf("%v, %v", packages, err)
	}
	for _, file := range packages {
		command(t, dist, "npm", "publish", "--access", "public", file)
	}
	t.Setenv("npm_config_prefix", filepath.Join(home, "global"))
	words := strings.Fields(documented(t, "docs/releasing.md", "npm install --global @"))
	command(t, home, words[0], words[1:]...)
	try(t, filepath.Join(home, "global/bin/codex-mcp"), version)
	if *claude == "" {
		return
	}
	t.Run("claude", func(t *testing.T) {
		bin, dir := filepath.Join(*claude, "claude"), t.TempDir()
		const page = "docs/hosts.md"
		add := strings.Fields(documented(t, page, "claude plugin marketplace add "))
		add[len(add)-1] = repo // which is not published
		command(t, dir, bin, add[1:]...)
		command(t, dir, bin, strings.Fields(documented(t, page, "claude plugin install "))[1:]...)
		if out := command(t, dir, bin, "mcp", "list"); !strings.Contains(out, "/start.js --approvals both - ✔ Connected") {
			t.Error(out)
		}
	})
}

// tryDebian installs the Debian package of this system in an empty folder, starts the program and removes the package.
func tryDebian(t *testing.T, dist, version string) {
	root := t.TempDir()
	for _, dir := range []string{"info", "updates", "triggers"} {
		must.OK(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755))
	}
	put(t, filepath.Join(root, "var/lib/dpkg/status"), "")
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	dpkg := func(args ...string) string {
		return command(t, root, "dpkg", append([]string{"--root=" + root, "--log=/dev/null", "--force-not-root"}, args...)...)
	}
	dpkg("--install", filepath.Join(dist, "codex-mcp_"+version+"_linux_"+runtime.GOARCH+".deb"))
	if got := command(t, root, "dpkg-query", "--admindir="+root+"/var/lib/dpkg", "-W", "-f", "${Version} ${Status}", "codex-mcp"); got != version+" install ok installed" {
		t.Error(got)
	}
	program := filepath.Join(root, "usr/bin/codex-mcp")
	try(t, program, version)
	for shell, file := range map[string]string{
		"bash": "bash-completion/completions/codex-mcp", "zsh": "zsh/vendor-completions/_codex-mcp", "fish": "fish/vendor_completions.d/codex-mcp.fish",
	} {
		must.Equal(t, fmt.Sprint(file, shell), command(t, root, program, "completion", shell), read(t, root, "usr/share", file))
	}
	for page, words := range map[string]string{"codex-mcp.1": "Serve MCP", "codex-mcp-ask.1": "Run one task", "codex-mcp-rules-add.1": "Let commands"} {
		if text := command(t, root, "gzip", "-cd", filepath.Join(root, "usr/share/man/man1", page+".gz")); !strings.Contains(text, words) {
			t.Errorf("%s: %s", page, text)
		}
	}
	for _, file := range []string{"copyright", "CHANGELOG.md", "LICENSES-OF-OTHERS", "README.md"} {
		read(t, root, "usr/share/doc/codex-mcp", file)
	}
	dpkg("--remove", "codex-mcp")
	if _, err := os.Stat(filepath.Join(root, "usr/bin")); !os.IsNotExist(err) {
		t.Errorf("the removed package left its program: %v", err)
	}
}

// checkFormula compares the formula with the archives and their sums. A script stands in for Homebrew.
func checkFormula(t *testing.T, dist, version string) {
	sums, homebrew := read(t, dist, "SHA256SUMS"), must.Get(filepath.Abs("packaging/testdata/homebrew.rb"))(t)
	found := 0
	for system, chosen := range map[string][]string{
		"darwin_amd64": {"on_macos", "on_intel"}, "darwin_arm64": {"on_macos", "on_arm"}, "linux_amd64": {"on_linux", "on_intel"}, "linux_arm64": {"on_linux", "on_arm"},
	} {
		got := command(t, dist, "ruby", append([]string{"-w", homebrew, "codex-mcp.rb"}, chosen...)...)
		file := "codex-mcp_" + version + "_" + system + ".tar.gz"
		if _, err := os.Stat(filepath.Join(dist, file)); err != nil { // without -whole
			if got != "" {
				t.Errorf("%s is not in the release: %s", system, got)
			}
			continue
		}
		found++
		url, sum, _ := strings.Cut(strings.TrimSuffix(got, "\n"), "\n")
		if url != "https://"+module+"/releases/download/v"+version+"/"+file || len(sum) != 64 || !strings.Contains(sums, sum+"  "+file+"\n") {
			t.Errorf("%s: %q", system, got)
		}
	}
	if found == 0 || *whole && found != 4 {
		t.Errorf("%d archives", found)
	}
}
