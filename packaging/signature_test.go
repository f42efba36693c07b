//go:build release

package packaging_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// checkParts compares the list of a program's parts with what the program itself says.
func checkParts(t *testing.T, dist, program, version, system string) {
	name := program + "_" + version + "_" + system
	dir := t.TempDir()
	command(t, dir, "tar", "-xzf", filepath.Join(dist, name+".tar.gz"))
	var want []string
	for line := range strings.Lines(command(t, dir, "go", "version", "-m", program)) {
		if words := strings.Fields(line); len(words) == 4 && words[0] == "dep" && words[1] != module {
			want = append(want, words[1]+"@"+words[2]+" "+words[3])
		}
	}
	if len(want) < 5 {
		t.Fatalf("the program says only %q", want)
	}
	type component struct {
		Name, Version, Purl string
		Ref                 string `json:"bom-ref"`
		Properties          []struct{ Name, Value string }
	}
	var bom struct {
		BomFormat, SpecVersion string
		Version                int
		Metadata               struct {
			Timestamp string
			Component component
		}
		Components   []component
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	must.OK(t, json.Unmarshal([]byte(read(t, dist, name+".cdx.json")), &bom))
	if m := bom.Metadata; bom.BomFormat != "CycloneDX" || bom.SpecVersion != "1.6" || bom.Version != 1 || m.Component.Name != program || m.Component.Version != version || !strings.HasSuffix(m.Timestamp, "Z") {
		t.Errorf("%+v", bom.Metadata)
	}
	var got, refs []string
	for _, c := range bom.Components {
		refs = append(refs, c.Ref)
		if c.Purl != "pkg:golang/"+c.Name+"@"+c.Version || c.Ref != c.Purl {
			t.Errorf("%+v", c)
		}
		if c.Name != "std" {
			got = append(got, c.Name+"@"+c.Version+" "+c.Properties[0].Value)
		}
	}
	if !slices.Equal(got, want) || len(refs) != len(want)+1 {
		t.Errorf("the list has %q, want %q and Go", got, want)
	}
	if d := bom.Dependencies; len(d) != 1 || d[0].Ref != bom.Metadata.Component.Ref || !slices.Equal(d[0].DependsOn, refs) {
		t.Errorf("%+v", d)
	}
}

// checkSignature signs the sums of a release with a key of the test, by the command of the workflow, and checks them by the
// commands of docs/releasing.md. Other files, other sums, other keys and signatures for another purpose are refused.
func checkSignature(t *testing.T, dist string) {
	sign := regexp.MustCompile(`ssh-keygen -Y sign .*`).FindString(read(t, ".github/workflows/release.yml"))
	_, section, _ := strings.Cut(read(t, "docs/releasing.md"), "## Checking a release")
	_, verify, _ := strings.Cut(section, "```sh\n")
	verify, _, _ = strings.Cut(verify, "```")
	if sign == "" || !strings.Contains(verify, "ssh-keygen -Y verify") || !strings.Contains(verify, "sha256sum") {
		t.Fatalf("no commands: %q, %q", sign, verify)
	}
	top := t.TempDir()
	for _, name := range []string{"key", "other"} {
		command(t, top, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", name)
	}
	files, err := filepath.Glob(dist + "/*.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	release := func() string { // those that are small
		dir := t.TempDir()
		for _, file := range append(files, filepath.Join(dist, "SHA256SUMS")) {
			put(t, filepath.Join(dir, filepath.Base(file)), read(t, file))
		}
		put(t, filepath.Join(dir, "allowed_signers"), `release@codexmcp namespaces="codex-mcp-release" `+read(t, top, "key.pub"))
		must.OK(t, os.Mkdir(filepath.Join(dir, "dist"), 0o777))
		put(t, filepath.Join(dir, "dist/SHA256SUMS"), read(t, dir, "SHA256SUMS"))
		signed := exec.Command("sh", "-euc", sign)
		signed.Dir, signed.Env = dir, append(os.Environ(), "RUNNER_TEMP="+top)
		if out, err := signed.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", sign, err, out)
		}
		put(t, filepath.Join(dir, "SHA256SUMS.sig"), read(t, dir, "dist/SHA256SUMS.sig"))
		return dir
	}
	for name, change := range map[string]func(dir string){
		"":                func(string) {},
		"another file":    func(dir string) { put(t, filepath.Join(dir, "server.json"), "{}") },
		"another sum":     func(dir string) { put(t, filepath.Join(dir, "SHA256SUMS"), read(t, dir, "SHA256SUMS")+"x\n") },
		"no signature":    func(dir string) { put(t, filepath.Join(dir, "SHA256SUMS.sig"), "") },
		"another purpose": func(dir string) { resign(t, dir, filepath.Join(top, "key"), "git") },
		"another key":     func(dir string) { resign(t, dir, filepath.Join(top, "other"), "codex-mcp-release") },
	} {
		dir := release()
		change(dir)
		cmd := exec.Command("sh", "-euc", verify)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); (err == nil) != (name == "") {
			t.Errorf("%q: %v\n%s", name, err, out)
		}
	}
}

func resign(t *testing.T, dir, key, purpose string) {
	t.Helper()
	must.OK(t, os.Remove(filepath.Join(dir, "SHA256SUMS.sig")))
	command(t, dir, "ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", purpose, "SHA256SUMS")
}
