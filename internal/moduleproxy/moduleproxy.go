// Package moduleproxy has the modules of the working tree as a proxy of files, so that tests build modules outside of
// the repository as somebody else would, without the network.
package moduleproxy

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Version is that of the modules. Those within the repository need this version of each other.
const Version = "v0.1.0"

const name = "github.com/codexmcp/codexmcp"

// Environment writes the module at root, and those in the folders below it, into a proxy, and returns the environment
// in which the go command takes these from there, and all others from this machine's module cache. It does not look for
// a repository around the folder: the sandbox of Codex leaves an empty .git where temporary files are.
func Environment(t testing.TB, root string, folders ...string) []string {
	t.Helper()
	proxy := t.TempDir()
	for _, folder := range append(folders, ".") {
		write(t, filepath.Join(root, folder), proxy, module.Version{Path: path.Join(name, folder), Version: Version})
	}
	out := must.Get(exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output())(t)
	cache := strings.TrimSpace(string(out))
	return append(os.Environ(), "GOFLAGS=-mod=mod -modcacherw -trimpath -buildvcs=false", "GOWORK=off", "GOSUMDB=off",
		"GOMODCACHE="+filepath.Join(t.TempDir(), "modules"),
		"GOPROXY=file://"+proxy+",file://"+cache+"/cache/download")
}

// Command runs the go command in a folder, and returns what it prints.
func Command(t testing.TB, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%.4000s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// write writes a module into a proxy: the files below root that git knows.
func write(t testing.TB, root, proxy string, v module.Version) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	list.Dir = root
	names := must.Get(list.Output())(t)
	var files []zip.File
	var nested []string
	all := strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00")
	for _, name := range all {
		if folder, is := strings.CutSuffix(name, "/go.mod"); is {
			nested = append(nested, folder+"/")
		}
	}
next:
	for _, name := range all {
		for _, folder := range nested {
			if strings.HasPrefix(name, folder) {
				continue next
			}
		}
		if _, err := os.Stat(filepath.Join(root, name)); err == nil { // git also lists files that were removed
			files = append(files, file{root, name})
		}
	}
	mod := must.Get(os.ReadFile(filepath.Join(root, "go.mod")))(t)
	info := must.Get(json.Marshal(map[string]string{"Version": v.Version, "Time": "2026-01-01T00:00:00Z"}))(t)
	var archive bytes.Buffer
	to := filepath.Join(proxy, filepath.FromSlash(v.Path), "@v")
	must.OK(t, zip.Create(&archive, v, files), os.MkdirAll(to, 0o700))
	for name, text := range map[string][]byte{"list": []byte(v.Version + "\n"), v.Version + ".info": info, v.Version +
		".mod": mod, v.Version + ".zip": archive.Bytes()} {
		must.OK(t, os.WriteFile(filepath.Join(to, name), text, 0o600))
	}
}

// file is a file of the working tree, for an archive.
type file struct{ root, name string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.root, f.name)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.name)) }
