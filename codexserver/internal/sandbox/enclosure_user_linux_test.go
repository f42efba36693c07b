//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestEnclosureAsUser has an enclosure as a user without rights makes it, whose ids alone
// it can map.
func TestEnclosureAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can act as another user; TestEnclosure ran as a user")
	}
	servertest.NeedEnclosure(t)
	const user = 65534
	dir, err := os.MkdirTemp("/var/cache", "sandbox-test-") // an enclosure has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^(TestEnclosure|TestEnclosureEnds|TestEnclosureFails|TestTryEnclosure)$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+dir, "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestEnclosure/become_another_user") {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}
