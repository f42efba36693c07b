package box

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// trySeatbelt fails unless program, sandbox-exec except in tests, denies what its profile denies, and nothing else.
func trySeatbelt(program string) error {
	if err := try(program); err != nil {
		return unavailable("sandbox-exec: %v", err)
	}
	return nil
}

// attempts is a script that prints what it was able to do. What a Mac without Python or Node cannot try counts as done.
const attempts = `echo x > "$1/root/new" && echo write
{ ! /usr/bin/xcode-select -p || python3 -c 'import multiprocessing as m; m.Lock()'; } > /dev/null 2>&1 && echo lock
{ ! command -v node || node -e 'require("os").cpus()'; } > /dev/null 2>&1 && echo look at processors
script -q /dev/null true > /dev/null 2>&1 < /dev/null && echo open a terminal
(echo x > "$1/root/kept/new") && echo write a protected folder
(echo x > "$1/new") && echo write outside
(exec 3<> "/dev/tcp/127.0.0.1/$2") && echo connect
true`

// allowed is what attempts prints in a sandbox that denies neither too little nor too much.
const allowed = "write, lock, look at processors, open a terminal"

func try(program string) error {
	dir, err := os.MkdirTemp("", "codex-mcp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dir = paths.Real(dir)
	root := filepath.Join(dir, "root")
	kept := filepath.Join(root, "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	argv := append(seatbelt{roots: []string{root}, protect: []string{kept}}.arguments(),
		"/bin/bash", "-c", attempts, "bash", dir, fmt.Sprint(listener.Addr().(*net.TCPAddr).Port))
	cmd := exec.Command(program, argv...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if did := strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", ", "); err == nil && did != allowed {
		err = fmt.Errorf("a command could do %q, and should do %q", did, allowed)
	}
	return err
}
