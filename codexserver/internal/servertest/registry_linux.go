package servertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// packages are those of npm that a repository of [Install] needs.
var packages = []string{"one", "two"}

// Install lays a repository that needs packages of npm from a registry, which serves NAME.tgz for each.
func Install(t testing.TB, repository, registry string) {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip(err)
	}
	var needs, locked []string
	for _, name := range packages {
		needs = append(needs, fmt.Sprintf(`%q:"1.0.0"`, name))
		const entry = `"node_modules/%[1]s":{"version":"1.0.0","resolved":"%[2]s/%[1]s.tgz"}`
		locked = append(locked, fmt.Sprintf(entry, name, registry))
	}
	about := `"name":"work","version":"1.0.0","dependencies":{` + strings.Join(needs, ",") + `}`
	for name, text := range map[string]string{
		".gitignore":   "node_modules\n",
		"package.json": "{" + about + "}",
		"package-lock.json": `{"name":"work","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{` +
			about + `},` + strings.Join(locked, ",") + `}}`,
	} {
		writeFile(t, filepath.Join(repository, name), text, 0o600)
	}
	for _, args := range []string{"init -q", "add .", "commit -q -m first"} {
		Git(t, repository, strings.Fields(args)...)
	}
}

// Installed fails unless the packages are in a worktree, or none of them.
func Installed(t testing.TB, tree string, want bool) {
	t.Helper()
	for _, name := range packages {
		_, err := os.Stat(filepath.Join(tree, "node_modules", name, "package.json"))
		must.Equal(t, name+" is there", want, err == nil)
	}
}

// names lets programs of Node find the host registry.test at the loopback address outside of the sandbox, and as always in it.
const names = `const dns = require("dns"), fs = require("fs"), lookup = dns.lookup
dns.lookup = (host, options, done) => {
	const outside = fs.readlinkSync("/proc/self/ns/net") === process.env.OUTSIDE
	if (host !== "registry.test" || !outside) return lookup(host, options, done)
	options.all ? done(null, [{address: "127.0.0.1", family: 4}]) : done(null, "127.0.0.1", 4)
}
`

// Registry begins a registry for [Install], which only commands outside of the sandbox reach, and returns a line that
// installs from it. The folder gets a file that the line reads.
func Registry(t testing.TB, folder string) (url, line string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), ".tgz")
		about := fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name)
		var packed bytes.Buffer
		zipped := gzip.NewWriter(&packed)
		archive := tar.NewWriter(zipped)
		err := archive.WriteHeader(&tar.Header{Name: "package/package.json", Mode: 0o644, Size: int64(len(about))})
		if err == nil {
			_, err = archive.Write([]byte(about))
		}
		must.Check(t, errors.Join(err, archive.Close(), zipped.Close()))
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(folder, "names.js")
	writeFile(t, file, names, 0o600)
	space := must.Get(os.Readlink("/proc/self/ns/net"))(t)
	return strings.Replace(s.URL, "127.0.0.1", "registry.test", 1),
		fmt.Sprintf("NODE_OPTIONS=--require=%s OUTSIDE='%s' npm ci --no-audit --no-fund --fetch-retries=0", file, space)
}
