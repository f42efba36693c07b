package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// starters start what their arguments, their input or a file name.
const starters = `
	at awk batch busybox chroot chrt command coreutils crontab dbus-run-session doas docker emacs env eval exec expect faketime
	fakeroot find firejail flock gawk gdb hyperfine ionice kubectl ltrace mawk nice nix nohup nsenter nvim osascript parallel
	perf pkexec podman powershell pwsh rsync run-parts runuser screen script scp sed setarch setpriv setsid sftp socat softlimit
	source ssh start stdbuf strace su sudo systemd-run tar taskset time timeout tmux torsocks unshare valgrind vi view vim
	watch winpty wsl xargs xvfb-run .`

// TestNeverKept checks that no rule is offered for commands whose words do not say what runs,
// however the program is spelled, inside the sandbox and outside. Everything else about the
// question would allow a rule.
func TestNeverKept(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"script": "", "x.py": "", "-c": "", "-x.py": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	offers := func(argv ...string) bool {
		offered := false
		for _, confinable := range []bool{false, true} {
			q := protocol.ExecApprovalRequest{Command: argv, Cwd: dir, Placed: true, Confinable: confinable, Content: "sum"}
			_, ok := policy.Propose(&q)
			offered = offered || ok
		}
		return offered
	}
	for _, argv := range [][]string{{"touch", "x"}, {"python3", "x.py"}, {"go", "test"}} { // else nothing below could fail
		if !offers(argv...) {
			t.Errorf("%q: no rule", argv)
		}
	}
	for name := range strings.FieldsSeq(starters) {
		for _, spelling := range []string{name, "/usr/bin/" + name, "g" + name, strings.ToUpper(name), name + ".exe", `C:\tools\` + name + ".EXE", name + "-5.3"} {
			if name == "." && spelling != name {
				continue
			}
			if offers(spelling, "script") {
				t.Errorf("a rule for %q", spelling)
			}
		}
	}
	for _, name := range []string{"python3", "python3.12", "/usr/bin/python3", "node", "perl", "ruby", `C:\python\PYTHON.EXE`} {
		for _, args := range [][]string{nil, {"-c", "x.py"}, {"-"}, {"-m", "x.py"}, {"-x.py"}, {"missing.py"}, {"folder"}, {""}} {
			if offers(append([]string{name}, args...)...) {
				t.Errorf("a rule for %s %q", name, args)
			}
		}
	}
	for _, argv := range [][]string{
		{"./go", "test"}, {"/work/go", "test"}, {"GO", "test"}, {"go.exe", "test"}, {`bin\go`, "test"}, {"./git", "push"}, {"go1.26", "test"},
		{"go"}, {"go", "run", "x.py"}, {"go", "tool", "x"}, {"go", "generate"},
		{"go", "test", "-exec", "sh"}, {"go", "test", "--exec=sh"}, {"go", "test", "-EXEC=sh"}, {"go", "vet", "-vettool=x"}, {"go", "build", "-toolexec", "sh"},
		{"npm", "test", "-sg"}, {"npm", "run", "--x"}, {"npm", "run", "-x", "build"}, {"cargo", "build", "-qZ"}, {"cargo", "test", "-vC/"}, {"pytest", "-qp"}, {"pytest", "-xo"},
		{"gofmt", "-cpuprofile", "x"}, {"gofmt", "-cpuprofile=x", "a.go"},
		{"git", "push", "--receive-pack=sh"}, {"git", "push", "--rece=sh"}, {"git", "push", "--exec", "sh"}, {"git", "-c", "core.pager=sh", "push"},
		{"A=b", "touch"}, {"LD_PRELOAD=x.so", "touch", "x"}, {"=", "touch"}, {"", "touch"}, {},
		{"bash", "x.py"}, {"fish", "x.py"}, {"/bin/ksh", "x.py"}, {"bash", "-c", "touch $x"}, {"sh", "-c", "touch x > y"}, {"sh", "-c", ""},
	} {
		if offers(argv...) {
			t.Errorf("a rule for %q", argv)
		}
	}
}
