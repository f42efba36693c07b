package servertest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// without runs a program in a user namespace in which no further one can be made.
const without = `#!/bin/sh
exec unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$0" "$@"' %q "$@"
`

// WithoutNamespaces returns a program that runs another one where user namespaces cannot be made, as in most
// containers. The test fails if they can be made there.
func WithoutNamespaces(t testing.TB, program string) string {
	t.Helper()
	in := func(name, program string) string {
		path := filepath.Join(t.TempDir(), name)
		must.OK(t, testenv.WriteProgram(path, fmt.Appendf(nil, without, program)))
		return path
	}
	if out, err := exec.Command(in("control", "unshare"), "-Ur", "true").CombinedOutput(); err == nil {
		t.Fatalf("user namespaces can be made: %s", out)
	}
	if out, err := exec.Command(in("control", "true")).CombinedOutput(); err != nil {
		t.Fatalf("nothing runs there: %v %s", err, out)
	}
	return in("codex", program)
}
