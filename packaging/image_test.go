//go:build release

package packaging_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/certtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// imageFiles are all files of the image of the gateway. They belong to root, and other users only read them.
var imageFiles = []string{
	"drwxr-xr-x usr/", "drwxr-xr-x usr/local/", "drwxr-xr-x usr/local/bin/",
	"-rwxr-xr-x usr/local/bin/codex-mcp", "-rwxr-xr-x usr/local/bin/codex-mcp-gateway",
	"drwxr-xr-x usr/share/", "drwxr-xr-x usr/share/doc/", "drwxr-xr-x usr/share/doc/codex-mcp/",
	"-rw-r--r-- usr/share/doc/codex-mcp/LICENSE", "-rw-r--r-- usr/share/doc/codex-mcp/LICENSES-OF-OTHERS",
}

// tryImage takes the image out of the release with skopeo, as a registry's user would, which checks all sums. Another
// release has the same image. A front and both programs run from its files alone, as its user.
func tryImage(t *testing.T, dist, again, version string) {
	pull := func(dist, arch string) (dir, manifest string) {
		dir = filepath.Join(t.TempDir(), "image")
		command(t, dist, "skopeo", "--insecure-policy", "--override-os=linux", "--override-arch="+arch, "copy", "--quiet",
			"oci-archive:codex-mcp-gateway_"+version+"_linux.oci.tar", "dir:"+dir)
		return dir, read(t, dir, "manifest.json")
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if arch != runtime.GOARCH && !*whole {
			continue
		}
		dir, text := pull(dist, arch)
		var manifest struct {
			Config struct{ Digest string }
			Layers []struct{ Digest string }
		}
		if err := json.Unmarshal([]byte(text), &manifest); err != nil || len(manifest.Layers) != 1 {
			t.Fatalf("%v: %s", err, text)
		}
		config := readJSON(t, filepath.Join(dir, strings.TrimPrefix(manifest.Config.Digest, "sha256:"))).(map[string]any)
		must.Equal(t, "result", []any{"linux", arch}, []any{config["os"], config["architecture"]})
		run := config["config"].(map[string]any)
		delete(run, "Labels")
		want := map[string]any{"User": "10001:10001", "Entrypoint": []any{"/usr/local/bin/codex-mcp-gateway"}, "Env": []any{"CODEX_HOME=/etc/codex-mcp"}}
		must.Equal(t, "the configuration of the image", want, run)
		root := t.TempDir()
		must.Equal(t, "the files of the image", imageFiles, unpack(t, filepath.Join(dir, strings.TrimPrefix(manifest.Layers[0].Digest, "sha256:")), root))
		archive := t.TempDir()
		command(t, archive, "tar", "-xzf", filepath.Join(dist, "codex-mcp-gateway_"+version+"_linux_"+arch+".tar.gz"))
		for file, of := range map[string]string{"codex-mcp": "local/bin", "codex-mcp-gateway": "local/bin", "LICENSE": "share/doc/codex-mcp", "LICENSES-OF-OTHERS": "share/doc/codex-mcp"} {
			if read(t, root, "usr", of, file) != read(t, archive, file) {
				t.Errorf("%s is another one in the archive of the gateway", file)
			}
		}
		if arch != runtime.GOARCH {
			continue
		}
		if _, other := pull(again, arch); other != text {
			t.Errorf("the second release has another image:\n%s\n%s", text, other)
		}
		runImage(t, root, version)
	}
}

// unpack unpacks a layer into the folder root, and lists its files.
func unpack(t *testing.T, layer, root string) (list []string) {
	f := must.Get(os.Open(layer))(t)
	defer f.Close()
	plain := must.Get(gzip.NewReader(f))(t)
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		must.OK(t, err)
		list = append(list, h.FileInfo().Mode().String()+" "+h.Name)
		if h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
		}
		path := filepath.Join(root, filepath.Join("/", h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			var text []byte
			text, err = io.ReadAll(r)
			err = errors.Join(err, os.WriteFile(path, text, h.FileInfo().Mode()))
		}
		must.OK(t, err)
	}
}

// runImage runs the programs in the root of an image, as its user. The front has a NATS server, and beside the image only its
// configuration.
func runImage(t *testing.T, root, version string) {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	enter := []string{"chroot", "--userspec=10001:10001", "--groups=", root}
	if os.Getuid() != 0 {
		enter = []string{"unshare", "--user", "--map-user=10001", "--map-group=10001", "--root=" + root}
		if out, err := exec.Command("unshare", "--user", "true").CombinedOutput(); err != nil && os.Getenv("CI") != "true" {
			t.Skipf("without user namespaces only root can run an image: %v: %s", err, out)
		}
	}
	for _, program := range []string{"codex-mcp", "codex-mcp-gateway"} {
		if line := command(t, root, enter[0], append(enter[1:], "/usr/local/bin/"+program, "--version")...); !strings.HasPrefix(line, program+" "+version+" (") {
			t.Errorf("%s --version: %q", program, line)
		}
	}
	server := filepath.Join(t.TempDir(), "nats-server")
	command(t, "codexserver/gateway", "go", "build", "-o", server, "github.com/nats-io/nats-server/v2")
	line := begin(t, exec.Command(server, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", t.TempDir()), "Listening for client connections on ")
	_, nats, _ := strings.Cut(line, "connections on ")

	home := filepath.Join(root, "etc/codex-mcp")
	put(t, filepath.Join(home, "codex-mcp.toml"), "[http.principals.ann]\ntokens = ['sha256:"+strings.Repeat("0", 64)+"']\nfolders = ['/work/ann']\n")
	put(t, filepath.Join(home, "codex-mcp-gateway.toml"), fmt.Sprintf("nats = {url = 'nats://%s', roles = ['front']}\nlink = {ca = '%[2]s.pem', cert = '%[2]s.pem', key = '%[2]s.key'}\n",
		nats, "/etc/codex-mcp/gateway"))
	cert, key := certtest.New(t, "gateway.example.com")
	put(t, filepath.Join(home, "gateway.pem"), string(cert))
	put(t, filepath.Join(home, "gateway.key"), string(key))
	t.Setenv("CODEX_HOME", "/etc/codex-mcp")
	front := exec.Command(enter[0], append(enter[1:], "/usr/local/bin/codex-mcp-gateway", "--listen", "127.0.0.1:0")...)
	_, url, _ := strings.Cut(begin(t, front, "serving MCP at "), "serving MCP at ")
	url, _, _ = strings.Cut(url, "/mcp")
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/mcp": http.StatusUnauthorized} {
		answer := must.Get(http.Get(url + path))(t)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %s", path, answer.Status)
		}
	}
	must.OK(t, front.Process.Signal(syscall.SIGTERM))
	if err := front.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// begin starts a program that ends with the test at the latest, and returns the line of standard error with a text.
func begin(t *testing.T, cmd *exec.Cmd, want string) string {
	t.Helper()
	out := must.Get(cmd.StderrPipe())(t)
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if fmt.Fprintln(&text, lines.Text()); strings.Contains(lines.Text(), want) {
			return lines.Text()
		}
	}
	t.Fatalf("%v ended:\n%s", cmd.Args, text.String())
	return ""
}
