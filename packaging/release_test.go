//go:build release

package packaging_test

import (
	"archive/zip"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

var (
	whole  = flag.Bool("whole", nightly.Tests(), "make the release for all six systems")
	claude = flag.String("claude", "", "the `folder` of the program claude, to install the plugin")
)

// TestRelease makes a release of the commit, as a maintainer would, and uses it as people will. A second release for this system
// alone has the same bytes. Without -whole the first one is for this system alone, too.
func TestRelease(t *testing.T) {
	root(t)
	const version = "0.99.0"
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "another")
	command(t, ".", "git", "clone", "-q", ".", one)
	command(t, one, "git", "tag", "v"+version)
	fails := func(repo, why string) {
		t.Helper()
		if out, err := exec.Command(filepath.Join(repo, ".ci/release")).CombinedOutput(); err == nil || !strings.Contains(string(out), why) {
			t.Fatalf("%v, want %q\n%s", err, why, out)
		}
	}
	fails(one, "CHANGELOG.md has no section")
	command(t, one, "git", "tag", "-d", "v"+version)
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "a")
		t.Setenv("GIT_"+who+"_EMAIL", "a@example.com")
	}
	command(t, one, ".ci/tag", version)
	command(t, ".", "git", "clone", "-q", one, two)
	for _, published := range publishedModules(t) {
		tag := published + "/v" + version
		command(t, two, "git", "tag", "-d", tag)
		fails(two, "the tag "+tag+" is missing")
		command(t, two, "git", "fetch", "-q", "--tags")
	}
	dist := filepath.Join(t.TempDir(), "dist")
	system := runtime.GOOS + "_" + runtime.GOARCH
	own := runtime.GOOS + "/" + runtime.GOARCH
	args, systems, gateways := []string{dist, own}, 1, 0
	if runtime.GOOS == "linux" {
		gateways = 1
	}
	if *whole {
		args, systems, gateways = []string{dist}, 6, 2
	}
	command(t, one, ".ci/release", args...)
	command(t, two, ".ci/release", "dist", own) // in another folder
	sums := read(t, dist, "SHA256SUMS")
	same := 0
	for line := range strings.Lines(read(t, two, "dist/SHA256SUMS")) {
		if strings.HasSuffix(line, "  codexmcp-codex-mcp-"+version+".tgz\n") || strings.HasSuffix(line, "  server.json\n") || strings.HasSuffix(line, "  codex-mcp.rb\n") || strings.HasSuffix(line, ".oci.tar\n") {
			continue // these list the systems
		}
		if same++; !strings.Contains(sums, line) {
			t.Errorf("the second release differs: %s", line)
		}
	}
	if want := map[bool]int{true: 7, false: 4}[runtime.GOOS == "linux"]; same != want {
		t.Errorf("%d files of the second release were compared, want an archive, a bundle, a package and a list of parts, and on Linux a Debian package, and the gateway with a list of its own", same)
	}
	command(t, dist, "sha256sum", "--quiet", "-c", "SHA256SUMS")
	must.Equal(t, fmt.Sprintf("files of %d systems, %d gateways, an image of these, and npm, formula and server.json", systems, gateways), 4*systems+3*gateways+min(gateways, 1)+3, strings.Count(sums, "\n"))

	t.Run("archive", func(t *testing.T) {
		dir := t.TempDir()
		command(t, dir, "tar", "-xzf", filepath.Join(dist, "codex-mcp_"+version+"_"+system+".tar.gz"))
		for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "LICENSES-OF-OTHERS", "man/codex-mcp.1", "man/codex-mcp-ask.1"} {
			read(t, dir, file)
		}
		try(t, filepath.Join(dir, "codex-mcp"), version)
	})
	t.Run("gateway", func(t *testing.T) {
		dir := t.TempDir()
		command(t, dir, "tar", "-xzf", filepath.Join(dist, "codex-mcp-gateway_"+version+"_"+system+".tar.gz"))
		if text := read(t, dir, "LICENSES-OF-OTHERS"); !strings.Contains(text, "github.com/nats-io/nats.go") || !strings.Contains(text, "github.com/spf13/cobra") {
			t.Error("LICENSES-OF-OTHERS lacks modules of one of the programs")
		}
		try(t, filepath.Join(dir, "codex-mcp"), version)
		if line := command(t, dir, "./codex-mcp-gateway", "--version"); !strings.HasPrefix(line, "codex-mcp-gateway "+version+" (") {
			t.Errorf("--version: %q", line)
		}
	})
	t.Run("parts", func(t *testing.T) { checkParts(t, dist, "codex-mcp", version, system) })
	t.Run("parts of the gateway", func(t *testing.T) { checkParts(t, dist, "codex-mcp-gateway", version, system) })
	t.Run("image", func(t *testing.T) { tryImage(t, dist, filepath.Join(two, "dist"), version) })
	t.Run("signature", func(t *testing.T) { checkSignature(t, dist) })
	t.Run("npm", func(t *testing.T) { tryNPM(t, dist, version) })
	t.Run("registry", func(t *testing.T) { tryRegistry(t, dist, one, version) })
	t.Run("debian", func(t *testing.T) { tryDebian(t, dist, version) })
	t.Run("formula", func(t *testing.T) { checkFormula(t, dist, version) })
	t.Run("modules", func(t *testing.T) { tryModules(t, one, version) })
	t.Run("bundle", func(t *testing.T) {
		entry := readJSON(t, filepath.Join(dist, "server.json"))
		validate(t, "server.schema.json", entry)
		packages := entry.(map[string]any)["packages"].([]any)
		if len(packages) != systems {
			t.Errorf("server.json has %d packages", len(packages))
		}
		for _, p := range packages {
			p := p.(map[string]any)
			file := filepath.Join(dist, filepath.Base(p["identifier"].(string)))
			if sum := sha256.Sum256([]byte(read(t, file))); hex.EncodeToString(sum[:]) != p["fileSha256"] {
				t.Errorf("%s: server.json has the sum %s", file, p["fileSha256"])
			}
			dir := t.TempDir()
			unzip(t, file, dir)
			manifest := readJSON(t, filepath.Join(dir, "manifest.json"))
			validate(t, "manifest.schema.json", manifest)
			program := manifest.(map[string]any)["server"].(map[string]any)["entry_point"].(string)
			if len(read(t, dir, program)) < 1<<20 {
				t.Errorf("%s: %s is too small", file, program)
			}
			if strings.Contains(file, system) {
				try(t, filepath.Join(dir, program), version)
			}
		}
	})
}

// tryNPM installs the packages of this system from their files, without a registry, and starts the program as npx and clients do.
func tryNPM(t *testing.T, dist, version string) {
	cpu := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	launcher := filepath.Join(dist, "codexmcp-codex-mcp-"+version+".tgz")
	own := filepath.Join(dist, "codexmcp-codex-mcp-"+runtime.GOOS+"-"+cpu+"-"+version+".tgz")
	dir := t.TempDir()
	install := []string{"install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", t.TempDir(), "--prefix", dir}
	command(t, dist, "npm", append(install, own, launcher)...)
	try(t, filepath.Join(dir, "node_modules/.bin/codex-mcp"), version)
	command(t, dir, "npx", "--offline", "codex-mcp", "--version")

	t.Run("end", func(t *testing.T) {
		for name, tt := range map[string]struct {
			end  func(*exec.Cmd, io.Closer) error
			code int
		}{
			"its input ends": {func(_ *exec.Cmd, in io.Closer) error { return in.Close() }, 0},
			"SIGTERM":        {func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) }, 0},
		} {
			t.Run(name, func(t *testing.T) {
				cmd := exec.Command(filepath.Join(dir, "node_modules/.bin/codex-mcp"), "--engine", "native")
				cmd.Env = append(os.Environ(), "CODEX_HOME="+t.TempDir())
				in := must.Get(cmd.StdinPipe())(t)
				out := must.Get(cmd.StdoutPipe())(t)
				must.OK(t, cmd.Start())
				must.Get(in.Write([]byte(hello)))(t)
				must.Get(bufio.NewReader(out).ReadString('\n'))(t)
				must.OK(t, tt.end(cmd, in))
				if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 { // until the program has ended, not only its launcher
					t.Errorf("%q, %v", rest, err)
				}
				if err := cmd.Wait(); cmd.ProcessState.ExitCode() != tt.code {
					t.Errorf("it ended with %v", err)
				}
			})
		}
	})
	t.Run("no program", func(t *testing.T) {
		dir := t.TempDir()
		install[len(install)-1] = dir
		command(t, dist, "npm", append(install, launcher)...)
		out, err := exec.Command(filepath.Join(dir, "node_modules/.bin/codex-mcp"), "--version").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "@codexmcp/codex-mcp-"+runtime.GOOS+"-"+cpu+" is missing") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// hello begins a session.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}` + "\n"

// try asks a program for its version and says hello to it over stdio.
func try(t *testing.T, program, version string) {
	t.Helper()
	line := command(t, ".", program, "--version")
	want := regexp.MustCompile(`^codex-mcp ` + regexp.QuoteMeta(version) + ` \([0-9a-f]{12}, go1\.\S+, ` + runtime.GOOS + "/" + runtime.GOARCH + `\)\n$`)
	if !want.MatchString(line) {
		t.Errorf("-version: %q", line)
	}
	cmd := exec.Command(program, "--engine", "native")
	cmd.Env = append(os.Environ(), "CODEX_HOME="+t.TempDir())
	cmd.Stdin = strings.NewReader(hello)
	out := must.Get(cmd.Output())(t)
	var answer struct {
		Result struct {
			ServerInfo struct{ Version string }
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Result.ServerInfo.Version != version {
		t.Errorf("initialize: %v\n%s", err, out)
	}
}

func unzip(t *testing.T, file, dir string) {
	t.Helper()
	r := must.Get(zip.OpenReader(file))(t)
	defer r.Close()
	must.OK(t, os.CopyFS(dir, r))
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// put writes a file and its folder. A text that begins with #! can be started.
func put(t *testing.T, file, text string) {
	t.Helper()
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.OK(t, os.WriteFile(file, []byte(text), mode))
}
