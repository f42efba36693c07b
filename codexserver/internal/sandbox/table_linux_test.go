package sandbox_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// rows say what each tier makes of a command's attempt: "ok" or the name of an
// error number, "a|b" where either will do. Without a sandbox all must be "ok",
// or what free says, so that each row can fail.
//
// @pid is the server, @tcp, @socket and @abstract are listeners of its, @suid is
// a program of root's.
var rows = []struct {
	name     string
	probe    []string
	free     string // "ok" when empty
	readOnly string // tier one, read-only
	write    string // tier one, workspace-write
	spaces   string // tier two, workspace-write
	// user rows are void for root, root rows for everybody else.
	user, root bool
}{
	{name: "write in the workspace", probe: []string{"write", "new"}, readOnly: "EACCES", write: "ok", spaces: "ok"},
	{name: "make a folder in the workspace", probe: []string{"mkdir", "new"}, readOnly: "EACCES", write: "ok", spaces: "ok"},
	{name: "remove in the workspace", probe: []string{"remove", "file"}, readOnly: "EACCES", write: "ok", spaces: "ok"},
	{name: "rename in the workspace", probe: []string{"rename", "file", "sub/file"}, readOnly: "EACCES|EXDEV", write: "ok", spaces: "ok"},
	{name: "chmod in the workspace", probe: []string{"chmod", "file"}, readOnly: "ok", write: "ok", spaces: "ok"},
	{name: "read outside", probe: []string{"read", "/etc/passwd"}, readOnly: "ok", write: "ok", spaces: "ok"},
	{name: "write outside", probe: []string{"write", "../outside/new"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "write to a file outside", probe: []string{"write", "../outside/file"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "append to a file outside", probe: []string{"append", "../outside/file"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "truncate outside", probe: []string{"truncate", "../outside/file"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "truncate while reading outside", probe: []string{"read truncate", "../outside/file"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "make a folder outside", probe: []string{"mkdir", "../outside/new"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "remove outside", probe: []string{"remove", "../outside/file"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "remove a folder outside", probe: []string{"remove", "../outside/dir"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "move out", probe: []string{"rename", "file", "../outside/new"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV", spaces: "EROFS|EXDEV"},
	{name: "move in", probe: []string{"rename", "../outside/file", "new"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV", spaces: "EROFS|EXDEV"},
	{name: "symbolic link outside", probe: []string{"symlink", "x", "../outside/new"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "named pipe outside", probe: []string{"mkfifo", "../outside/new"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "named socket outside", probe: []string{"bind", "../outside/new"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "write through a symbolic link", probe: []string{"write", "symlink"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "write through a linked folder", probe: []string{"write", "dirlink/new"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "write through /proc/self/cwd", probe: []string{"write", "/proc/self/cwd/../outside/new"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "write through /proc/self/root", probe: []string{"write", "/proc/self/root@outside/new"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "make a hard link to a file outside", probe: []string{"link then write", "../outside/file"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV", spaces: "EXDEV"},
	{name: "make a hard link outside", probe: []string{"link", "file", "../outside/new"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV", spaces: "EROFS|EXDEV"},
	// A hard link that is there already is a file of the workspace.
	{name: "write through a hard link", probe: []string{"write", "hardlink"}, readOnly: "EACCES", write: "ok", spaces: "ok"},
	{name: "open by handle", probe: []string{"handle", "file"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM", root: true},
	{name: "write into .git", probe: []string{"write", ".git/hooks/evil"}, readOnly: "EACCES", write: "ok", spaces: "EROFS"},
	{name: "move .git", probe: []string{"rename", ".git", "git"}, readOnly: "EACCES|EXDEV", write: "ok", spaces: "EBUSY"},
	{name: "write into the configuration", probe: []string{"write", "home/config.toml"}, readOnly: "EACCES", write: "ok", spaces: "EROFS"},
	{name: "unmount what protects .git", probe: []string{"unmount", ".git"}, free: "EINVAL", readOnly: "EPERM", write: "EPERM", spaces: "EPERM", root: true},

	{name: "chmod outside", probe: []string{"chmod", "../outside/file"}, readOnly: "ok", write: "ok", spaces: "EROFS"},
	{name: "chown outside", probe: []string{"chown", "../outside/file"}, readOnly: "ok", write: "ok", spaces: "EROFS"},
	{name: "times outside", probe: []string{"times", "../outside/file"}, readOnly: "ok", write: "ok", spaces: "EROFS"},
	{name: "extended attribute outside", probe: []string{"setxattr", "../outside/file"}, free: "ok|ENOTSUP", readOnly: "ok|ENOTSUP", write: "ok|ENOTSUP", spaces: "EROFS"},

	{name: "write to /dev/null", probe: []string{"write", "/dev/null"}, readOnly: "ok", write: "ok", spaces: "ok"},
	{name: "write to /dev/zero", probe: []string{"write", "/dev/zero"}, readOnly: "ok", write: "ok", spaces: "ok"},
	{name: "write to /dev/shm", probe: []string{"mkdir", "/dev/shm/@unique"}, readOnly: "EACCES", write: "EACCES", spaces: "EROFS"},
	{name: "new terminal", probe: []string{"open rw", "/dev/ptmx"}, readOnly: "EACCES", write: "EACCES", spaces: "EACCES"},
	{name: "make a device", probe: []string{"mknod", "device"}, readOnly: "EACCES", write: "EACCES", spaces: "EACCES|EPERM", root: true},
	{name: "write to /proc", probe: []string{"append", "/proc/self/oom_score_adj"}, readOnly: "EACCES", write: "EACCES", spaces: "EACCES|EROFS"},
	{name: "write to /proc/sys", probe: []string{"append", "/proc/sys/kernel/core_pattern"}, readOnly: "EACCES", write: "EACCES", spaces: "EACCES|EROFS", root: true},

	{name: "signal the server", probe: []string{"signal", "@pid"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "signal the server's threads", probe: []string{"signal threads", "@pid"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "trace the server", probe: []string{"ptrace", "@pid"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "read the server's memory", probe: []string{"read memory", "@pid"}, free: "ok|EACCES", readOnly: "EACCES|EPERM", write: "EACCES|EPERM", spaces: "EACCES|EPERM"},
	{name: "read its threads' memory", probe: []string{"threads' memory", "@pid"}, free: "ok|EACCES", readOnly: "EACCES|EPERM", write: "EACCES|EPERM", spaces: "EACCES|EPERM"},
	{name: "copy the server's memory", probe: []string{"vm read", "@pid"}, free: "ok|EPERM|EFAULT", readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "read the server's environment", probe: []string{"environ", "@pid"}, free: "ok|EACCES", readOnly: "EACCES|EPERM", write: "EACCES|EPERM", spaces: "EACCES|EPERM"},

	{name: "socket inet", probe: []string{"inet"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "socket inet datagram", probe: []string{"inet udp"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "socket inet6", probe: []string{"inet6"}, free: "ok|EAFNOSUPPORT", readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "socket netlink", probe: []string{"netlink"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "socket packet", probe: []string{"packet"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM", root: true},
	{name: "socket unix", probe: []string{"unix"}, readOnly: "ok", write: "ok", spaces: "ok"},
	{name: "socket unix datagram", probe: []string{"unix dgram"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "socket pair", probe: []string{"pair"}, readOnly: "ok", write: "ok", spaces: "ok"},
	{name: "socket pair datagram", probe: []string{"dgram pair"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "connect to loopback", probe: []string{"dial", "tcp", "@tcp"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "ask a name server", probe: []string{"dial", "udp", "127.0.0.1:53"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "connect to a named socket", probe: []string{"dial", "unix", "@socket"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "connect to an abstract socket", probe: []string{"dial", "unix", "@abstract"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},

	{name: "mount", probe: []string{"mount", "."}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM", root: true},
	{name: "mount in namespaces of its own", probe: []string{"namespaces"}, free: "ok|EPERM|ENOSPC|EACCES", readOnly: "EACCES|EPERM|ENOSPC", write: "EACCES|EPERM|ENOSPC", spaces: "EROFS|EPERM|ENOSPC"},
	{name: "io_uring", probe: []string{"io_uring"}, free: "ok|ENOSYS|EPERM", readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "bpf", probe: []string{"bpf"}, free: "ok|EPERM|EINVAL", readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "x32 call", probe: []string{"x32"}, free: "ok|ENOSYS", readOnly: "ENOSYS", write: "ENOSYS", spaces: "ENOSYS"},
	{name: "keyring", probe: []string{"keyctl"}, free: "ok|ENOSYS", readOnly: "EPERM", write: "EPERM", spaces: "EPERM"},
	{name: "host name", probe: []string{"sethostname"}, readOnly: "EPERM", write: "EPERM", spaces: "EPERM", root: true},

	{name: "no new privileges", probe: []string{"privileges"}, free: "0 instead of 1", readOnly: "ok", write: "ok", spaces: "ok"},
	{name: "program of root's", probe: []string{"setuid", "@suid"}, free: "0 instead of 65534", readOnly: "ok", write: "ok", spaces: "ok", user: true},
	{name: "inherited descriptors", probe: []string{"descriptors"}, readOnly: "ok", write: "ok", spaces: "ok"},
	{name: "secret in the environment", probe: []string{"variable", "SOME_TOKEN", "false "}, readOnly: "ok", write: "ok", spaces: "ok"},
	{name: "note in the environment", probe: []string{"variable", "CODEX_SANDBOX_NETWORK_DISABLED", "true 1"}, free: "false  instead of true 1", readOnly: "ok", write: "ok", spaces: "ok"},
}

// suidVar tells the unprivileged run of the test where the program of root's is.
const suidVar = "SANDBOX_TEST_SUID"

func TestTable(t *testing.T) {
	server := listeners(t)
	server["@suid"] = os.Getenv(suidVar)
	isRoot := os.Getuid() == 0
	spaces := hasNamespaces(t)
	for _, row := range rows {
		if row.user && (isRoot || server["@suid"] == "") || row.root && !isRoot {
			continue
		}
		free := row.free
		if free == "" {
			free = "ok"
		}
		for _, column := range []struct {
			name string
			tier sandbox.Tier
			mode protocol.SandboxMode
			want string
		}{
			{"free", "", protocol.SandboxDangerFullAccess, free},
			{"read-only", sandbox.TierThread, protocol.SandboxReadOnly, row.readOnly},
			{"workspace-write", sandbox.TierThread, protocol.SandboxWorkspaceWrite, row.write},
			{"namespaces", sandbox.TierNamespaces, protocol.SandboxWorkspaceWrite, row.spaces},
		} {
			if column.tier == sandbox.TierNamespaces && !spaces {
				continue
			}
			t.Run(row.name+"/"+column.name, func(t *testing.T) {
				t.Parallel()
				base := fixture(t)
				got := try(t, base, column.tier, column.mode, server, row.probe)
				for want := range strings.SplitSeq(column.want, "|") {
					if got == want {
						return
					}
				}
				t.Errorf("%s, want %s", got, column.want)
			})
		}
	}
}

// TestTableAsUser runs the table as a user without rights.
func TestTableAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // TestTable was it
	}
	dir, err := os.MkdirTemp("/var/tmp", "sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	suid := filepath.Join(dir, "suid")
	for _, err := range []error{
		os.Chmod(dir, 0o777), os.WriteFile(suid, program, 0o755), os.Chmod(suid, 0o755|os.ModeSetuid),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-test.run=^(TestTable|TestStartingThread|TestKept)$", "-test.v"}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, suidVar+"="+suid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestTable/program_of_root's/free") {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}

// hasNamespaces says whether this system lets its users have the second tier;
// many do not. The first one must be there.
func hasNamespaces(t *testing.T) bool {
	t.Helper()
	_, err := sandbox.New(sandbox.Options{Tier: sandbox.TierNamespaces}).Confine(readOnly, "/", nil)
	if err != nil && !errors.Is(err, sandbox.ErrUnavailable) {
		t.Fatal(err)
	}
	t.Logf("namespaces: %v", err)
	return err == nil
}

// fixture makes a workspace and a folder outside.
func fixture(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	for _, dir := range []string{"work/.git/hooks", "work/sub", "work/home", "outside/dir"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.WriteFile(filepath.Join(base, "work/file"), []byte("x"), 0o666),
		os.WriteFile(filepath.Join(base, "outside/file"), []byte("x"), 0o666),
		os.WriteFile(filepath.Join(base, "outside/hard"), []byte("x"), 0o666),
		os.Symlink("../outside/file", filepath.Join(base, "work/symlink")),
		os.Symlink("../outside", filepath.Join(base, "work/dirlink")),
		os.Link(filepath.Join(base, "outside/hard"), filepath.Join(base, "work/hardlink")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// listeners opens what a command must not reach.
func listeners(t *testing.T) map[string]string {
	t.Helper()
	server := map[string]string{"@pid": strconv.Itoa(os.Getpid())}
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, address := range map[string][2]string{
		"@tcp":      {"tcp", "127.0.0.1:0"},
		"@socket":   {"unix", filepath.Join(dir, "socket")},
		"@abstract": {"unix", fmt.Sprintf("@sandbox-test-%d-%d", os.Getpid(), time.Now().UnixNano())},
	} {
		l, err := net.Listen(address[0], address[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		server[name] = l.Addr().String()
	}
	f, err := os.Create(filepath.Join(dir, "server-only"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return server
}

// try runs a probe in base/work.
func try(t *testing.T, base string, tier sandbox.Tier, mode protocol.SandboxMode, server map[string]string, words []string) string {
	t.Helper()
	dir := filepath.Join(base, "work")
	argv := []string{"/proc/self/exe", probeWord}
	for _, word := range words {
		word = strings.ReplaceAll(word, "@outside", filepath.Join(base, "outside"))
		word = strings.ReplaceAll(word, "@unique", strconv.FormatInt(time.Now().UnixNano(), 36))
		if address, ok := server[word]; ok {
			word = address
		}
		argv = append(argv, word)
	}
	spec := command.Spec{Argv: argv, Dir: dir, Timeout: 30 * time.Second}
	spec.Env = command.EnvPolicy{}.Environ(append(os.Environ(), "SOME_TOKEN=secret"))
	if mode != protocol.SandboxDangerFullAccess {
		s := sandbox.New(sandbox.Options{Tier: tier, Protected: []string{filepath.Join(dir, "home")}})
		c, err := s.Confine(protocol.SandboxPolicy{Mode: mode, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		spec.Starter = c
		spec.Env = append(spec.Env, c.Environ()...)
	}
	res, err := command.Run(t.Context(), spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Aggregated
}
