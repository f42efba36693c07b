//go:build amd64 || arm64

package enclosure_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestMain(m *testing.M) {
	enclosure.Main()
	os.Exit(m.Run())
}

func shell(script string) *exec.Cmd {
	return &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ()}
}

// rooms are folders of two users, and an enclosure of the first one.
type rooms struct {
	own, ownHome, other, server string
	enclosure.Enclosure
}

func newRooms(t *testing.T) *rooms {
	t.Helper()
	tmp := boxtest.Outside(t)
	e := &rooms{own: tmp + "/own", other: tmp + "/other", server: tmp + "/server"}
	e.ownHome = e.server + "/principals/own"
	for _, dir := range []string{e.own, e.other, e.ownHome, e.ownHome + "/temp", e.server + "/principals/other", tmp + "/rest"} {
		must.OK(t, os.MkdirAll(dir, 0o755))
		must.OK(t, os.WriteFile(dir+"/file", []byte("content of "+filepath.Base(dir)), 0o644))
	}
	for _, file := range []string{e.server + "/hashes", tmp + "/key"} {
		must.OK(t, os.WriteFile(file, []byte("secret"), 0o600))
	}
	e.Enclosure = enclosure.Enclosure{
		Writable: []string{e.own, e.ownHome}, Temp: e.ownHome + "/temp",
		Hidden: []string{e.other, e.server, tmp + "/key", tmp + "/missing"},
	}
	return e
}

// sh runs a script in the enclosure, and returns what it prints.
func (e *rooms) sh(t *testing.T, script string) (output string, status int) {
	t.Helper()
	var out bytes.Buffer
	cmd := shell(script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = e.own, &out, &out
	must.OK(t, e.Start(cmd))
	_ = cmd.Wait() // the status is checked
	return out.String(), cmd.ProcessState.ExitCode()
}

// outsider starts a process outside the enclosure with a secret in its environment.
func outsider(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env = []string{"SECRET=secret"}
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Errorf("the outsider was killed: %v", err)
		}
		_ = cmd.Wait() // killed
	})
	return cmd.Process.Pid
}

// TestEnclosure tries to leave the enclosure, and to do what stays possible. One enclosure runs all
// scripts, each in a shell of its own.
func TestEnclosure(t *testing.T) {
	enclosuretest.Need(t)
	pid := outsider(t)
	tests := map[string]struct {
		script string
		prints string // "" when the script must fail and print no secret
	}{
		"read its folder":               {`cat file`, "content of own"},
		"write its folder":              {`echo more >new && cat new`, "more"},
		"read its home":                 {`cat $SERVER/principals/own/file`, "content of own"},
		"write its home":                {`echo more >$SERVER/principals/own/new && cat $SERVER/principals/own/new`, "more"},
		"write /tmp":                    {`echo more >/tmp/new && cat $SERVER/principals/own/temp/new`, "more"},
		"write /dev/shm":                {`echo more >/dev/shm/new && cat /dev/shm/new`, "more"},
		"run programs":                  {`git --version`, "git version"},
		"open a terminal":               {`python3 -c "import os; os.openpty(); print('opened')"`, "opened"},
		"make a user namespace":         {`unshare -Ur echo made`, "made"},
		"read another's folder":         {`cat $OTHER/file`, ""},
		"read another's home":           {`cat $SERVER/principals/other/file`, ""},
		"read the server's hashes":      {`cat $SERVER/hashes`, ""},
		"read a key":                    {`grep . $KEY`, ""},
		"replace a hidden folder":       {`mv $OTHER $OTHER-old`, ""},
		"write to a sibling folder":     {`echo more >$OTHER/../rest/new`, ""},
		"write the system":              {`echo more >/etc/codex-mcp-new`, ""},
		"change a mode":                 {`chmod 777 /usr/bin/env`, ""},
		"change the machine":            {`echo 1 >/proc/sys/vm/drop_caches`, ""},
		"change a control group":        {`mkdir /sys/fs/cgroup/codex-mcp`, ""},
		"unmount":                       {`umount $OTHER`, ""},
		"unmount in a namespace":        {`unshare -Urm umount $OTHER`, ""},
		"unmount /proc in a namespace":  {`unshare -Urm umount -l /proc`, ""},
		"write to / in a namespace":     {`unshare -Urm sh -c "mount -o remount,rw,bind / && echo more >/etc/codex-mcp-new"`, ""},
		"mount again without the rest":  {`unshare -Urm sh -c "mount --bind / /mnt && cat /mnt$OTHER/file"`, ""},
		"mount again with the rest":     {`unshare -Urm sh -c "mount --rbind / /mnt && cat /mnt$OTHER/file"`, ""},
		"move the root":                 {`unshare -Urm sh -c "cd /; mount --rbind / /mnt; pivot_root /mnt /mnt/mnt; cat /mnt/$OTHER/file || cat $OTHER/file"`, ""},
		"mount a disk":                  {`unshare -Urm sh -c "mount $(findmnt -no SOURCE /) /mnt && cat /mnt$OTHER/file"`, ""},
		"make a disk":                   {`mknod disk b 254 0 && cat disk`, ""},
		"see others":                    {fmt.Sprintf(`cat /proc/%d/cmdline`, pid), ""},
		"see who else there is":         {`grep -l "^sl[e]ep" /proc/[0-9]*/cmdline`, ""},
		"reach another's root":          {fmt.Sprintf(`ls /proc/%d/root/`, pid), ""},
		"signal another":                {fmt.Sprintf(`kill -9 %d`, pid), ""},
		"the first's root":              {`ls /proc/1/root/`, ""},
		"the first's files":             {`readlink /proc/1/fd/0`, ""},
		"enter the first's namespaces":  {`nsenter -t 1 -m true`, ""},
		"enter a parent's namespaces":   {`nsenter -t 1 -U true`, ""},
		"become another user":           {`python3 -c "import os; os.setuid(os.getuid()+1)"`, ""},
		"get a capability by a program": {`grep -q "CapEff:.*[1-79a-f]" /proc/self/status`, ""},
		"get one by a file":             {`cp $(command -v grep) g && setcap cap_dac_override,cap_sys_admin+ep g && ./g -q "CapEff:.*[1-79a-f]" /proc/self/status`, ""},
		"the log of the kernel":         {`dmesg --clear`, ""},
	}
	e := newRooms(t)
	var all strings.Builder
	fmt.Fprintf(&all, "OTHER=%s SERVER=%s KEY=%s\n", e.other, e.server, filepath.Dir(e.other)+"/key")
	names := slices.Sorted(maps.Keys(tests))
	for i, name := range names {
		fmt.Fprintf(&all, "(\n%s\n) >%s/%d 2>&1 </dev/null; echo \" status $?\" >>%[2]s/%[3]d\n", tests[name].script, e.ownHome, i)
	}
	if out, status := e.sh(t, all.String()); out != "" || status != 0 {
		t.Errorf("status %d: %s", status, out)
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			text := must.Get(os.ReadFile(fmt.Sprintf("%s/%d", e.ownHome, i)))(t)
			out, succeeded := strings.CutSuffix(string(text), " status 0\n")
			switch prints := tests[name].prints; {
			case !strings.Contains(string(text), " status "):
				t.Errorf("it did not end: %s", text)
			case prints != "" && (!succeeded || !strings.Contains(out, prints)),
				prints == "" && (succeeded || strings.Contains(out, "secret") || strings.Contains(out, "content of other")):
				t.Errorf("%s", text)
			}
		})
	}
	for _, path := range []string{"/etc/codex-mcp-new", e.other + "/../rest/new"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("something made %s", path)
		}
	}
}

// TestEnclosureEnds checks that everything the program started ends with it.
func TestEnclosureEnds(t *testing.T) {
	enclosuretest.Need(t)
	e := newRooms(t)
	sleep := fmt.Sprintf("sleep 1%09d", os.Getpid())
	out, status := e.sh(t, `setsid `+sleep+` & until pgrep -f "^`+sleep+`"; do :; done; exit 7`)
	if status != 7 {
		t.Errorf("status %d: %s", status, out)
	}
	if out, _ := exec.Command("pgrep", "-f", "^"+sleep).CombinedOutput(); len(out) > 0 {
		t.Errorf("it still runs: %s", out)
	}
}

// TestEnclosureFails checks that nothing starts when a writable folder was replaced.
func TestEnclosureFails(t *testing.T) {
	enclosuretest.Need(t)
	for name, change := range map[string]func(*rooms) error{
		"a link": func(e *rooms) error {
			e.Writable = append(e.Writable, e.own+"x")
			return os.Symlink(e.other, e.own+"x")
		},
		"nothing": func(e *rooms) error {
			e.Writable = append(e.Writable, e.own+"y")
			return nil
		},
		"a file": func(e *rooms) error {
			e.Writable = append(e.Writable, e.own+"/file")
			return nil
		},
	} {
		e := newRooms(t)
		must.OK(t, change(e))
		if out, status := e.sh(t, "echo started"); status != 126 || strings.Contains(out, "started") {
			t.Errorf("%s: status %d: %s", name, status, out)
		}
	}
}

// TestHiddenProgram runs a program that the enclosure hides, and checks that it has no descriptor of itself.
func TestHiddenProgram(t *testing.T) {
	enclosuretest.Need(t)
	e := newRooms(t)
	must.OK(t, os.WriteFile(e.other+"/program", must.Get(os.ReadFile("/bin/sh"))(t), 0o755))
	cmd := shell(`find /proc/self/fd -lname "*program*"; ls ` + e.other + `; echo started`)
	var out bytes.Buffer
	cmd.Path, cmd.Dir, cmd.Stdout, cmd.Stderr = e.other+"/program", e.own, &out, &out
	must.OK(t, e.Start(cmd))
	if err := cmd.Wait(); err != nil || out.String() != "started\n" {
		t.Errorf("%v: %s", err, &out)
	}
}

func TestTry(t *testing.T) {
	enclosuretest.Need(t)
	for program, want := range map[string]bool{"/bin/true": true, t.TempDir() + "/absent": false, "/bin/false": false} {
		if err := enclosure.Try(program); (err == nil) != want {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// TestEnclosureOfMany hides the folders of so many others that their paths are longer than Linux
// accepts in one argument.
func TestEnclosureOfMany(t *testing.T) {
	enclosuretest.Need(t)
	e := newRooms(t)
	others := e.other + "-" + strings.Repeat("/"+strings.Repeat("long", 60), 10)
	const many = 80
	for i := range many {
		other := fmt.Sprintf("%s/%d", others, i)
		must.OK(t, os.MkdirAll(other, 0o755))
		must.OK(t, os.WriteFile(other+"/file", []byte("secret"), 0o644))
		e.Hidden = append(e.Hidden, other)
	}
	script := fmt.Sprintf(`ls %s | wc -l; cat %[1]s/*/file 2>/dev/null | wc -c`, others)
	if output, status := e.sh(t, script); output != fmt.Sprintf("%d\n0\n", many) || status != 0 {
		t.Errorf("status %d: %s, want %d folders without a file", status, output, many)
	}
}
