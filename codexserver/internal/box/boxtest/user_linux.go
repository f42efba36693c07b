package boxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// unprivileged is a user and a group without rights.
const unprivileged = 65534

// AsUser lets cmd run as a user without rights, with a folder of its own for temporary files: in parent, or in
// /tmp if other users cannot reach that.
func AsUser(t testing.TB, cmd *exec.Cmd, parent string) (dir string) {
	t.Helper()
	if !IsRoot() {
		t.Skip("only root can act as another user; the test itself ran as a user")
	}
	const self = "/proc/self/exe" // which the go command lets only its user execute if that one's umask says so
	if info := must.Get(os.Stat(self))(t); info.Mode()&0o001 == 0 {
		must.OK(t, os.Chmod(self, info.Mode()|0o055))
	}
	for at := parent; at != filepath.Dir(at); at = filepath.Dir(at) {
		if info, err := os.Stat(at); err != nil || info.Mode()&0o001 == 0 {
			parent = "/tmp"
			break
		}
	}
	dir = must.Get(os.MkdirTemp(parent, "sandbox-test-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.OK(t, os.Chown(dir, unprivileged, unprivileged))
	cmd.Dir = "/"
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	return dir
}

// WithoutRooms lets cmd run where the kernel gives no further namespaces, in a user namespace with all ids, as [AsUser] said.
func WithoutRooms(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if !IsRoot() {
		t.Skip("only root can map all users into a namespace")
	}
	script := `for kind in pid user; do echo 0 >/proc/sys/user/max_${kind}_namespaces || exit; done; exec "$0" "$@"`
	if attr := cmd.SysProcAttr; attr != nil && attr.Credential != nil {
		user, group := strconv.Itoa(int(attr.Credential.Uid)), strconv.Itoa(int(attr.Credential.Gid))
		script = strings.Replace(script, "exec", "exec setpriv --reuid="+user+" --regid="+group+" --clear-groups", 1)
	}
	cmd.Args = append([]string{"sh", "-c", script, must.Get(os.Executable())(t)}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	all := []syscall.SysProcIDMap{{Size: 1<<32 - 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true,
	}
}
