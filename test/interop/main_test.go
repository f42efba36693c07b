package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
)

// scratch is the folder of what the tests share.
var scratch string

func TestMain(m *testing.M) {
	native.Main() // this may be a keeper
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	scratch, err = os.MkdirTemp("", "interop") // a short path, because a socket is in there
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	// Programs in Node start some hundred times. With the cache each takes a third less.
	if err := os.Setenv(nodeCache, installed(".cache", "node")); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// nodeCache is the variable that names Node's folder for compiled modules.
const nodeCache = "NODE_COMPILE_CACHE"

// ours returns the command of this project's server.
func ours(t *testing.T) []string {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return []string{bin}
}

// program builds this project's server once.
var program = sync.OnceValues(func() (bin string, err error) { return build("codex-mcp", "../..", "./codexserver/cmd/codex-mcp") })

// gateway builds this project's server for several users once, next to the other one.
var gateway = sync.OnceValues(func() (bin string, err error) {
	if _, err := program(); err != nil {
		return "", err
	}
	return build("codex-mcp-gateway", "../../codexserver/gateway", "./cmd/codex-mcp-gateway")
})

// build builds a package in a folder.
func build(name, in, pkg string) (bin string, err error) {
	bin = filepath.Join(scratch, name)
	cmd := exec.Command("go", "build", "-o", bin, pkg)
	cmd.Dir = in
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return bin, nil
}
