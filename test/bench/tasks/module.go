package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/go-json-experiment/json"
)

// module is a version of a Go module. Its sum is that of go.sum, so that everybody measures with
// the same bytes.
type module struct{ path, version, sum string }

// offline is what the commands of a task find in their environment: they use no module but those
// that a task has.
var offline = []string{"GOFLAGS=", "GOWORK=off", "GOPROXY=off"}

// download returns the folder of the module in Go's cache. It asks the module proxy if the cache
// does not have it.
func (m module) download(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.path+"@"+m.version)
	cmd.Dir = os.TempDir() // not in a module, whose go.mod would count
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOSUMDB=off")
	out, err := cmd.Output()
	var got struct {
		Dir   string
		Sum   string
		Error string
	}
	if json.Unmarshal(bytes.TrimSpace(out), &got) == nil && got.Error != "" {
		return "", fmt.Errorf("the module %s: %s", m.path, got.Error)
	}
	if err != nil {
		return "", fmt.Errorf("the module %s: %w", m.path, err)
	}
	if got.Sum != m.sum {
		return "", fmt.Errorf("the module %s %s has the sum %s, want %s", m.path, m.version, got.Sum, m.sum)
	}
	return got.Dir, nil
}
