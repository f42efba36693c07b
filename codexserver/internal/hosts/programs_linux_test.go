package hosts_test

import (
	"archive/zip"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/hosts/hoststest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestPrograms runs programs as they are installed. Each works with the host allowed, and fails without, with the words of
// the proxy where the program prints them. That of npm is native.TestNPM.
func TestPrograms(t *testing.T) {
	repo := t.TempDir()
	for _, args := range []string{"init -q", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m first", "update-server-info"} {
		cmd := exec.Command("git", strings.Fields(args)...)
		cmd.Dir, cmd.Env = repo, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	var module bytes.Buffer
	z := zip.NewWriter(&module)
	for name, text := range map[string]string{"go.mod": "module example.com/m\n", "m.go": "package m\n\nconst Hello = \"hello\"\n"} {
		must.Get(must.Get(z.Create("example.com/m@v1.0.0/" + name))(t).Write([]byte(text)))(t)
	}
	must.OK(t, z.Close())
	mux := http.NewServeMux()
	mux.Handle("/repo/", http.StripPrefix("/repo", http.FileServer(http.Dir(filepath.Join(repo, ".git")))))
	mux.HandleFunc("/example.com/m/@v/v1.0.0.info", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"Version":"v1.0.0"}`) })
	mux.HandleFunc("/example.com/m/@v/v1.0.0.mod", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "module example.com/m\n") })
	mux.HandleFunc("/example.com/m/@v/v1.0.0.zip", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(module.Bytes()) })
	const words = "codex-mcp: one.example.com was refused: the user said no"
	for _, tt := range []struct {
		program, script, works, fails string
	}{
		{"git", "git clone -q https://one.example.com/repo/ copy && git -C copy log --format=%s", "first", "403"},
		{"go", "mkdir go && cd go && export GOPATH=$PWD GOCACHE=$PWD/c GOFLAGS=-modcacherw GOPROXY=https://one.example.com GONOSUMDB=* GOENV=off GOTOOLCHAIN=local && go mod init x 2>/dev/null && go get example.com/m@v1.0.0 && cat pkg/mod/example.com/m@v1.0.0/m.go", `Hello = "hello"`, words},
	} {
		t.Run(tt.program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tt.program); err != nil {
				t.Skip(err)
			}
			w := hoststest.New(t, mux)
			got := w.Run(t, allow(), "bash", "-c", tt.script)
			if got.ExitCode == 0 || !strings.Contains(got.Aggregated, tt.fails) || len(got.Used) > 0 || len(w.Resolved()) > 0 {
				t.Errorf("refused: %d, used %q\n%s", got.ExitCode, got.Used, got.Aggregated)
			}
			w = hoststest.New(t, mux)
			got = w.Run(t, allow("one.example.com"), "bash", "-c", tt.script)
			if got.ExitCode != 0 || !strings.Contains(got.Aggregated, tt.works) || fmt.Sprint(got.Used) != "[one.example.com]" || len(got.Refused) > 0 {
				t.Errorf("allowed: %d, used %q, refused %v\n%s", got.ExitCode, got.Used, got.Refused, got.Aggregated)
			}
		})
	}
}

// TestOtherNameWithin asks the proxy for one host, and the server behind it for another. SECURITY.md says that this is open.
func TestOtherNameWithin(t *testing.T) {
	w := hoststest.New(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, "this is "+r.Host+" by "+r.TLS.ServerName)
	}))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must.Get(os.ReadFile(w.CA))(t))
	n := w.Proxy.Network(t.Context(), allow("one.example.com"))
	c := open(t, n, connect("one.example.com"))
	must.Equal(t, "the proxy", "HTTP/1.1 200 Connection established", status(c))
	within := tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "two.example.com"})
	must.Get(fmt.Fprint(within, "GET / HTTP/1.0\r\nHost: three.example.com\r\n\r\n"))(t)
	got := must.Get(io.ReadAll(within))(t)
	must.Equal(t, "the server", true, strings.HasSuffix(string(got), "this is three.example.com by two.example.com"))
	used, _ := n.Close()
	must.Equal(t, "used", "[one.example.com]", fmt.Sprint(used))
}
